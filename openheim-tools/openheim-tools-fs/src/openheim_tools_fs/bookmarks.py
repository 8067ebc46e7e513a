"""Where earlier reads stopped, so that reading a long file to its end does not begin anew with each call."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openheim.files import FileVersion

__all__ = ("Bookmark", "Bookmarks")


@dataclass(slots=True, frozen=True)
class Bookmark:
    """A place in a file: ``position`` is the byte at which ``column`` of ``line`` is (both counted from 1).

    ``total`` is the number of lines in the file, if that is known.
    """

    line: int = 1
    column: int = 1
    position: int = 0
    total: int | None = None

    def leads_to(self, line: int, column: int) -> bool:
        """Whether the way from here to there goes forward."""
        return line > self.line or (line, column) == (self.line, self.column)


class Bookmarks:
    """The last place in each of the files read most recently. A changed file has another version and no bookmark.

    Args:
        limit: how many files to remember.
    """

    def __init__(self, limit: int = 64) -> None:
        self._limit = limit
        self._places: OrderedDict[FileVersion, Bookmark] = OrderedDict()
        self._guard = threading.Lock()

    def find(self, version: FileVersion) -> Bookmark | None:
        with self._guard:
            return self._places.get(version)

    def put(self, version: FileVersion, bookmark: Bookmark) -> None:
        with self._guard:
            self._places[version] = bookmark
            self._places.move_to_end(version)
            while len(self._places) > self._limit:
                self._places.popitem(last=False)
