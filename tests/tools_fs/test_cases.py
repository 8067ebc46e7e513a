"""The cases of ``tests/cases/files`` and ``tests/cases/sandbox``: inputs that broke other agents' file tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from openheim import ToolError
from openheim.testing import FakeTurn
from tests.tools_fs.calls import call
from tests.tools_fs.cases import Case, Outcome, cases, check, lay_out, put_in, racing, tree

pytestmark = pytest.mark.anyio

LONGEST_CALL_SECS = 30


async def outcome_of(turn: FakeTurn, tool: str, arguments: Mapping[str, Any], within_s: float) -> Outcome:
    """Anything but a result or a ToolError fails the test."""
    with anyio.fail_after(within_s):
        try:
            return Outcome(True, await call(turn, tool, **arguments))
        except ToolError as err:
            return Outcome(False, str(err))


async def ticks_during(turn: FakeTurn, tool: str, arguments: Mapping[str, Any], within_s: float) -> tuple[Outcome, int]:
    """The outcome, and how often other work of the event loop came to its turn meanwhile."""
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await anyio.lowlevel.checkpoint()
            ticks += 1

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        outcome = await outcome_of(turn, tool, arguments, within_s)
        group.cancel_scope.cancel()
    return outcome, ticks


@pytest.mark.parametrize("case", [*cases("files"), *cases("sandbox")], ids=lambda case: case.name)
async def test_case(case: Case, tmp_path: Path) -> None:
    work, out = tmp_path / "work", tmp_path / "out"
    lay_out(case, work, out)
    before, outside = tree(work), tree(out)
    given = work
    if case.data.get("work_is_link"):
        given = tmp_path / "link-to-work"
        given.symlink_to(work)
    turn = FakeTurn(given)
    tool, arguments = case.data["call"]["tool"], put_in(case.data["call"]["arguments"], work, out)
    expect = put_in(case.data["expect"], work, out)
    within_s = expect.get("within_s", LONGEST_CALL_SECS)

    if race := put_in(case.data.get("race"), work, out):
        with racing(race, work):
            for _ in range(race["tries"]):
                await outcome_of(turn, tool, arguments, within_s)
        assert tree(out) == outside
        return

    for path in (arguments.get("path"), *put_in(case.data.get("more_paths", []), work, out)):
        spelled = arguments if path is None else {**arguments, "path": path}
        outcome, ticks = await ticks_during(turn, tool, spelled, within_s)
        assert not check(expect, outcome, before, work, arguments.get("path", "")), outcome
        assert tree(out) == outside
        assert ticks > 0 or "loop_stays_alive" not in expect
    for name in expect.get("outside_must_not_exist", ()):
        assert not (out / name).exists()
    if "follow_up" in expect:
        assert await follow_up(turn, tool, arguments, outcome.text) != outcome.text
    if also := put_in(case.data.get("also"), work, out):
        outcome = await outcome_of(turn, also["tool"], also["arguments"], within_s)
        assert not check(also["expect"], outcome, before, work, ""), outcome


async def follow_up(turn: FakeTurn, tool: str, arguments: Mapping[str, Any], text: str) -> str:
    """The text of the call that the note at the end of ``text`` asks for."""
    note = re.search(r"go on with offset=(\d+)(?: and column=(\d+))?", text[-300:])
    assert note is not None, text[-300:]
    more = {"offset": int(note[1])} | ({"column": int(note[2])} if note[2] else {})
    outcome = await outcome_of(turn, tool, {**arguments, **more}, LONGEST_CALL_SECS)
    assert outcome.ok
    return outcome.text


def test_there_are_cases() -> None:
    assert len([*cases("files")]) >= 22
    assert len([*cases("sandbox")]) >= 9
