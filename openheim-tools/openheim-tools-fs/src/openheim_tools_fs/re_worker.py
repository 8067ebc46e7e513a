"""A process that matches lines with Python's own regular expressions, so that whoever started it can end it.

Run as a script, with the id of the process that started it as its argument, it reads one JSON line with ``pattern``
and ``ignore_case`` and answers with one (``error`` or nothing in it). Then it reads blocks of UTF-8, each after its
length (8 bytes, big-endian), and answers each with the number of matches and their offsets in the block (8 bytes each):
the first match of every line that has one. To a block in which it gets stuck it answers :data:`TOO_SLOW`, and
:data:`EXHAUSTED` once that has cost too much in all blocks together; then there is no sense in sending more.

A pattern that backtracks without end shows in how little text it gets through. So some lines at a time are granted what
the slowest pattern needs that goes on steadily. Only time beyond that counts, and a slow pattern may go on for ever.

It ends with its input. In the midst of a match it cannot see that end, so it ends by itself when the process that
started it is gone, and in any case after :data:`LIMIT_SECS` with one block.
"""

from __future__ import annotations

import json
import os
import re
import signal
import struct
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("EXHAUSTED", "LIMIT_SECS", "NUMBER", "TOO_SLOW", "end_without", "pieces_of", "serve")

NUMBER = struct.Struct(">Q")

#: These stand in the place of the number of matches.
TOO_SLOW = 2**64 - 1
EXHAUSTED = 2**64 - 2

#: Time of the processor, which a busy machine does not use up: for preparing a pattern; and beyond what is granted, for
#: one piece of text and for all.
PREPARE_SECS = 0.5
BLOCK_SECS = 0.2
SLACK_SECS = 0.6

#: What is granted: something for each piece, which is some lines of together this size, or a longer one. For the first
#: bytes of a piece, a second for so many: steady patterns do twice as many or more in the lines of a program. For all
#: bytes, a second for so many, which in a long line only those patterns do that look at each character a few times.
PIECE_BYTES = 2048
PIECE_SECS = 0.01
FIRST_BYTES = 2 * PIECE_BYTES
FIRST_BYTES_PER_SEC = 100_000
BYTES_PER_SEC = 1_000_000
MAX_GRANTED_SECS = 3.0

#: Whoever asks has given up long before.
LIMIT_SECS = 30.0

#: Seconds of processor time after which it is looked at again how the time goes, and whether anybody is still there.
_LOOK_SECS = 0.02

_due: float | None = None


class _TooSlowError(Exception):
    """The time is used up."""


class _Budget:
    """The time in which a pattern may be stuck."""

    def __init__(self) -> None:
        self._left = SLACK_SECS

    @property
    def is_exhausted(self) -> bool:
        return self._left <= 0

    @contextmanager
    def limited(self, size: int) -> Iterator[None]:
        """Matches a piece of ``size`` bytes.

        Raises:
            _TooSlowError: it is given up, or was the last for which there was time.
        """
        granted = PIECE_SECS + min(size, FIRST_BYTES) / FIRST_BYTES_PER_SEC + size / BYTES_PER_SEC
        granted = min(granted, MAX_GRANTED_SECS)
        begin = time.process_time()
        try:
            with _due_at(begin + granted + min(BLOCK_SECS, max(0.0, self._left))):
                yield
        finally:
            self._left -= max(0.0, time.process_time() - begin - granted)
        if self.is_exhausted:
            raise _TooSlowError


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answers until ``requests`` ends."""
    request = json.loads(requests.readline())
    answer = {}
    try:
        with _alarm(), _due_at(time.process_time() + PREPARE_SECS):
            pattern = re.compile(request["pattern"], re.IGNORECASE if request["ignore_case"] else 0)
    except (re.error, RecursionError, OverflowError) as err:
        answer["error"] = str(err)
    except _TooSlowError:
        answer["error"] = "it takes too long to be prepared"
    answers.write(json.dumps(answer).encode() + b"\n")
    answers.flush()
    budget = _Budget()
    while not answer and len(length := requests.read(NUMBER.size)) == NUMBER.size:
        block = requests.read(NUMBER.unpack(length)[0])
        try:
            with _alarm():
                hits = _hits(pattern, block, budget)
            answers.write(NUMBER.pack(len(hits)) + b"".join(map(NUMBER.pack, hits)))
        except _TooSlowError:
            answers.write(NUMBER.pack(EXHAUSTED if budget.is_exhausted else TOO_SLOW))
        answers.flush()


def end_without(parent: int) -> None:
    """Ends this process soon after ``parent`` has ended, also in the midst of a match, if the system has timers.

    Matching looks for signals every now and then. Time is that of the processor, so that waiting costs nothing. A match
    that takes too long is ended here too.
    """

    def look(_number: int, _frame: object) -> None:
        if os.getppid() != parent:
            os._exit(1)
        if _due is not None and time.process_time() > _due:
            raise _TooSlowError

    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGVTALRM, look)
        signal.setitimer(signal.ITIMER_VIRTUAL, _LOOK_SECS, _LOOK_SECS)


def pieces_of(block: bytes, size: int) -> Iterator[tuple[int, bytes]]:
    """The lines of a block, some at a time: as many as have this size together, and where they begin."""
    begin = 0
    while begin < len(block):
        end = block.find(b"\n", begin + size - 1) + 1 or len(block)
        yield begin, block[begin:end]
        begin = end


@contextmanager
def _alarm() -> Iterator[None]:
    """If what is done in the block takes very long, the system ends this process."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # It may have been started with the signal ignored.
    signal.setitimer(signal.ITIMER_REAL, LIMIT_SECS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def _due_at(moment: float) -> Iterator[None]:
    """Sets the time of the processor at which what is done in the block is to end, if the system has timers."""
    global _due
    _due = moment
    try:
        yield
    finally:
        _due = None


def _hits(pattern: re.Pattern[str], block: bytes, budget: _Budget) -> list[int]:
    hits = []
    for begin, piece in pieces_of(block, PIECE_BYTES):
        with budget.limited(len(piece)):
            start = begin
            for line in piece.removesuffix(b"\n").split(b"\n"):
                # Text and not bytes, so that a letter is one character. What is no UTF-8 keeps its place.
                text = line.decode("utf-8", errors="surrogateescape")
                if (match := pattern.search(text)) is not None:
                    hits.append(start + len(text[: match.start()].encode("utf-8", errors="surrogateescape")))
                start += len(line) + 1
    return hits


if __name__ == "__main__":
    end_without(int(sys.argv[1]))
    serve(sys.stdin.buffer, sys.stdout.buffer)
