"""Puts tool calls together from the pieces of a stream.

By the book, each piece says by ``index`` which call it belongs to, and the first piece of a call brings its id and
name. Servers leave out the index, count it wrongly, repeat id and name in every piece, or give two calls one id. What
they hardly do is begin a call without a new id or a name, and that is what this goes by.
"""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any

from openheim import ToolUseBlock
from openheim.jsontext import is_object

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("ToolCall", "ToolCalls", "tool_use_blocks")

#: Longer arguments are taken for unfinished when a piece repeats the name of its call: asking would cost too much.
_CHECKED_CHARACTERS = 64 * 1024


class ToolCall:
    """One call, as far as it has come. ``position`` counts the calls of the reply from 0."""

    __slots__ = ("_pieces", "_size", "id", "index", "name", "position")

    def __init__(self, position: int, index: int | None) -> None:
        self.position = position
        self.index = index
        self.id = ""
        self.name = ""
        self._pieces: list[str] = []
        self._size = 0

    def add(self, call_id: str, name: str, arguments: str) -> None:
        self.id = self.id or call_id
        if name and name != self.name and not self._pieces:
            # A name may come in pieces too, or again with more of it each time.
            self.name = name if name.startswith(self.name) else self.name + name
        if arguments:
            self._pieces.append(arguments)
            self._size += len(arguments)

    @property
    def arguments(self) -> str:
        return "".join(self._pieces)

    @property
    def has_arguments(self) -> bool:
        return bool(self._pieces)

    @property
    def is_complete(self) -> bool:
        """Whether the arguments are an object already."""
        return (
            0 < self._size <= _CHECKED_CHARACTERS
            and self._pieces[-1].rstrip().endswith("}")
            and is_object(self.arguments)
        )


class ToolCalls:
    """The calls of one reply, in the order in which they began."""

    def __init__(self) -> None:
        self._calls: list[ToolCall] = []

    def add(self, entry: dict[str, Any], place: int) -> tuple[ToolCall, str, bool]:
        """Takes one entry of a ``tool_calls`` list.

        Args:
            place: its place in the list.

        Returns:
            The call that it belongs to, the piece of arguments that it brought, and whether it began the call.
        """
        function = entry.get("function")
        function = function if isinstance(function, dict) else entry
        index = entry.get("index")
        index = index if isinstance(index, int) else None
        call_id, name = _text(entry.get("id")), _text(function.get("name"))
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments)
        arguments = _text(arguments)

        call = self._call_of(index, call_id, name, arguments, place)
        is_new = call is None
        if call is None:
            call = ToolCall(len(self._calls), index)
            self._calls.append(call)
        call.add(call_id, name, arguments)
        return call, arguments, is_new

    def _call_of(self, index: int | None, call_id: str, name: str, arguments: str, place: int) -> ToolCall | None:
        """The call that a piece goes on with, or None if it begins one."""
        if not self._calls:
            return None
        indexed = None if index is None else self._latest(index=index)
        if call_id:
            call = self._latest(index=index, call_id=call_id)
            if call is None and indexed is not None and not indexed.id:
                call = indexed  # The id came after the name.
            if call is None or (name and arguments and call.is_complete):
                return None
            return call
        if index is not None and indexed is None:
            return None if name else self._calls[-1]
        call = self._calls[-1] if indexed is None else indexed
        return None if name and self._begins_anew(call, index, name, arguments, place) else call

    def _begins_anew(self, call: ToolCall, index: int | None, name: str, arguments: str, place: int) -> bool:
        """Whether a piece with a name, but no id, is another call than the one it seems to belong to."""
        if not call.name:
            return False
        if call.has_arguments:
            return name != call.name or (bool(arguments) and call.is_complete)
        return index is None and (place > 0 or not name.startswith(call.name))

    def _latest(self, *, index: int | None, call_id: str = "") -> ToolCall | None:
        for call in reversed(self._calls):
            if (index is None or call.index is None or call.index == index) and (not call_id or call.id == call_id):
                return call
        return None


def tool_use_blocks(calls: Sequence[ToolCall], *, cut: bool) -> list[ToolUseBlock]:
    """The finished calls. An id that is missing, or used before in the reply, is replaced; no arguments are ``{}``.

    Args:
        cut: whether the reply ended at the output cap. Its last call may then have no arguments *yet*, so it is not
            given any: blank ones tell whoever runs calls that this one is not complete.
    """
    blocks = []
    seen = set()
    for call in calls:
        call_id = call.id.strip()
        if not call_id or call_id in seen:
            call_id = f"call_{secrets.token_hex(12)}"
        seen.add(call_id)
        arguments = call.arguments
        if not arguments.strip():
            arguments = "" if cut and call is calls[-1] else "{}"
        blocks.append(ToolUseBlock(call_id, call.name, arguments))
    return blocks


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
