"""The result of a search as it grows: ``path:line: content``, bounded in matches and in bytes."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from openheim_tools_fs.results import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ("MAX_MATCHES", "Report", "ReportFullError")

MAX_MATCHES = 200
#: Longest line that is shown whole, in bytes; of a longer one, this much around the match.
MAX_LINE_BYTES = 400
#: How many places surfaces are told.
MAX_LOCATIONS = 50


class ReportFullError(Exception):
    """Nothing more goes in; the text says why."""


class Report:
    """Lines of a result.

    Args:
        context: lines to show before and after each match.
        max_bytes: most bytes in all.
        shown: how the model is to see a path, given in full.
    """

    def __init__(self, context: int, max_bytes: int, shown: Callable[[str], str]) -> None:
        self.lines: list[str] = []
        self.matches = 0
        #: Where the first matches are: ``path`` (in full) and ``line``.
        self.locations: list[dict[str, Any]] = []
        self._context = context
        self._max_bytes = max_bytes
        self._bytes = 0
        self._shown = shown

    def add_name(self, path: str) -> None:
        """Adds a file whose name matches.

        Raises:
            ReportFullError: there is no room for it.
        """
        self._count_match({"path": printable(path)})
        self._add(self._shown(path))

    def add_hits(self, path: str, first_line: int, block: bytes, hits: Iterable[int]) -> None:
        """Adds the matching lines of a block of text.

        Args:
            path: the file, in full.
            first_line: number of the block's first line.
            block: whole lines.
            hits: the offset of a match in each line that has one, growing.

        Raises:
            ReportFullError: there is no room for all of them.
        """
        places: list[int] = []
        try:
            # One more than there is room for, to know whether there are more.
            places.extend(itertools.islice(hits, MAX_MATCHES - self.matches + 1))
        finally:  # What was found before the engine gave up is shown.
            if places:
                self._add_places(path, first_line, block, places)

    def _add_places(self, path: str, first_line: int, block: bytes, places: list[int]) -> None:
        shown = self._shown(path)
        if self._context:
            self._add_with_context(path, shown, first_line, block, places)
            return
        number, counted_to = first_line, 0
        for place in places:
            number += block.count(b"\n", counted_to, place)
            counted_to = place
            begin, end = block.rfind(b"\n", 0, place) + 1, block.find(b"\n", place)
            line = block[begin:] if end < 0 else block[begin:end]
            self._count_match({"path": printable(path), "line": number})
            self._add(f"{shown}:{number}: {_excerpt(line, place - begin)}")

    def _add_with_context(self, path: str, shown: str, first_line: int, block: bytes, places: list[int]) -> None:
        columns: dict[int, int] = {}
        index = counted_to = 0
        for place in places:
            index += block.count(b"\n", counted_to, place)
            counted_to = place
            columns[index] = place - (block.rfind(b"\n", 0, place) + 1)
        lines = block.removesuffix(b"\n").split(b"\n")
        previous = None
        for index in self._with_context(columns, len(lines)):
            if index - 1 != previous and self.lines:
                self._add("--")
            previous = index
            number = first_line + index
            if index in columns:
                self._count_match({"path": printable(path), "line": number})
                self._add(f"{shown}:{number}: {_excerpt(lines[index], columns[index])}")
            else:
                self._add(f"{shown}-{number}- {_excerpt(lines[index], 0)}")

    def _with_context(self, indexes: Iterable[int], end: int) -> list[int]:
        reach = self._context
        return sorted({near for index in indexes for near in range(max(index - reach, 0), min(index + reach + 1, end))})

    def _count_match(self, location: dict[str, Any]) -> None:
        if self.matches == MAX_MATCHES:
            raise ReportFullError(f"stopped at {MAX_MATCHES} matches")
        self.matches += 1
        if len(self.locations) < MAX_LOCATIONS:
            self.locations.append(location)

    def _add(self, line: str) -> None:
        self._bytes += len(line.encode()) + 1
        if self._bytes > self._max_bytes:
            raise ReportFullError(f"stopped at {self._max_bytes} bytes of matches")
        self.lines.append(line)


def _excerpt(line: bytes, column: int) -> str:
    """The line, or the part of a long one around the byte at ``column``."""
    if len(line) <= MAX_LINE_BYTES:
        return line.decode("utf-8", errors="replace")
    begin = max(0, column - MAX_LINE_BYTES // 4)
    end = begin + MAX_LINE_BYTES
    part = line[begin:end].decode("utf-8", errors="ignore")
    return f"{'... ' if begin else ''}{part}{' ...' if end < len(line) else ''}"
