"""The beginning and the end of a stream, kept while it is read, in bounded memory."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from openheim_tools_shell.text import PlainText

__all__ = ("KeptOutput", "Piece")

#: Bytes that are kept of one stream.
STREAM_LIMIT_BYTES = 64 * 1024

#: How much of a cut's end may be given up so that it falls between lines.
_MAX_CUT_BYTES = 400


@dataclass(slots=True, frozen=True)
class Piece:
    """What was kept of ``total`` bytes of plain text: all of it is ``head`` if nothing was left out."""

    head: bytes
    tail: bytes
    total: int

    @property
    def size(self) -> int:
        return len(self.head) + len(self.tail)

    def text(self, limit_bytes: int, advice: str) -> str:
        """The text within ``limit_bytes``, with a note where something was left out.

        Args:
            advice: what the note says beside how much that is.
        """
        if self.size == self.total and self.size <= limit_bytes:
            return (self.head + self.tail).decode("utf-8", "ignore")
        head_size = min(len(self.head), limit_bytes // 2)
        tail_size = min(limit_bytes - head_size, self.size - head_size)
        both = self.head + self.tail
        head, tail = both[:head_size], both[len(both) - tail_size :]
        # Cuts fall between lines where one ends nearby.
        if (end := head.rfind(b"\n", max(0, len(head) - _MAX_CUT_BYTES))) >= 0:
            head = head[: end + 1]
        if (start := tail.find(b"\n", 0, _MAX_CUT_BYTES)) >= 0:
            tail = tail[start + 1 :]
        # A cut may fall inside a character; the halves of it are dropped.
        first, last = head.decode("utf-8", "ignore"), tail.decode("utf-8", "ignore")
        left_out = self.total - len(first.encode()) - len(last.encode())
        gap = "" if first.endswith("\n") or not first else "\n"
        return f"{first}{gap}[... {left_out:,} of {self.total:,} bytes left out here; {advice} ...]\n{last}"


class KeptOutput:
    """One stream. A thread feeds it while another takes from it."""

    def __init__(self, limit_bytes: int = STREAM_LIMIT_BYTES) -> None:
        self._lock = threading.Lock()
        self._lines = PlainText()
        self._room = limit_bytes // 2
        self._start()

    def _start(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def feed(self, data: bytes) -> None:
        with self._lock:
            self._add(self._lines.feed(data))

    def finish(self) -> None:
        """Nothing comes any more."""
        with self._lock:
            self._add(self._lines.flush(final=True))

    def take(self) -> Piece:
        """What came since this was last asked."""
        with self._lock:
            self._add(self._lines.flush())
            tail = bytes(self._tail[max(0, len(self._tail) - self._room) :])
            piece = Piece(bytes(self._head), tail, self._total)
            self._start()
            return piece

    def last_line(self) -> str:
        """The last line with something in it, for watchers; blank if there is none nearby."""
        with self._lock:
            if line := self._lines.open_line.strip():
                return line
            end = bytes((self._tail or self._head)[-1024:])
        lines = end.decode("utf-8", "ignore").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def _add(self, text: str) -> None:
        data = text.encode()
        self._total += len(data)
        if (room := self._room - len(self._head)) > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self._room:
            # Now and then and not each time, so that a byte is moved only once or twice.
            del self._tail[: len(self._tail) - self._room]
