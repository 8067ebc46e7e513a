"""Lines of a stream of bytes, in memory that does not grow with the stream or with its longest line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("Lines", "Piece")


@dataclass(slots=True, frozen=True)
class Piece:
    """What :meth:`Lines.take` took.

    Args:
        data: whole lines with their ends; or, if ``cut``, the beginning of one line.
        lines: how many lines are in ``data``, a cut one included.
        cut: whether the one line goes on.
    """

    data: bytes
    lines: int
    cut: bool


class Lines:
    """A cursor in a stream. A line ends with a line feed; the last one may end with the stream.

    Args:
        chunks: the stream, in pieces of any size.
    """

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._buffer = b""
        self._start = 0
        #: Bytes that the cursor has passed.
        self.passed = 0

    @property
    def at_end(self) -> bool:
        return not self._has_data()

    def skip_lines(self, count: int) -> int:
        """Passes lines and says how many there were: fewer than ``count`` only at the end of the stream."""
        skipped = 0
        inside = False
        while skipped < count and self._has_data():
            feeds = self._buffer.count(b"\n", self._start)
            if skipped + feeds < count:
                skipped += feeds
                inside = not self._buffer.endswith(b"\n")
                self._pass_to(len(self._buffer))
                continue
            end = self._start
            for _ in range(count - skipped):
                end = self._buffer.index(b"\n", end) + 1
            self._pass_to(end)
            return count
        return skipped + 1 if inside else skipped

    def skip_in_line(self, count: int) -> bool:
        """Passes bytes of the current line; False if the line has no more than that."""
        while count and self._has_data():
            end = min(self._start + count, len(self._buffer))
            feed = self._buffer.find(b"\n", self._start, end)
            if feed >= 0:
                return False
            count -= end - self._start
            self._pass_to(end)
        return self._has_data() and self._buffer[self._start : self._start + 1] != b"\n"

    def take(self, lines: int | None, size: int) -> Piece:
        """Takes as many whole lines as fit, or the beginning of the first one if even that does not.

        Args:
            lines: most lines; None for as many as there are.
            size: most bytes.
        """
        taken = bytearray()
        count = 0
        while (lines is None or count < lines) and self._has_data():
            end = self._line_end(size - len(taken))
            if end is None:
                if taken:
                    break
                return Piece(self._beginning(size), 1, cut=True)
            taken += self._buffer[self._start : end]
            self._pass_to(end)
            count += 1
        return Piece(bytes(taken), count, cut=False)

    def count_rest(self, size: int) -> int | None:
        """Passes the rest of the stream and says how many lines it has; None if it is longer than ``size`` bytes."""
        end = self.passed + size
        lines = 0
        inside = False
        while self._has_data():
            if self.passed > end:
                return None
            lines += self._buffer.count(b"\n", self._start)
            inside = not self._buffer.endswith(b"\n")
            self._pass_to(len(self._buffer))
        return lines + 1 if inside else lines

    def _has_data(self) -> bool:
        while self._start == len(self._buffer):
            chunk = next(self._chunks, None)
            if chunk is None:
                return False
            self._buffer, self._start = chunk, 0
        return True

    def _pass_to(self, position: int) -> None:
        self.passed += position - self._start
        self._start = position

    def _line_end(self, size: int) -> int | None:
        """Where the current line ends in the buffer, or None if it is longer than ``size``."""
        searched = self._start
        while True:
            limit = self._start + size
            feed = self._buffer.find(b"\n", searched, limit)
            if feed >= 0:
                return feed + 1
            if len(self._buffer) > limit:
                return None
            searched = len(self._buffer)
            chunk = next(self._chunks, None)
            if chunk is None:
                return len(self._buffer)
            searched -= self._start
            self._buffer, self._start = self._buffer[self._start :] + chunk, 0

    def _beginning(self, size: int) -> bytes:
        end = self._start + size
        # Not through a UTF-8 character, whose later bytes all begin with the bits 10.
        while end > self._start + size - 3 and self._buffer[end] & 0xC0 == 0x80:
            end -= 1
        data = self._buffer[self._start : end]
        self._pass_to(end)
        return data
