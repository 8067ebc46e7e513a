"""The end of a runtime, and of turns that somebody else ends."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from openheim import tool
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


async def test_a_session_that_is_closed_keeps_its_lease_until_its_turn_has_ended(tmp_path: Path) -> None:
    pause = Pause()
    events: list[Any] = []
    async with make_runtime() as runtime, anyio.create_task_group() as group:
        session = runtime.new_session(provider=ScriptedProvider([reply_text("a", pause, "b")]), cwd=tmp_path)
        session.stream.attach(events.append)
        group.start_soon(session.run, "go")
        with anyio.fail_after(10):
            await pause.reached()
            runtime.close_session(session)
            lock = runtime.store.lock_path(session.id)
            assert (session.running, lock.exists()) == (True, True)
            await session.wait_until_idle()
        assert (session.running, lock.exists()) == (False, False)
        assert (events[-1].type, events[-1].stop_reason) == ("turn_finished", "cancelled")
        assert not session.stream.is_watched
        # It ended before the next one begins.
        again = runtime.load_session(session.id, provider=ScriptedProvider(["two"]))
        assert (await again.run("on")).text == "two"
    assert [message.text for message in runtime.store.load(session.id).messages] == ["go", "a", "on", "two"]


@pytest.mark.parametrize("error", [KeyboardInterrupt])
async def test_an_interrupt_is_told_as_a_cancellation(tmp_path: Path, error: type[BaseException]) -> None:
    events: list[Any] = []

    class Interrupting(ScriptedProvider):
        async def generate(self, request: Any, emit: Any) -> Any:
            raise error

    async with make_runtime() as runtime:
        session = runtime.new_session(provider=Interrupting([]), cwd=tmp_path)
        session.stream.attach(events.append)
        with pytest.raises(error):
            await session.run("go")
        assert (events[-1].type, events[-1].stop_reason, events[-1].error) == ("turn_finished", "cancelled", None)


async def test_a_provider_that_ends_the_program_when_it_is_closed_does_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with make_runtime() as runtime:
        session = runtime.new_session(provider="demo", cwd=tmp_path)

        async def aclose() -> None:
            raise SystemExit(3)

        session.binding.provider.aclose = aclose  # type: ignore[attr-defined]  # what a provider may have
        await session.run("hello")
    assert "provider demo, being closed, tried to end the program" in caplog.text


async def test_a_provider_that_does_not_come_to_an_end_is_left_behind(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openheim.runtime.binding.CLOSE_SECS", 0.02)
    with anyio.fail_after(20):
        async with make_runtime() as runtime:
            session = runtime.new_session(provider="demo", cwd=tmp_path)
            session.binding.provider.aclose = anyio.sleep_forever  # type: ignore[attr-defined]  # what it may have
            await session.run("hello")
    assert "provider demo was not closed within 0.02 s" in caplog.text


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
