"""A process that matches lines with Python's own regular expressions, so that whoever started it can end it.

Run as a script, with the id of the process that started it as its argument, it reads one JSON line with ``pattern``
and ``ignore_case`` and answers with one (``error`` or nothing in it). Then it reads blocks of UTF-8, each after its
length (8 bytes, big-endian), and answers each with the number of matches and their offsets in the block (8 bytes each):
the first match of every line that has one.

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
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("LIMIT_SECS", "NUMBER", "end_without", "serve")

NUMBER = struct.Struct(">Q")

#: Whoever asks has given up long before.
LIMIT_SECS = 30.0

#: Seconds of processor time after which it is looked at again whether anybody is still there.
_LOOK_SECS = 0.25


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answers until ``requests`` ends."""
    request = json.loads(requests.readline())
    answer = {}
    try:
        with _limited():
            pattern = re.compile(request["pattern"], re.IGNORECASE if request["ignore_case"] else 0)
    except (re.error, RecursionError, OverflowError) as err:
        answer["error"] = str(err)
    answers.write(json.dumps(answer).encode() + b"\n")
    answers.flush()
    while not answer and len(length := requests.read(NUMBER.size)) == NUMBER.size:
        block = requests.read(NUMBER.unpack(length)[0])
        with _limited():
            hits = _hits(pattern, block)
        answers.write(NUMBER.pack(len(hits)) + b"".join(map(NUMBER.pack, hits)))
        answers.flush()


def end_without(parent: int) -> None:
    """Ends this process soon after ``parent`` has ended, also in the midst of a match, if the system has timers.

    Matching looks for signals every now and then. Time is that of the processor, so that waiting costs nothing.
    """

    def look(_number: int, _frame: object) -> None:
        if os.getppid() != parent:
            os._exit(1)

    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGVTALRM, look)
        signal.setitimer(signal.ITIMER_VIRTUAL, _LOOK_SECS, _LOOK_SECS)


@contextmanager
def _limited() -> Iterator[None]:
    """Has the system end this process if the block takes too long."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # It may have been started with the signal ignored.
    signal.setitimer(signal.ITIMER_REAL, LIMIT_SECS)
    try:
        yield
    finally:
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
