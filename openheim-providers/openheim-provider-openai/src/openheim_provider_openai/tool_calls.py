"""Puts tool calls together from the pieces of a stream.

By the book, each piece says by ``index`` which call it belongs to, and the first piece of a call brings its id and
name. Servers leave out the index, count it wrongly, repeat id and name in every piece, or give two calls one id. What
they hardly do is begin a call without a new id or a name, and that is what this goes by.
"""

from __future__ import annotations

import json
from typing import Any

from openheim.jsontext import is_object
from openheim.reply_parts import CallPart

__all__ = ("ToolCall", "ToolCalls", "text_of")

#: Longer arguments are taken for unfinished when a piece repeats the name of its call: asking would cost too much. So
#: are all once that many characters were read for asking: a flood of pieces would have them read again for each.
_CHECKED_CHARACTERS = 64 * 1024
_CHECKED_IN_ALL = 64 * _CHECKED_CHARACTERS

#: Several times what any service's ids have.
_MAX_ID_LENGTH = 1024

#: Stands for every index in the places of calls.
_ANY = "any"


class ToolCall(CallPart):
    """One call, as far as it has come."""

    __slots__ = ("index",)

    def __init__(self, position: int, index: int | None) -> None:
        super().__init__(position)
        self.index = index

    def add(self, call_id: str, name: str, arguments: str) -> str:
        """Takes a piece, and returns what it adds to the arguments."""
        self.id = self.id or call_id
        if name and name != self.name and not self.size:
            self.add_name(name)
        return self.add_arguments(arguments)


class ToolCalls:
    """The calls of one reply, in the order in which they began."""

    def __init__(self) -> None:
        self._calls: list[ToolCall] = []
        #: The latest call of each index and id, ``_ANY`` standing for all indices and ``""`` for all ids.
        self._latest_at: dict[tuple[int | str | None, str], ToolCall] = {}
        self._checked = 0

    def add(self, entry: dict[str, Any], place: int) -> tuple[ToolCall, str, bool]:
        """Takes one entry of a ``tool_calls`` list.

        Args:
            place: its place in the list.

        Returns:
            The call that it belongs to, what it adds to the arguments, and whether it began the call.
        """
        function = entry.get("function")
        function = function if isinstance(function, dict) else entry
        index = entry.get("index")
        index = index if isinstance(index, int) else None
        call_id, name = text_of(entry.get("id")), text_of(function.get("name"))
        if len(call_id) > _MAX_ID_LENGTH:
            call_id = ""  # That is no id. The call gets another.
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments)
        arguments = text_of(arguments)

        call = self._call_of(index, call_id, name, arguments, place)
        is_new = call is None
        if call is None:
            call = ToolCall(len(self._calls), index)
            self._calls.append(call)
        had_id = bool(call.id)
        arguments = call.add(call_id, name, arguments)
        if is_new or (call.id and not had_id):
            self._register(call)
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
            if call is None or (name and arguments and self._is_complete(call)):
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
        if call.size:
            return name != call.name or (bool(arguments) and self._is_complete(call))
        return index is None and (place > 0 or not name.startswith(call.name))

    def _is_complete(self, call: ToolCall) -> bool:
        """Whether the arguments of a call are an object already."""
        if not 0 < call.size <= _CHECKED_CHARACTERS or not call.last_piece.rstrip().endswith("}"):
            return False
        self._checked += call.size
        return self._checked <= _CHECKED_IN_ALL and is_object(call.arguments)

    def _latest(self, *, index: int | None, call_id: str = "") -> ToolCall | None:
        """The call that began last of those with this id and index; a call without an index has every index."""
        if index is None:
            return self._latest_at.get((_ANY, call_id))
        found = self._latest_at.get((index, call_id))
        without_index = self._latest_at.get((None, call_id))
        if found is None or without_index is None:
            return found or without_index
        return max(found, without_index, key=lambda call: call.position)

    def _register(self, call: ToolCall) -> None:
        for place in ((call.index, ""), (call.index, call.id), (_ANY, call.id)):
            # An id may come later than those of calls that began later.
            if call.position >= self._latest_at.setdefault(place, call).position:
                self._latest_at[place] = call


def text_of(value: Any) -> str:
    """The value if it is text, else ``""``."""
    return value if isinstance(value, str) else ""
