"""Makes a history acceptable to providers after a crash, a cut or an edit from outside. What is stored stays as it is.

In the messages that come out every tool call has an id of its own and exactly one answer, right behind the message
that asks for it and in the order of the calls; nothing is answered that was not asked for; no message is without
content; and the first one is the user's.
"""

from __future__ import annotations

from dataclasses import replace
from operator import is_not
from typing import TYPE_CHECKING

from openheim.messages import Message, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openheim.messages import Block

__all__ = ("RepairedHistory", "is_derived", "repaired")

_LOST = "Error: the outcome of this call is unknown: it was interrupted before its result was stored"
_HEADLESS = "[The beginning of this conversation is missing.]"

_MADE_UP = ":lost"
_CHANGED = ":wanted"


class RepairedHistory:
    """Stored messages as they can be sent, brought up to date piece by piece.

    Attributes:
        messages: what can be sent. It only grows, as long as what is stored does. Those that needed no repair are
            the stored objects, and those that were made up or changed have ids of their own, derived from the stored
            ones so that they are the same whenever the history is repaired.
    """

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._taken = 0
        self._last: Message | None = None
        self._reset()

    def _reset(self) -> None:
        #: The ids of all calls in :attr:`messages`, and how often each stored one had to be changed.
        self._used: set[str] = set()
        self._repeats: dict[str, int] = {}
        #: The latest reply, and its calls without an answer so far: stored id -> their places among its calls.
        self._caller: Message | None = None
        self._calls: tuple[ToolUseBlock, ...] = ()
        self._open: dict[str, list[int]] = {}
        #: The answers so far, with the place of the call that they answer.
        self._answers: list[tuple[int, Message]] = []

    def update(self, stored: Sequence[Message]) -> int:
        """Takes in what was stored since the last time. A request is about to be made, so open calls are settled.

        Returns:
            How many of :attr:`messages` are still what they were: all, unless another history was given.
        """
        if self._taken > len(stored) or (self._taken and stored[self._taken - 1] is not self._last):
            self.messages, self._taken = [], 0
            self._reset()
        known = len(self.messages)
        for message in stored[self._taken :]:
            self._take(message)
        self._settle()
        self._taken = len(stored)
        self._last = stored[-1] if stored else None
        return known

    def _take(self, message: Message) -> None:
        if message.role == "tool":
            self._take_results(message)
            return
        if message.opaque is None and all(map(_is_blank, message.content)):
            return
        self._settle()
        if not self.messages and message.role == "assistant":
            self.messages.append(
                Message("user", (TextBlock(_HEADLESS),), id=f"{message.id}:before{_MADE_UP}", turn=message.turn)
            )
        if message.role == "assistant":
            message = self._take_calls(message)
        self.messages.append(message)

    def _take_calls(self, message: Message) -> Message:
        """The reply with ids of calls that no call before has."""
        stored = message.tool_uses
        if not stored:
            return message
        calls = [self._with_own_id(call) for call in stored]
        if any(call is not own for call, own in zip(stored, calls, strict=True)):
            own_calls = iter(calls)
            content = tuple(next(own_calls) if isinstance(block, ToolUseBlock) else block for block in message.content)
            message = replace(message, content=content, id=_changed_id(message))
        self._caller, self._calls = message, tuple(calls)
        for place, call in enumerate(stored):
            self._open.setdefault(call.id, []).append(place)
        return message

    def _with_own_id(self, call: ToolUseBlock) -> ToolUseBlock:
        call_id = call.id
        while call_id in self._used:
            # It follows from the messages up to this one alone, so that it stays the same in every request.
            repeat = self._repeats[call.id] = self._repeats.get(call.id, 0) + 1
            call_id = f"{call.id}-{repeat}"
        self._used.add(call_id)
        return call if call_id == call.id else replace(call, id=call_id)

    def _take_results(self, message: Message) -> None:
        content: list[Block] = []
        first: int | None = None
        for block in message.content:
            if isinstance(block, ToolResultBlock):
                places = self._open.get(block.tool_call_id)
                if not places:
                    continue
                place = places.pop(0)
                first = place if first is None else first
                if (call_id := self._calls[place].id) != block.tool_call_id:
                    block = replace(block, tool_call_id=call_id)
            content.append(block)
        if first is None:
            return
        if len(content) < len(message.content) or any(map(is_not, content, message.content)):
            message = replace(message, content=tuple(content), id=_changed_id(message))
        self._answers.append((first, message))

    def _settle(self) -> None:
        """Ends the latest reply: answers what is open, and puts the answers into the order of the calls."""
        caller = self._caller
        if caller is None:
            return
        for place in (place for places in self._open.values() for place in places):
            call = self._calls[place]
            lost = Message(
                role="tool",
                content=(ToolResultBlock(call.id, call.name, _LOST, True),),
                id=f"{caller.id}:{call.id}{_MADE_UP}",
                created_at=caller.created_at,
                turn=caller.turn,
                step=caller.step,
            )
            self._answers.append((place, lost))
        self._answers.sort(key=lambda answer: answer[0])
        self.messages += [message for _place, message in self._answers]
        self._caller, self._calls = None, ()
        self._open.clear()
        self._answers.clear()


def repaired(messages: Sequence[Message]) -> list[Message]:
    """All of a history at once; see :class:`RepairedHistory`."""
    history = RepairedHistory()
    history.update(messages)
    return history.messages


def is_derived(message: Message) -> bool:
    """Whether this message was made by a repair and is not stored."""
    return message.id.endswith((_MADE_UP, _CHANGED))


def _changed_id(message: Message) -> str:
    return message.id and f"{message.id}{_CHANGED}"  # Without an id it cannot be found again, and so must not be.


def _is_blank(block: Block) -> bool:
    if isinstance(block, TextBlock):
        return not block.text.strip()
    return isinstance(block, ThinkingBlock) and block.signature is None and not block.thinking.strip()
