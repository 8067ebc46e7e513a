"""A process that matches lines with Python's own regular expressions, so that whoever started it can end it.

Run as a script, it reads one JSON line with ``pattern`` and ``ignore_case`` and answers with one (``error`` or nothing
in it). Then it reads blocks of UTF-8, each after its length (8 bytes, big-endian), and answers each with the number of
matches and their offsets in the block (8 bytes each): the first match of every line that has one.
"""

from __future__ import annotations

import json
import re
import struct
import sys
from typing import BinaryIO

__all__ = ("NUMBER", "serve")

NUMBER = struct.Struct(">Q")


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answers until ``requests`` ends."""
    request = json.loads(requests.readline())
    answer = {}
    try:
        pattern = re.compile(request["pattern"], re.IGNORECASE if request["ignore_case"] else 0)
    except (re.error, RecursionError, OverflowError) as err:
        answer["error"] = str(err)
    answers.write(json.dumps(answer).encode() + b"\n")
    answers.flush()
    while not answer and len(length := requests.read(NUMBER.size)) == NUMBER.size:
        block = requests.read(NUMBER.unpack(length)[0])
        hits = _hits(pattern, block)
        answers.write(NUMBER.pack(len(hits)) + b"".join(map(NUMBER.pack, hits)))
        answers.flush()


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
    serve(sys.stdin.buffer, sys.stdout.buffer)
