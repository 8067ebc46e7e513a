"""Calls of one reply that write to the same place."""

from __future__ import annotations

import random

import anyio
import anyio.lowlevel
import pytest

from openheim import tool
from openheim.testing import reply_tool_calls
from tests.agent.sessions import scripted_session

pytestmark = pytest.mark.anyio


async def _interleaved(rounds: int, seed: int) -> None:
    """Counters are read, left to other tasks for a random while, and written back: the worst that an edit can do."""
    chance = random.Random(seed)
    counters: dict[str, list[int]] = {"a": [], "b": []}

    @tool(kind="edit", target=lambda arguments, turn: str(arguments["path"]))
    async def add(path: str, number: int) -> str:
        before = list(counters[path])
        for _ in range(chance.randrange(4)):
            await anyio.lowlevel.checkpoint()
        counters[path] = [*before, number]
        return "ok"

    expected: dict[str, list[int]] = {"a": [], "b": []}
    script = []
    for number in range(rounds):
        calls = []
        for offset in range(chance.randrange(2, 5)):
            path = chance.choice("ab")
            expected[path].append(number * 10 + offset)
            calls.append(("add", {"path": path, "number": number * 10 + offset}))
        script.append(reply_tool_calls(*calls))
    async with scripted_session([*script, "done"], tools=[add], max_iterations=rounds + 1) as run:
        outcome = await run.session.run("go")
    assert outcome.text == "done"
    # Nothing lost, and in call order.
    assert counters == expected


@pytest.mark.slow
async def test_random_interleavings_lose_no_update(long_counts: bool) -> None:
    await _interleaved(1000 if long_counts else 100, seed=2)


async def test_writes_to_different_paths_run_concurrently() -> None:
    both = anyio.Event()
    running: set[str] = set()

    @tool(kind="edit", target=lambda arguments, turn: str(arguments["path"]))
    async def write(path: str) -> str:
        running.add(path)
        if len(running) == 2:
            both.set()
        await both.wait()
        return path

    script = [reply_tool_calls(("write", {"path": "a"}), ("write", {"path": "b"})), "ok"]
    async with scripted_session(script, tools=[write]) as run:
        with anyio.fail_after(10):
            await run.session.run("go")
    assert [result.content for result in run.results()] == ["a", "b"]


async def test_a_write_waits_for_an_earlier_one_that_is_denied_or_fails() -> None:
    @tool(kind="edit", target=lambda arguments, turn: "same")
    async def write(fail: bool) -> str:
        if fail:
            raise ValueError("no")
        return "written"

    script = [reply_tool_calls(("write", {"fail": True}), ("write", {"fail": False})), "ok"]
    async with scripted_session(script, tools=[write]) as run:
        with anyio.fail_after(10):
            await run.session.run("go")
    assert [result.is_error for result in run.results()] == [True, False]
