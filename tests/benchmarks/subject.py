"""One subject doing one kind of work, in a process of its own: ``python -m tests.benchmarks.subject raw turn PORT``.

Prints its figures as one JSON object. What is timed is the same code for every subject.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.measure import allow_many_descriptors, median

TURNS = 300
#: A conversation of the ``turn`` row is begun anew after so many turns, so that its length plays no part.
TURNS_PER_CONVERSATION = 20
DELTAS = 20_000
SESSIONS = 1000
LOOPS = (20, 100, 1000)
DELTAS_PER_SESSION = 20


def make_subject(name: str, port: int) -> Any:
    """A subject by its name: ``raw``, ``httpx``, ``openheim``, or ``openheim:WIRE``."""
    if name == "raw":
        from tests.benchmarks.floors import raw_subject

        return raw_subject(port)
    if name == "httpx":
        from tests.benchmarks.floors import httpx_subject

        return httpx_subject(port)
    from tests.benchmarks.library import OpenheimSubject

    _, _, wire = name.partition(":")

    modes = (f"stream{DELTAS}", f"drip{DELTAS}", f"stream{DELTAS_PER_SESSION}", *(f"loop{count}" for count in LOOPS))
    return OpenheimSubject(port, ("turn", *modes), wire or "chat")


async def turn(subject: Any) -> dict[str, float]:
    walls: list[float] = []
    cpu = 0.0
    for number in range(TURNS_PER_CONVERSATION + TURNS):
        if number % TURNS_PER_CONVERSATION == 0:
            one_turn = await subject.conversation("turn")
        start, cpu_start = time.perf_counter(), time.process_time()
        await one_turn()
        if number >= TURNS_PER_CONVERSATION:
            walls.append(time.perf_counter() - start)
            cpu += time.process_time() - cpu_start
    return {"wall_us": median(walls) * 1e6, "cpu_us": cpu / TURNS * 1e6}


async def _warm(subject: Any) -> None:
    one_turn = await subject.conversation("turn")
    for _ in range(3):
        await one_turn()


async def loop(subject: Any, rounds: int) -> dict[str, float]:
    await _warm(subject)
    one_turn = await subject.conversation(f"loop{rounds}")
    start = time.perf_counter()
    await one_turn()
    return {"ms_per_round": (time.perf_counter() - start) / rounds * 1000}


async def stream(subject: Any, mode: str) -> dict[str, float]:
    await _warm(subject)
    one_turn = await subject.conversation(f"{mode}{DELTAS}")
    start = time.process_time()
    await one_turn()
    return {"cpu_us_per_delta": (time.process_time() - start) / DELTAS * 1e6}


async def sessions(subject: Any) -> dict[str, float]:
    await _warm(subject)
    before = resident_kib()
    start = time.perf_counter()
    await subject.many(f"stream{DELTAS_PER_SESSION}", SESSIONS)
    wall = time.perf_counter() - start
    return {"wall_ms": wall * 1000, "kib_per_session": (resident_kib() - before) / SESSIONS}


def resident_kib() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1])
    raise RuntimeError("the kernel does not say how much memory is resident")


async def measured(name: str, work: str, port: int) -> dict[str, float]:
    async with make_subject(name, port) as subject:
        match work:
            case "turn":
                return await turn(subject)
            case "stream" | "drip":
                return await stream(subject, work)
            case "sessions":
                return await sessions(subject)
        return await loop(subject, int(work.removeprefix("loop")))


if __name__ == "__main__":
    allow_many_descriptors()
    figures = asyncio.run(measured(sys.argv[1], sys.argv[2], int(sys.argv[3])))
    sys.stdout.write(json.dumps(figures) + "\n")
