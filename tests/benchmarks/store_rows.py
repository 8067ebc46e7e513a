"""The history: one more message in a session of any length, a long session read back, ten thousand sessions listed."""

from __future__ import annotations

import json
import random
import string
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from openheim.messages import Message, TextBlock, ToolResultBlock, ToolUseBlock, Usage
from openheim.store import HistoryStore, SessionMeta
from openheim.store.index import SessionIndex
from tests.benchmarks.measure import Row, median

LENGTHS = (10, 1_000, 10_000)
TIMED = 200

#: Messages of the session that is read back, and how often that is done.
LONG, READS = 10_000, 5

#: Sessions of the history that is listed, messages of each, and words of each message.
SESSIONS, MESSAGES, WORDS = 10_000, 10, 60

NOW = "2026-01-01T00:00:00.000Z"


def store_rows(scratch: Path, rounds: int) -> list[Row]:
    return [*append_rows(scratch, rounds), load_row(scratch), *index_rows(scratch)]


def append_rows(scratch: Path, rounds: int) -> list[Row]:
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


def load_row(scratch: Path) -> Row:
    """A session of 10,000 messages, text and tools in turn, against reading its lines as JSON and no more."""
    store = HistoryStore(scratch / "history")
    session_id = str(uuid.uuid4())
    log = store.log(session_id)
    for number in range(LONG // 4):
        for one in turn(number):
            log.append(one)
    log.close()
    store.write_meta(SessionMeta(session_id, NOW, NOW))

    def load() -> None:
        assert len(store.load(session_id).messages) == LONG

    def parse() -> None:
        assert len([json.loads(line) for line in log.path.read_bytes().splitlines()]) == LONG

    loads, parses = [], []
    for _ in range(READS):
        loads.append(timed(load))
        parses.append(timed(parse))
    return Row(f"load a session of {LONG:,}", median(loads) * 1e3, "ms", median(parses) * 1e3, "json a line", 150)


def index_rows(scratch: Path) -> list[Row]:
    """The index of a history of 10,000 sessions: made from nothing, asked, asked after a change."""
    store = HistoryStore(scratch / "many" / "history")
    store.prepare()
    fill(store)
    # Changes of the last moment are looked at twice, and these are not to be.
    time.sleep(0.2)
    index = SessionIndex(store)
    rebuild = timed(lambda: index.page())
    newest = [timed(lambda: index.page()) for _ in range(20)]
    meta = index.page().rows[-1].meta

    def change() -> None:
        store.write_meta(meta)
        index.page()

    changed = [timed(change) for _ in range(5)]
    searched = [timed(lambda: index.search("needle")) for _ in range(5)]
    return [
        Row(f"newest 50 of {SESSIONS:,} sessions", median(newest) * 1e3, "ms", limit=5),
        Row("the same after one was changed", median(changed) * 1e3, "ms"),
        Row(f"search {SESSIONS * MESSAGES:,} messages for a word", median(searched) * 1e3, "ms"),
        Row(f"rebuild the index of {SESSIONS:,} sessions", rebuild, "s", limit=10),
    ]


def fill(store: HistoryStore) -> None:
    chance = random.Random(1)
    words = ["".join(chance.choices(string.ascii_lowercase, k=chance.randint(2, 9))) for _ in range(20_000)]
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(SESSIONS):
        session_id = str(uuid.UUID(int=chance.getrandbits(128), version=4))
        log = store.log(session_id)
        for place in range(MESSAGES):
            text = " ".join(chance.choices(words, k=WORDS)) + (" needle" if number == place == 5 else "")
            role, usage = ("assistant", Usage(100, 10)) if place % 2 else ("user", None)
            log.append(Message(role, (TextBlock(text),), f"{number}-{place}", NOW, place // 2 + 1, usage=usage))
        log.close()
        updated = (start + timedelta(minutes=number)).isoformat()
        store.write_meta(SessionMeta(session_id, NOW, updated, title=f"session {number}", cwd="/work"))


def turn(number: int) -> list[Message]:
    """A prompt, a call, its result and an answer."""
    usage = Usage(100, 20, 3, 4)
    made = {"provider": "openai", "model": "m", "wire": "chat", "usage": usage, "turn": number + 1}
    call = ToolUseBlock(f"call_{number}", "read_file", '{"path":"notes/today.md"}')
    result = ToolResultBlock(f"call_{number}", "read_file", "z" * 400)
    return [
        message(number),
        Message("assistant", (TextBlock("y" * 100), call), f"c{number}", NOW, stop_reason="tool_use", **made),
        Message("tool", (result,), f"r{number}", NOW, number + 1, 3),
        Message("assistant", (TextBlock("y" * 400),), f"a{number}", NOW, stop_reason="end_turn", **made),
    ]


def message(number: int) -> Message:
    return Message("user", (TextBlock("x" * 400),), id=f"m{number}", created_at=NOW)


def timed(call: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
