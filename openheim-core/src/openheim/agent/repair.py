"""Makes a history acceptable to providers after a crash, a cut or an edit from outside. What is stored stays as it is.

In the messages that come out every tool call has exactly one answer, right behind the message that asks for it and in
the order of the calls; nothing is answered that was not asked for; no message is without content; and the first one is
the user's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from openheim.messages import Message, TextBlock, ThinkingBlock, ToolResultBlock

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
        #: Calls of the latest reply without an answer so far: id -> who asks, and for which tool.
        self._open: dict[str, tuple[Message, str]] = {}
        #: The place of each of its calls, and the answers so far, with the place of the call that they answer.
        self._places: dict[str, int] = {}
        self._answers: list[tuple[int, Message]] = []

    def update(self, stored: Sequence[Message]) -> int:
        """Takes in what was stored since the last time. A request is about to be made, so open calls are settled.

        Returns:
            How many of :attr:`messages` are still what they were: all, unless another history was given.
        """
        if self._taken > len(stored) or (self._taken and stored[self._taken - 1] is not self._last):
            self.messages, self._taken = [], 0
            self._open.clear()
            self._answers.clear()
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
        self.messages.append(message)
        if message.role == "assistant":
            calls = message.tool_uses
            self._open.update((call.id, (message, call.name)) for call in calls)
            self._places = {call.id: place for place, call in enumerate(calls)}

    def _take_results(self, message: Message) -> None:
        wanted = tuple(
            block
            for block in message.content
            if not isinstance(block, ToolResultBlock) or self._open.pop(block.tool_call_id, None) is not None
        )
        answered = [block.tool_call_id for block in wanted if isinstance(block, ToolResultBlock)]
        if not answered:
            return
        if len(wanted) < len(message.content):
            message = replace(message, content=wanted, id=f"{message.id}{_CHANGED}")
        self._answers.append((self._places[answered[0]], message))

    def _settle(self) -> None:
        """Ends the latest reply: answers what is open, and puts the answers into the order of the calls."""
        for call_id, (caller, name) in self._open.items():
            lost = Message(
                role="tool",
                content=(ToolResultBlock(call_id, name, _LOST, True),),
                id=f"{caller.id}:{call_id}{_MADE_UP}",
                created_at=caller.created_at,
                turn=caller.turn,
                step=caller.step,
            )
            self._answers.append((self._places[call_id], lost))
        self._open.clear()
        if self._answers:
            self._answers.sort(key=lambda answer: answer[0])
            self.messages += [message for _place, message in self._answers]
            self._answers.clear()


def repaired(messages: Sequence[Message]) -> list[Message]:
    """All of a history at once; see :class:`RepairedHistory`."""
    history = RepairedHistory()
    history.update(messages)
    return history.messages


def is_derived(message: Message) -> bool:
    """Whether this message was made by a repair and is not stored."""
    return message.id.endswith((_MADE_UP, _CHANGED))


def _is_blank(block: Block) -> bool:
    if isinstance(block, TextBlock):
        return not block.text.strip()
    return isinstance(block, ThinkingBlock) and block.signature is None and not block.thinking.strip()
