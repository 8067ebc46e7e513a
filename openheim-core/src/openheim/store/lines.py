"""Reads the lines of a log, whatever has happened to them.

A line that cannot be read is skipped with a warning and hides no other: half a line (a crash while it was written), a
block of zero bytes (a power loss), bytes that are no text, JSON that is no object. Byte-order marks, CR LF and blank
lines do no harm.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from openheim.jsontext import parse

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("LogLines", "is_whole")

#: What may stand around an object without being part of it.
_PADDING = "\ufeff\0 \t\r"

#: Decoding a whole text in one go is quick, but an error in it costs a look at everything before.
_FEW_ERRORS = 16

# NaN and the infinities are no JSON, though other programs may have written them.
_decode = json.JSONDecoder(parse_constant=lambda name: None, parse_float=lambda text: _finite(float(text))).raw_decode


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


class LogLines:
    """The objects in a log or in a part of one, in order, each with the number of its line (from 1).

    To be gone through once.

    Args:
        data: bytes that begin at the start of a line.
    """

    def __init__(self, data: bytes) -> None:
        tail = data.rfind(b"\n") + 1
        self._data = data
        #: Lines that cannot be read, and those with zero bytes: how many, and the first one's number.
        self._unreadable, self._zeros = (0, 0), (0, 0)
        self._is_cut = False
        #: Bytes up to the end of the last line that is whole. Behind it is what a crash, or a writer who is not done
        #: yet, has left.
        self.end = len(data) if is_whole(data[tail:]) else tail

    @property
    def warnings(self) -> list[str]:
        """About what was skipped so far: one line for each kind of damage, however many lines it has hit."""
        found = []
        count, first = self._unreadable
        if count == 1:
            found.append(f"line {first} of the history cannot be read and is skipped")
        elif count:
            found.append(f"{count:,} lines of the history cannot be read and are skipped; the first is line {first}")
        count, first = self._zeros
        if count:
            more = f" and {count - 1:,} more" if count > 1 else ""
            found.append(f"zero bytes in line {first}{more} of the history are skipped")
        if self._is_cut:
            found.append("the last line of the history was cut off and is skipped")
        return found

    def skip(self, number: int) -> None:
        """Counts a line whose object means nothing as one that cannot be read."""
        count, first = self._unreadable
        self._unreadable = count + 1, first or number

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        try:
            text = self._data.decode()
        except UnicodeDecodeError:
            # What is no text becomes halves of characters, which no line that was written as text has.
            return self._one_by_one(self._data.decode(errors="surrogateescape"), 0, 1)
        return self._in_one_go(text)

    def _in_one_go(self, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
        # The decoder goes through the text as a whole, which takes two thirds of the time of cutting it up before.
        start, number, length, errors = 0, 0, len(text), 0
        while start < length:
            number += 1
            try:
                value, end = _decode(text, start)
            except (ValueError, RecursionError):
                errors += 1
                if errors > _FEW_ERRORS:
                    yield from self._one_by_one(text, start, number)
                    return
            else:
                if text[end : end + 1] == "\n" and type(value) is dict:
                    yield number, value
                    start = end + 1
                    continue
            end = text.find("\n", start)
            if end < 0:
                end = length
            value = self._object_in(text[start:end], number, last=end == length)
            if value is not None:
                yield number, value
            start = end + 1

    def _one_by_one(self, text: str, start: int, first: int) -> Iterator[tuple[int, dict[str, Any]]]:
        lines = text[start:].split("\n")
        last = first + len(lines) - 1
        for number, line in enumerate(lines, first):
            value = self._object_in(line, number, last=number == last)
            if value is not None:
                yield number, value

    def _object_in(self, line: str, number: int, *, last: bool) -> dict[str, Any] | None:
        """The object in a line that may be more, less or something else than that."""
        content = line.strip(_PADDING)
        zeros = "\0" in line
        if not content and not zeros:
            return None
        value = _value(content)
        if isinstance(value, dict):
            if zeros:
                count, first = self._zeros
                self._zeros = count + 1, first or number
            return value
        if last and self.end < len(self._data):
            self._is_cut = True
        else:
            self.skip(number)
        return None


def is_whole(line: bytes) -> bool:
    """Whether a last line without a line end lacks nothing else."""
    try:
        content = line.decode().strip(_PADDING)
    except UnicodeDecodeError:
        return False
    return (not content and b"\0" not in line) or _value(content) is not None


def _value(content: str) -> Any:
    """What the JSON text says; None if it is none, or ``null``."""
    try:
        content.encode()
        return parse(content, lenient=True)
    except (ValueError, RecursionError):
        return None
