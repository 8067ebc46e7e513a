"""The history file: what one more message costs in a session of any length."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

from openheim.messages import Message, TextBlock
from openheim.store import HistoryStore
from tests.benchmarks.measure import Row, median

LENGTHS = (10, 1_000, 10_000)
TIMED = 200


def store_rows(scratch: Path, rounds: int) -> list[Row]:
    """Appends of 400 bytes of text, against a plain ``write`` of the same bytes to an open file."""
    store = HistoryStore(scratch / "history")
    store.prepare()
    rows = []
    for length in LENGTHS:
        appends: list[float] = []
        writes: list[float] = []
        for _ in range(rounds):
            log = store.log(str(uuid.uuid4()))
            for number in range(length):
                log.append(message(number))
            lines = log.path.read_bytes().splitlines(keepends=True)
            with open(scratch / "plain", "ab", buffering=0) as plain:
                for number in range(TIMED):
                    one = message(length + number)
                    start = time.perf_counter()
                    log.append(one)
                    middle = time.perf_counter()
                    plain.write(lines[0])
                    writes.append(time.perf_counter() - middle)
                    appends.append(middle - start)
            log.close()
        append, write = median(appends) * 1e6, median(writes) * 1e6
        rows.append(Row(f"append to a session of {length:,}", append, "µs", write, "plain write", 50))
    return rows


def message(number: int) -> Message:
    return Message("user", (TextBlock("x" * 400),), id=f"m{number}", created_at="2026-01-01T00:00:00.000Z")
