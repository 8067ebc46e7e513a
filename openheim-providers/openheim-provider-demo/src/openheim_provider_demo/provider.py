"""The provider: streams what the planner decides."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import anyio.lowlevel

from openheim.errors import ModelNotFoundError
from openheim.events import TextDelta, ToolCallDelta
from openheim.messages import TextBlock, ToolResultBlock, ToolUseBlock, Usage
from openheim.providers import ModelInfo, ModelReply
from openheim_provider_demo.planner import next_step
from openheim_provider_demo.turns import CurrentTurn, next_call_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openheim.messages import Finish
    from openheim.providers import EmitDelta, ModelRequest, Provider
    from openheim_provider_demo.turns import Call

__all__ = ("DemoProvider",)

MODEL = "demo"

_BYTES_PER_TOKEN = 4


class DemoProvider:
    """A :class:`~openheim.providers.Provider` of rules: no network, no key, the same reply to the same request."""

    wire = "demo"
    default_model = MODEL
    known_models = (MODEL,)

    async def generate(self, request: ModelRequest, emit: EmitDelta) -> ModelReply:
        """Replies with tool calls, or word by word with an answer.

        Raises:
            ModelNotFoundError: the request names another model.
        """
        if request.model not in ("", MODEL):
            raise ModelNotFoundError(
                f"the demo provider has no model {request.model!r}", hint=f"its only model is {MODEL!r}"
            )
        await anyio.lowlevel.checkpoint()
        turn = CurrentTurn(request.messages)
        step = next_step(turn, {tool.name for tool in request.tools})
        if isinstance(step, str):
            return await _say(step, request, emit)
        return _ask_for(step, request, emit)

    async def models(self) -> list[ModelInfo]:
        return [ModelInfo(MODEL)]


async def _say(text: str, request: ModelRequest, emit: EmitDelta) -> ModelReply:
    said: list[str] = []
    size = 0
    for word in re.findall(r"\s*\S+\s*", text):
        size += _size(word)
        if request.max_tokens is not None and _tokens(size) > request.max_tokens:
            break
        emit(TextDelta(word))
        said.append(word)
        # Gives others their turn, as a network would, and notices a cancellation.
        await anyio.lowlevel.checkpoint()
    reply = "".join(said)
    finish: Finish = "end_turn" if reply == text else "max_tokens"
    return ModelReply((TextBlock(reply),) if reply else (), finish, _usage(request, _size(reply)), MODEL)


def _ask_for(calls: Sequence[Call], request: ModelRequest, emit: EmitDelta) -> ModelReply:
    first = next_call_number(request.messages)
    blocks = tuple(
        ToolUseBlock(f"demo-{first + index}", call.tool, call.arguments_text) for index, call in enumerate(calls)
    )
    for index, block in enumerate(blocks):
        emit(ToolCallDelta(index, block.name, block.arguments))
    written = sum(_size(block.name) + _size(block.arguments) for block in blocks)
    return ModelReply(blocks, "tool_use", _usage(request, written), MODEL)


def _usage(request: ModelRequest, written: int) -> Usage:
    """Counts bytes: a quarter of them is what models take for a token, more or less."""
    read = _size(request.system)
    for message in request.messages:
        for block in message.content:
            match block:
                case TextBlock():
                    read += _size(block.text)
                case ToolUseBlock():
                    read += _size(block.name) + _size(block.arguments)
                case ToolResultBlock():
                    read += _size(block.content)
                case _:
                    pass  # Of images and other models' thinking, nothing is read.
    for tool in request.tools:
        read += _size(tool.name) + _size(tool.description)
    return Usage(input_tokens=_tokens(read), output_tokens=_tokens(written))


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _tokens(size: int) -> int:
    return -(-size // _BYTES_PER_TOKEN)


if TYPE_CHECKING:

    def type_check(provider: DemoProvider) -> Provider:
        return provider
