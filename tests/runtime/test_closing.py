"""The end of a runtime, and of turns that somebody else ends."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from openheim import tool
from openheim.store import SessionLog
from openheim.testing import Pause, ScriptedProvider, reply_text, reply_tool_calls
from tests.runtime.test_live import make_runtime

pytestmark = pytest.mark.anyio


async def test_the_runtime_waits_for_turns_to_end_in_order(tmp_path: Path) -> None:
    release = threading.Event()
    started = anyio.Event()

    @tool
    async def works() -> str:
        started.set()
        await anyio.to_thread.run_sync(release.wait)
        return "done"

    events: list[Any] = []
    async with anyio.create_task_group() as group:
        async with make_runtime(tools=[works]) as runtime:
            script = [reply_tool_calls(("works", {})), "never"]
            session = runtime.new_session(provider=ScriptedProvider(script), cwd=tmp_path)
            session.stream.attach(events.append)
            group.start_soon(session.run, "go")
            with anyio.fail_after(10):
                await started.wait()
            threading.Timer(0.05, release.set).start()
        assert not session.running
        assert events[-1].type == "turn_finished"
        assert [message.role for message in runtime.store.load(session.id).messages] == ["user", "assistant", "tool"]


async def test_a_turn_whose_task_is_cancelled_ends_for_its_watchers_too(tmp_path: Path) -> None:
    pause = Pause()
    events: list[Any] = []
    async with make_runtime() as runtime:
        session = runtime.new_session(provider=ScriptedProvider([reply_text("a", pause)]), cwd=tmp_path)
        session.stream.attach(events.append)
        async with anyio.create_task_group() as group:
            group.start_soon(session.run, "go")
            with anyio.fail_after(10):
                await pause.reached()
            group.cancel_scope.cancel()
        assert (events[-1].type, events[-1].stop_reason) == ("turn_finished", "cancelled")
        records = runtime.store.load(session.id).records
        assert [record["stop_reason"] for record in records if record["record"] == "turn_end"] == ["cancelled"]


async def test_files_that_cannot_be_flushed_are_reported_once_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: list[str] = []
    real = SessionLog.prepare_sync
    failures = [OSError(24, "Too many open files")] * 2

    def sometimes(self: SessionLog) -> Any:
        if failures:
            raise failures.pop()
        synced.set()
        return real(self)

    synced = anyio.Event()
    monkeypatch.setattr(SessionLog, "prepare_sync", sometimes)
    async with make_runtime(report=reports.append) as runtime:
        session = runtime.new_session(provider=ScriptedProvider(["one", "two"]), cwd=tmp_path)
        await session.run("go")
        with anyio.fail_after(10):
            await synced.wait()
        assert (await session.run("on")).text == "two"
    assert [line for line in reports if "may not be saved" in line] == [
        "a session may not be saved: [Errno 24] Too many open files"
    ]


async def test_tools_are_told_of_their_own_sessions_boundary(tmp_path: Path) -> None:
    from openheim import hookimpl

    seen: list[Path] = []

    class Toolset:
        @hookimpl
        def openheim_tools(self, context: Any) -> list[Any]:
            seen.append(context.work_dir)
            return []

    runtime = make_runtime()
    runtime.host.register(Toolset(), kind="tools", name="looks")
    for name in ("a", "b", "a"):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        runtime.new_session(provider=ScriptedProvider([]), cwd=folder)
    assert seen == [tmp_path / "a", tmp_path / "b"]
