"""Tools that keep something for a session: they learn of its end, and an idle session stays for their sake."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio
import pytest

from openheim import Runtime, Session, Turn
from openheim.testing import Pause, ScriptedProvider, reply_text, reply_tool_calls
from tests.runtime.test_live import make_runtime

pytestmark = pytest.mark.anyio


class Keeper:
    """A tool that keeps something for each session that called it."""

    name = "keep"
    description = "Keeps something."
    parameters: Mapping[str, Any] = MappingProxyType({"type": "object", "properties": {}})

    def __init__(self) -> None:
        self.kept: set[str] = set()
        self.closed: list[str] = []

    async def run(self, arguments: dict[str, Any], turn: Turn) -> str:
        self.kept.add(turn.session_id)
        return "kept"

    def keeps_session(self, session_id: str) -> bool:
        return session_id in self.kept

    async def close_session(self, session_id: str) -> None:
        await anyio.lowlevel.checkpoint()
        self.closed.append(session_id)
        self.kept.discard(session_id)


async def called(runtime: Runtime, cwd: Path) -> Session:
    """A session that has called the tool."""
    script = [reply_tool_calls(("keep", {})), "done"]
    session = runtime.new_session(provider=ScriptedProvider(script), cwd=cwd, gate="allow")
    await session.run("go")
    return session


async def test_a_closed_session_is_closed_for_the_tools_that_it_called(tmp_path: Path) -> None:
    keeper = Keeper()
    async with make_runtime(tools=[keeper]) as runtime:
        session, other = await called(runtime, tmp_path), await called(runtime, tmp_path)
        never = runtime.new_session(provider=ScriptedProvider([]), cwd=tmp_path)
        runtime.close_session(never)
        runtime.close_session(session)
        with anyio.fail_after(10):
            while not keeper.closed:
                await anyio.lowlevel.checkpoint()
        assert keeper.closed == [session.id]
        assert keeper.kept == {other.id}
    assert keeper.closed == [session.id, other.id]


async def test_the_end_of_a_runtime_waits_for_tools_also_when_it_is_cancelled(tmp_path: Path) -> None:
    keeper = Keeper()
    with anyio.CancelScope() as scope:
        async with make_runtime(tools=[keeper]) as runtime:
            session = await called(runtime, tmp_path)
            scope.cancel()
            await anyio.sleep_forever()
    assert keeper.closed == [session.id]


async def test_a_session_closed_during_its_turn_is_closed_after_it(tmp_path: Path) -> None:
    keeper, pause = Keeper(), Pause()
    async with make_runtime(tools=[keeper]) as runtime, anyio.create_task_group() as group:
        script = [reply_tool_calls(("keep", {})), reply_text("a", pause)]
        session = runtime.new_session(provider=ScriptedProvider(script), cwd=tmp_path, gate="allow")
        group.start_soon(session.run, "go")
        with anyio.fail_after(10):
            await pause.reached()
            assert keeper.closed == []
            runtime.close_session(session)
            await session.wait_until_idle()
            while not keeper.closed:
                await anyio.lowlevel.checkpoint()
    assert keeper.closed == [session.id]


async def test_what_a_tool_keeps_keeps_its_session_in_memory(tmp_path: Path) -> None:
    keeper = Keeper()
    async with make_runtime(tools=[keeper], settings={"sessions": {"max_live": 1}}) as runtime:
        session = await called(runtime, tmp_path)
        for _ in range(3):
            runtime.new_session(provider=ScriptedProvider([]), cwd=tmp_path)
        assert runtime.live.get(session.id) is session
        assert len(runtime.live) == 2
        keeper.kept.clear()
        runtime.new_session(provider=ScriptedProvider([]), cwd=tmp_path)
        assert runtime.live.get(session.id) is None
    assert keeper.closed == [session.id]


async def test_tools_that_fail_at_it_are_logged_and_keep_nothing_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(Keeper):
        def keeps_session(self, session_id: str) -> bool:
            raise ValueError("no idea")

        async def close_session(self, session_id: str) -> None:
            raise ValueError("no way")

    class Slow(Keeper):
        name = "slow"

        def keeps_session(self, session_id: str) -> bool:
            return False

        async def close_session(self, session_id: str) -> None:
            await anyio.sleep_forever()

    monkeypatch.setattr("openheim.agent.turn.CLOSE_SECS", 0.01)
    with caplog.at_level(logging.WARNING):
        async with make_runtime(tools=[Broken(), Slow()]) as runtime:
            script = [reply_tool_calls(("keep", {}), ("slow", {})), "done"]
            session = runtime.new_session(provider=ScriptedProvider(script), cwd=tmp_path, gate="allow")
            await session.run("go")
            assert not session.is_kept
    said = "\n".join(record.getMessage() for record in caplog.records)
    assert "tool keep failed to close the session: ValueError: no way" in said
    assert "tool keep cannot say whether it keeps the session: ValueError: no idea" in said
    assert "tool slow did not close the session within 0.01 s" in said


async def test_nothing_is_closed_for_a_call_outside_of_a_session(tmp_path: Path) -> None:
    keeper = Keeper()
    async with make_runtime(tools=[keeper], settings={"permissions": {"gate": "allow"}}) as runtime:
        assert not (await runtime.call_tool("keep", "{}", cwd=tmp_path)).is_error
    assert keeper.kept == {""}
    assert keeper.closed == []
