"""Where the body of a request stops being what the one before it was, as far as prompt caches of services go by it.

A conversation grows at its end, so each request should repeat the one before: the same system text, tools and
parameters, and the same messages with more behind them. Whatever differs earlier is paid for again from there on.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

__all__ = ("MARKERS", "PrefixChange", "changed_prefix")

#: Fields that mark a place in the prompt and are no part of it, so that they may come and go.
MARKERS = ("cache_control",)

#: Fields of a body that hold the conversation, on the wires that there are.
_CONVERSATIONS = ("messages", "contents", "input")

_CONTEXT_BYTES = 40


@dataclass(frozen=True, slots=True)
class PrefixChange:
    """The first byte of a body that is not what the next request has in its place.

    Args:
        path: the value that changed, such as ``messages[3].content[0].text``; ``""`` for a body that is no JSON object.
        offset: the byte in the earlier body.
        before, after: what stands around that place, in the earlier body and in the later one.
    """

    path: str
    offset: int
    before: bytes
    after: bytes

    def __str__(self) -> str:
        before, after = (text.decode("utf-8", "replace") for text in (self.before, self.after))
        return f"byte {self.offset} ({self.path or 'the body'}) changed: before …{before}…, after …{after}…"


def changed_prefix(
    before: bytes, after: bytes, *, markers: Sequence[str] = MARKERS, changing: Collection[str] = ()
) -> PrefixChange | None:
    """The first change of ``before`` in ``after`` that is no growth at the end of the conversation; None if none is.

    Args:
        markers: fields that may be anywhere, come and go.
        changing: fields of the body itself that may differ.
    """
    if before == after:
        return None
    old, new = _Body(before, markers), _Body(after, markers)
    if old.members is None or new.members is None:
        return _difference(old, 0, len(old.text), new, 0, "") if not new.text.startswith(old.text) else None
    for name, (start, end) in old.members.items():
        if name in changing:
            continue
        if name not in new.members:
            return old.change(name, start, new, 0)
        new_start, new_end = new.members[name]
        if name in _CONVERSATIONS and old.text[start] == "[":
            # What closes the last message stands behind what more may have been added to it.
            end = start + len(old.text[start:end].rstrip("]} \r\n\t"))
            if not new.text.startswith(old.text[start:end], new_start):
                return _difference(old, start, end, new, new_start, name)
        elif old.text[start:end] != new.text[new_start:new_end]:
            return _difference(old, start, end, new, new_start, name)
    added = next((name for name in new.members if name not in old.members and name not in changing), None)
    return old.change(added, len(old.text) - 1, new, new.members[added][0]) if added is not None else None


class _Body:
    """A body without its markers. A character of ``text`` is a byte; ``members`` says where each field's value is."""

    def __init__(self, raw: bytes, markers: Sequence[str]) -> None:
        text = raw.decode("latin-1")
        #: Where something was cut out of the text, and how much until there.
        self._cuts: list[int] = []
        self._cut_bytes: list[int] = []
        self.raw = raw
        self.text = self._without(text, markers)
        try:
            self.members = _members(self.text)
        except (ValueError, RecursionError):
            self.members = None

    def change(self, path: str, place: int, later: _Body, later_place: int) -> PrefixChange:
        offset, later_offset = self._offset(place), later._offset(later_place)
        return PrefixChange(path, offset, _around(self.raw, offset), _around(later.raw, later_offset))

    def _offset(self, place: int) -> int:
        """Where a place in the text is in the body as it was sent."""
        cut = bisect_right(self._cuts, place)
        return place + (self._cut_bytes[cut - 1] if cut else 0)

    def _without(self, text: str, markers: Sequence[str]) -> str:
        if not markers:
            return text
        # Inside of a string, the quotes would be escaped.
        pattern = re.compile(r'(,\s*)?(?<!\\)"(?:' + "|".join(map(re.escape, markers)) + r')"\s*:\s*')
        pieces, end, length, cut = [], 0, 0, 0
        for match in pattern.finditer(text):
            if match.start() < end:
                continue  # within a marker that is cut out already
            try:
                _value, behind = _decode(text, match.end())
            except (ValueError, RecursionError):
                continue
            if match[1] is None and (comma := re.compile(r"\s*,").match(text, behind)):
                behind = comma.end()
            pieces.append(text[end : match.start()])
            length += match.start() - end
            cut += behind - match.start()
            self._cuts.append(length)
            self._cut_bytes.append(cut)
            end = behind
        return "".join((*pieces, text[end:]))


_decode: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder(strict=False).raw_decode

_SPACE = re.compile(r"[ \t\r\n]*")


def _members(text: str) -> dict[str, tuple[int, int]] | None:
    """Where the values of an object's fields begin and end; None for what is no object.

    Raises:
        ValueError: it is no JSON.
    """

    def skip(place: int) -> int:
        found = _SPACE.match(text, place)
        return found.end() if found else place

    place = skip(0)
    if not text.startswith("{", place):
        return None
    members: dict[str, tuple[int, int]] = {}
    place = skip(place + 1)
    while text.startswith('"', place):
        name, place = _decode(text, place)
        start = skip(skip(place) + 1)
        _value, end = _decode(text, start)
        members[name] = start, end
        place = skip(end)
        if text.startswith(",", place):
            place = skip(place + 1)
    if text[place:].strip() != "}":
        raise ValueError("there is more than an object")
    return members


def _difference(old: _Body, start: int, end: int, new: _Body, new_start: int, name: str) -> PrefixChange:
    ours = old.text[start:end]
    theirs = new.text[new_start : new_start + len(ours)]
    pairs = enumerate(zip(ours, theirs, strict=False))
    same = next((place for place, (mine, other) in pairs if mine != other), min(len(ours), len(theirs)))
    path = name
    if old.members is not None and new.members is not None:
        values = (_decode(body.text, body.members[name][0])[0] for body in (old, new) if body.members is not None)
        path += _path_of_change(*values)
    return old.change(path, start + same, new, new_start + same)


def _path_of_change(before: Any, after: Any) -> str:
    """The way to the first value inside of both that differs."""
    if isinstance(before, dict) and isinstance(after, dict):
        # The order of keys counts: it is bytes that are compared.
        for (name, value), (other, new) in zip(before.items(), after.items(), strict=False):
            if name != other:
                return f".{name}"
            if _dumped(value) != _dumped(new):
                return f".{name}{_path_of_change(value, new)}"
    if isinstance(before, list) and isinstance(after, list):
        for index, value in enumerate(before):
            if index >= len(after):
                return f"[{index}]"
            if _dumped(value) != _dumped(after[index]):
                return f"[{index}]{_path_of_change(value, after[index])}"
    return ""


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _around(raw: bytes, offset: int) -> bytes:
    return raw[max(0, offset - _CONTEXT_BYTES) : offset + _CONTEXT_BYTES]
