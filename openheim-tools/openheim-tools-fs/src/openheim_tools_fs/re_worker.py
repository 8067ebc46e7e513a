"""A process that matches lines with Python's own regular expressions, so that whoever started it can end it.

Run as a script, with the id of the process that started it as its argument, it reads one JSON line with ``pattern``
and ``ignore_case`` and answers with one (``error`` or nothing in it). Then it reads blocks of UTF-8, each after its
length (8 bytes, big-endian), and answers each with the number of matches and their offsets in the block (8 bytes each):
the first match of every line that has one. To a block that takes too much of the processor's time it answers
:data:`TOO_SLOW`, and :data:`EXHAUSTED` once all blocks together have; then there is no sense in sending more.

A pattern that backtracks without end shows in how little text it gets through. So time is granted for what was got
through, at a small part of the speed of plain patterns, and a little beside that.

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

__all__ = ("EXHAUSTED", "LIMIT_SECS", "NUMBER", "TOO_SLOW", "end_without", "serve")

NUMBER = struct.Struct(">Q")

#: These stand in the place of the number of matches.
TOO_SLOW = 2**64 - 1
EXHAUSTED = 2**64 - 2

#: Time of the processor, which a busy machine does not use up: for preparing a pattern; beside what is granted for the
#: text, for one block and for all; and the bytes for which a second is granted. Plain patterns do ten times as many.
PREPARE_SECS = 0.5
BLOCK_SECS = 0.2
SLACK_SECS = 0.6
BYTES_PER_SEC = 4_000_000

#: Whoever asks has given up long before.
LIMIT_SECS = 30.0

#: Seconds of processor time after which it is looked at again how the time goes, and whether anybody is still there.
_LOOK_SECS = 0.05

_due: float | None = None


class _TooSlowError(Exception):
    """The block has used up its time."""


class _Budget:
    """The time that blocks may take."""

    def __init__(self) -> None:
        self._left = SLACK_SECS

    @property
    def is_exhausted(self) -> bool:
        return self._left <= 0

    @contextmanager
    def limited(self, size: int) -> Iterator[None]:
        """Matches a block of ``size`` bytes."""
        granted = size / BYTES_PER_SEC
        begin = time.process_time()
        try:
            with _limited(granted + min(BLOCK_SECS, max(0.0, self._left))):
                yield
            self._left += granted
        finally:
            self._left -= time.process_time() - begin


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answers until ``requests`` ends."""
    request = json.loads(requests.readline())
    answer = {}
    try:
        with _limited(PREPARE_SECS):
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
            with budget.limited(len(block)):
                hits = _hits(pattern, block)
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


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Sets the limits for what is done in the block; by a longer one the system ends this process."""
    global _due
    if not hasattr(signal, "setitimer"):
        yield
        return
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # It may have been started with the signal ignored.
    signal.setitimer(signal.ITIMER_REAL, LIMIT_SECS)
    _due = time.process_time() + seconds
    try:
        yield
    finally:
        _due = None
        signal.setitimer(signal.ITIMER_REAL, 0)


def _hits(pattern: re.Pattern[str], block: bytes) -> list[int]:
    hits = []
    start = 0
    for line in block.split(b"\n"):
        # Text and not bytes, so that a letter is one character. What is no UTF-8 keeps its place.
        text = line.decode("utf-8", errors="surrogateescape")
        if start < len(block) and (match := pattern.search(text)) is not None:
            hits.append(start + len(text[: match.start()].encode("utf-8", errors="surrogateescape")))
        start += len(line) + 1
    return hits


if __name__ == "__main__":
    end_without(int(sys.argv[1]))
    serve(sys.stdin.buffer, sys.stdout.buffer)
