"""Ids of tool calls in the form that a service takes, each of them once in a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openheim import wire_call_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openheim import Message

__all__ = ("CallIds",)

#: A pattern may have room for a few ids only. After so many tries one is sent twice.
_TRIES = 1000

_NONE: Mapping[str, str] = {}


class CallIds:
    """The ids of a conversation's calls and results.

    An id that an earlier message has used gets another form, which the results behind it share. What an id becomes
    follows from the messages up to it alone, so that it stays the same as the conversation grows.

    Args:
        pattern: what ids have to match as a whole.
    """

    __slots__ = ("_latest", "_messages", "_pattern", "_renamed", "_repeats", "_used")

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._messages: list[Message] = []
        self._reset()

    def _reset(self) -> None:
        self._messages.clear()
        self._used: set[str] = set()
        #: How often an id was used again.
        self._repeats: dict[str, int] = {}
        #: Of the latest message with calls: its ids that were changed for having been used, and what they became.
        self._latest: dict[str, str] = {}
        #: The same for each message that has such ids, of calls or of results.
        self._renamed: dict[Message, Mapping[str, str]] = {}

    def update(self, messages: Sequence[Message]) -> None:
        """Takes in the messages of a request; has to come before they are encoded."""
        known = len(self._messages)
        if list(messages[:known]) != self._messages:
            self._reset()
            known = 0
        for message in messages[known:]:
            self._take(message)
            self._messages.append(message)

    def of(self, message: Message, call_id: str) -> str:
        """What is sent for the id of a call, or of a result, in this message."""
        return self._renamed.get(message, _NONE).get(call_id) or wire_call_id(call_id, self._pattern)

    def _take(self, message: Message) -> None:
        if message.role == "assistant":
            asked = dict.fromkeys(block.id for block in message.tool_uses)
            if asked:
                self._latest = {call_id: sent for call_id in asked if (sent := self._renamed_call(call_id))}
        if self._latest and message.role in ("assistant", "tool"):
            self._renamed[message] = self._latest

    def _renamed_call(self, call_id: str) -> str:
        """What the id of a call becomes if it was used before, else ``""``."""
        wanted = sent = wire_call_id(call_id, self._pattern)
        tries = 0
        while sent in self._used and tries < _TRIES:
            tries += 1
            repeat = self._repeats[call_id] = self._repeats.get(call_id, 0) + 1
            sent = wire_call_id(f"{call_id} {repeat}", self._pattern)
        self._used.add(sent)
        return sent if sent != wanted else ""
