"""A provider that answers from a script, for tests without a network."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import anyio.lowlevel

from openheim.errors import ProviderError
from openheim.events import TextDelta, ThinkingDelta, ToolCallDelta
from openheim.messages import Block, Finish, TextBlock, ThinkingBlock, ToolUseBlock, Usage
from openheim.providers import ModelInfo, ModelReply, ModelRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from openheim.providers import EmitDelta

__all__ = ("Pause", "Reply", "ScriptedProvider", "ScriptedReply", "reply_error", "reply_text", "reply_tool_calls")


class Pause:
    """A place in a script where the provider waits, so that a test can act at a known moment.

    The test waits for :meth:`reached`, does what it wants, and calls :meth:`release`.
    """

    def __init__(self) -> None:
        self._reached = anyio.Event()
        self._released = anyio.Event()

    async def reached(self) -> None:
        """Returns once the provider has come to this place."""
        await self._reached.wait()

    def release(self) -> None:
        """Lets the provider go on, now or when it comes here."""
        self._released.set()

    async def hold(self) -> None:
        """Called by the provider."""
        self._reached.set()
        await self._released.wait()


@dataclass(slots=True, frozen=True)
class ScriptedReply:
    """One reply of a script.

    Args:
        steps: blocks, each passed on as one delta, and pauses, in order. Neighbouring text blocks are one block of the
            reply, and so are thinking blocks, which makes the deltas of a block. A tool call without an id gets one.
        finish: how the reply ends.
        usage: what it is said to cost.
        error: raised after the steps instead of replying. A :class:`ProviderError` without ``partial`` gets the
            text and thinking passed on before it.
        opaque, model: see :class:`~openheim.providers.ModelReply`.
    """

    steps: tuple[Block | Pause, ...] = ()
    finish: Finish = "end_turn"
    usage: Usage | None = None
    error: Exception | None = None
    opaque: Mapping[str, Any] | None = None
    model: str | None = None


#: What a script may hold: text for a plain reply, a reply, or a function that makes one from the request.
Reply: TypeAlias = "str | ScriptedReply | Callable[[ModelRequest], str | ScriptedReply]"


def reply_text(
    *pieces: str | Pause, thinking: str = "", finish: Finish = "end_turn", usage: Usage | None = None
) -> ScriptedReply:
    """A reply of text, one delta for each piece: ``reply_text("Hel", pause, "lo")`` waits after ``Hel``."""
    text = tuple(TextBlock(piece) if isinstance(piece, str) else piece for piece in pieces)
    return ScriptedReply((*_thought(thinking), *text), finish, usage)


def reply_tool_calls(
    *calls: tuple[str, Mapping[str, Any] | str],
    text: str = "",
    thinking: str = "",
    finish: Finish = "tool_use",
    usage: Usage | None = None,
) -> ScriptedReply:
    """A reply that asks for tools: ``reply_tool_calls(("read_file", {"path": "a.txt"}))``.

    Args:
        calls: tool names with their arguments; arguments given as text go out as they are, malformed ones too.
        text: said before the calls.
    """
    said = (TextBlock(text),) if text else ()
    asked = tuple(
        ToolUseBlock("", name, arguments if isinstance(arguments, str) else json.dumps(arguments))
        for name, arguments in calls
    )
    return ScriptedReply((*_thought(thinking), *said, *asked), finish, usage)


def reply_error(error: Exception, *, after: str = "") -> ScriptedReply:
    """A call that fails with ``error``, once the text ``after`` has been passed on."""
    return ScriptedReply((TextBlock(after),) if after else (), error=error)


def _thought(thinking: str) -> tuple[ThinkingBlock, ...]:
    return (ThinkingBlock(thinking),) if thinking else ()


class ScriptedProvider:
    """Answers call after call from ``replies`` and keeps what it was asked.

    Args:
        replies: any iterable, also an endless one such as ``itertools.repeat("done")``.
        models: names for :meth:`models`.

    Attributes:
        requests: every request, in order. Each is a copy with the messages as they were then.
        active: calls that are running now.
        cancelled: calls that were cancelled.
        closed: whether :meth:`aclose` was called.
    """

    wire = "scripted"
    default_model = "scripted"

    def __init__(self, replies: Iterable[Reply], *, models: Iterable[str] = ("scripted",)) -> None:
        self.requests: list[ModelRequest] = []
        self.active = 0
        self.cancelled = 0
        self.closed = False
        self._replies = iter(replies)
        self._models = tuple(models)

    async def generate(self, request: ModelRequest, emit: EmitDelta) -> ModelReply:
        """Plays the next reply.

        Raises:
            AssertionError: the script is at its end.
        """
        self.requests.append(replace(request, messages=tuple(request.messages)))
        number = len(self.requests)
        try:
            reply = next(self._replies)
        except StopIteration:
            raise AssertionError(f"the script has no reply for call {number} of the provider") from None
        if callable(reply):
            reply = reply(request)
        if isinstance(reply, str):
            reply = reply_text(reply)
        self.active += 1
        try:
            return await self._play(reply, number, emit)
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise
        finally:
            self.active -= 1

    async def _play(self, reply: ScriptedReply, number: int, emit: EmitDelta) -> ModelReply:
        await anyio.lowlevel.checkpoint()
        content: list[Block] = []
        for step in reply.steps:
            if isinstance(step, Pause):
                await step.hold()
            else:
                _pass_on(step, number, content, emit)
        if reply.error is not None:
            raise _with_partial(reply.error, content)
        return ModelReply(tuple(content), reply.finish, reply.usage, reply.model, reply.opaque)

    async def models(self) -> list[ModelInfo]:
        return [ModelInfo(name) for name in self._models]

    async def aclose(self) -> None:
        self.closed = True


def _pass_on(block: Block, number: int, content: list[Block], emit: EmitDelta) -> None:
    """Emits the delta of a block and adds the block to the reply, joined to the one before if that is of its kind."""
    before = content[-1] if content else None
    match block:
        case TextBlock():
            emit(TextDelta(block.text))
            if isinstance(before, TextBlock):
                content[-1] = TextBlock(before.text + block.text)
                return
        case ThinkingBlock():
            emit(ThinkingDelta(block.thinking))
            if isinstance(before, ThinkingBlock) and before.signature is None:
                content[-1] = ThinkingBlock(before.thinking + block.thinking, block.signature)
                return
        case ToolUseBlock():
            index = sum(isinstance(earlier, ToolUseBlock) for earlier in content)
            block = replace(block, id=block.id or f"call_{number}_{index + 1}")
            emit(ToolCallDelta(index, block.name, block.arguments))
    content.append(block)


def _with_partial(error: Exception, content: list[Block]) -> Exception:
    if not isinstance(error, ProviderError):
        return error
    # A copy, so that one error can be used for several replies.
    error = copy.copy(error)
    if not error.partial:
        error.partial = tuple(block for block in content if not isinstance(block, ToolUseBlock))
    return error
