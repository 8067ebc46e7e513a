"""Which sessions stay in memory, and how the others come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from openheim import Runtime, tool
from openheim.config.load import load_config
from openheim.errors import ConfigError, SessionBusyError, SessionNotFoundError
from openheim.plugins.host import PluginHost
from openheim.plugins.policy import policy_from
from openheim.runtime.live import LiveSessions
from openheim.testing import Pause, ScriptedProvider, reply_text, reply_tool_calls

pytestmark = pytest.mark.anyio


def make_runtime(**options: Any) -> Runtime:
    host = PluginHost(policy_from({"enable": ["openheim-core", "openheim-provider-demo"]}, {}), report=print)
    return Runtime(load_config(environment={}, flags=options.pop("settings", None)), host, **options)


class Fake:
    def __init__(self, name: str, running: bool = False, is_kept: bool = False) -> None:
        self.id = name
        self.running = running
        self.is_kept = is_kept


def test_the_least_recently_active_go_beyond_the_capacity() -> None:
    live = LiveSessions(capacity=3)
    sessions = [Fake(str(number)) for number in range(5)]
    let_go = [gone.id for session in sessions[:3] for gone in live.add(session)]  # type: ignore[arg-type]  # a stand-in
    live.touch(sessions[0])  # type: ignore[arg-type]  # a stand-in
    let_go += [gone.id for session in sessions[3:] for gone in live.add(session)]  # type: ignore[arg-type]  # likewise
    assert let_go == ["1", "2"]
    assert [session.id for session in live] == ["0", "3", "4"]


def test_idle_ones_go_after_a_while() -> None:
    now = [0.0]
    live = LiveSessions(idle_secs=10, clock=lambda: now[0])
    live.add(Fake("a"))  # type: ignore[arg-type]  # a stand-in
    now[0] = 9
    assert live.add(Fake("b")) == []  # type: ignore[arg-type]  # a stand-in
    now[0] = 11
    assert [gone.id for gone in live.add(Fake("c"))] == ["a"]  # type: ignore[arg-type]  # a stand-in


def test_running_ones_stay_and_the_map_may_grow_for_them() -> None:
    live = LiveSessions(capacity=2)
    for name in "abcd":
        assert live.add(Fake(name, running=name < "c", is_kept=name > "b")) == []  # type: ignore[arg-type]  # a stand-in
    idle = Fake("e")
    live.add(idle)  # type: ignore[arg-type]  # a stand-in
    assert live.add(Fake("f", running=True)) == [idle]  # type: ignore[arg-type, comparison-overlap]  # stand-ins
    assert len(live) == 5


async def test_a_session_goes_on_in_another_runtime(tmp_path: Path) -> None:
    @tool
    async def act() -> str:
        return "did"

    async with make_runtime(tools=[act]) as runtime:
        session = runtime.new_session(
            provider=ScriptedProvider([reply_tool_calls(("act", {})), "one"]), cwd=tmp_path, mode="acceptEdits"
        )
        await session.run("first")
        last = session.stream.seq
    async with make_runtime(tools=[act]) as runtime:
        provider = ScriptedProvider(["two"])
        loaded = runtime.load_session(session.id, provider=provider)
        assert loaded.warnings == ()
        assert (loaded.meta.mode, loaded.files.cwd, loaded.meta.title) == ("acceptEdits", tmp_path, "first")
        assert loaded.stream.seq > last
        await loaded.run("second")
        assert [message.text for message in loaded.messages if message.text] == ["first", "one", "second", "two"]
        assert [message.turn for message in loaded.messages] == [1, 1, 1, 1, 2, 2]
        assert len(provider.requests[0].messages) == 5
        assert runtime.store.load(session.id).messages[-1].text == "two"


async def test_a_live_session_is_returned_as_it_is(tmp_path: Path) -> None:
    pause = Pause()
    async with make_runtime() as runtime, anyio.create_task_group() as group:
        session = runtime.new_session(provider=ScriptedProvider([reply_text("a", pause)]), cwd=tmp_path)
        group.start_soon(session.run, "go")
        with anyio.fail_after(10):
            await pause.reached()
        assert runtime.load_session(session.id) is session
        assert session.running
        pause.release()


async def test_a_session_that_was_let_go_still_works_until_it_is_loaded_anew(tmp_path: Path) -> None:
    async with make_runtime() as runtime:
        session = runtime.new_session(provider=ScriptedProvider(["one", "two"]), cwd=tmp_path)
        await session.run("go")
        runtime.close_session(session)
        assert (await session.run("on")).text == "two"
        runtime.close_session(session)
        loaded = runtime.load_session(session.id, provider=ScriptedProvider(["three"]))
        with pytest.raises(SessionBusyError, match="loaded anew"):
            await session.run("no")
        await loaded.run("yes")
        texts = [message.text for message in runtime.store.load(session.id).messages]
        assert texts == ["go", "one", "on", "two", "yes", "three"]


async def test_what_is_gone_is_replaced_and_told(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    settings = {"providers": {"mine": {"kind": "demo"}}}
    async with make_runtime(settings=settings) as runtime:
        session = runtime.new_session(provider="mine", cwd=work)
        await session.run("hello")
    work.rmdir()
    async with make_runtime() as runtime:
        loaded = runtime.load_session(session.id)
        assert loaded.binding.provider_name == "demo"
        assert len(loaded.warnings) == 2
        assert "is gone" in loaded.warnings[0]
        assert "unknown provider 'mine'" in loaded.warnings[1]


async def test_unknown_sessions_and_modes(tmp_path: Path) -> None:
    async with make_runtime() as runtime:
        with pytest.raises(SessionNotFoundError):
            runtime.load_session("550e8400-e29b-41d4-a716-446655440000")
        session = runtime.new_session(provider="demo", cwd=tmp_path)
        await session.run("hello")
        runtime.close_session(session)
        with pytest.raises(ConfigError, match="unknown mode"):
            runtime.load_session(session.id, mode="fast")


async def test_prompt_yields_the_events_of_its_turn(tmp_path: Path) -> None:
    async with make_runtime() as runtime:
        session = runtime.new_session(provider=ScriptedProvider([reply_text("a", "b"), "c"]), cwd=tmp_path)
        with anyio.fail_after(10):
            types = [event.type async for event in session.prompt("go")]
            assert types[0] == "message"
            assert types[-1] == "turn_finished"
            assert [event.type async for event in session.prompt("on")][-1] == "turn_finished"


async def test_leaving_the_loop_cancels_the_turn(tmp_path: Path) -> None:
    from contextlib import aclosing

    pause = Pause()
    provider = ScriptedProvider([reply_text("a", pause), "next"])
    async with make_runtime() as runtime:
        session = runtime.new_session(provider=provider, cwd=tmp_path)
        with anyio.fail_after(10):
            async with aclosing(session.prompt("go")) as events:
                async for event in events:
                    if event.type == "text_delta":
                        break
            while session.running:
                await anyio.lowlevel.checkpoint()
            assert provider.cancelled == 1
            assert (await session.run("on")).text == "next"


async def test_errors_of_a_prompt_reach_the_loop(tmp_path: Path) -> None:
    pause = Pause()
    async with make_runtime() as runtime:
        session = runtime.new_session(provider=ScriptedProvider([reply_text("a", pause)]), cwd=tmp_path)
        with anyio.fail_after(10):
            running = session.prompt("go")
            await anext(running)
            with pytest.raises(SessionBusyError):
                async for _event in session.prompt("too soon"):
                    pass
            pause.release()
            assert [event.type async for event in running][-1] == "turn_finished"
