"""Mode, model and remembered decisions of a session, and that they come back with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from openheim import tool
from openheim.errors import ConfigError
from openheim.testing import ScriptedProvider, reply_tool_calls
from tests.agent.sessions import scripted_session
from tests.runtime.test_live import make_runtime

pytestmark = pytest.mark.anyio


@tool
async def act(what: str = "") -> str:
    return f"did {what}"


@tool(approval_scope="arguments", kind="execute")
async def command(line: str) -> str:
    return f"ran {line}"


async def answer_all(run: Any, decision: str, remember: bool) -> None:
    """Answers every question of the session as it comes."""
    for question in run.session.join().questions:
        run.session.answer(question.ask_id, decision, by="test", remember=remember)

    def answering(event: Any) -> None:
        if event.type == "permission_asked":
            run.session.answer(event.ask_id, decision, by="test", remember=remember)

    run.session.stream.attach(answering)


@pytest.mark.parametrize("remember", [True, False])
async def test_a_remembered_answer_is_not_asked_for_again(remember: bool) -> None:
    script = [reply_tool_calls(("act", {"what": "a"})), reply_tool_calls(("act", {"what": "b"})), "ok"]
    async with scripted_session(script, tools=[act], gate="ask", attended=True) as run:
        await answer_all(run, "allow", remember)
        with anyio.fail_after(10):
            await run.session.run("go")
    assert len(run.of_type("permission_asked")) == (1 if remember else 2)
    assert [result.content for result in run.results()] == ["did a", "did b"]


async def test_where_the_arguments_count_only_the_very_same_call_is_remembered() -> None:
    lines = [{"line": "git status"}, {"line": "git status"}, {"line": "git status && rm -r x"}]
    script = [*(reply_tool_calls(("command", arguments)) for arguments in lines), "ok"]
    async with scripted_session(script, tools=[command], gate="ask", attended=True) as run:
        await answer_all(run, "deny", True)
        with anyio.fail_after(10):
            await run.session.run("go")
    assert [event.arguments["line"] for event in run.of_type("permission_asked")] == [
        "git status",
        "git status && rm -r x",
    ]
    assert all(result.is_error for result in run.results())


async def test_mode_model_and_decisions_come_back(tmp_path: Path) -> None:
    script = [reply_tool_calls(("act", {})), "ok"]
    async with make_runtime(tools=[act]) as runtime:
        session = runtime.new_session(provider=ScriptedProvider(script), cwd=tmp_path, attended=True)
        session.stream.attach(
            lambda event: (
                session.answer(event.ask_id, "allow", by="test", remember=True)
                if event.type == "permission_asked"
                else None
            )
        )
        await session.run("go")
        session.set_mode("architect")
        session.set_model("demo", "demo")
        with pytest.raises(ConfigError):
            session.set_mode("fast")
        with pytest.raises(ConfigError):
            session.set_model("nobody")
        log = runtime.store.log_path(session.id)
    async with make_runtime(tools=[act]) as runtime:
        loaded = runtime.load_session(session.id)
        assert loaded.meta.mode == "plan"
        assert (loaded.binding.provider_name, loaded.binding.model) == ("demo", "demo")
        asked: list[Any] = []
        again = runtime.load_session(session.id)
        assert again is loaded
        runtime.close_session(loaded)
        last = runtime.load_session(
            session.id, provider=ScriptedProvider([reply_tool_calls(("act", {})), "ok"]), mode="default", attended=True
        )
        last.stream.attach(asked.append)
        with anyio.fail_after(10):
            await last.run("go on")
        assert not [event for event in asked if event.type == "permission_asked"]
    records = [line["record"] for line in map(json.loads, log.read_text().splitlines()) if "record" in line]
    assert records == ["session", "approval", "turn_end", "mode", "model", "session", "turn_end"]


async def test_a_switch_before_the_first_prompt_leaves_nothing_on_disk(tmp_path: Path) -> None:
    async with make_runtime() as runtime:
        session = runtime.new_session(provider="demo", cwd=tmp_path)
        session.set_mode("plan")
        assert not list(runtime.store.folder.iterdir())


async def test_a_mode_set_while_a_turn_runs_holds_for_the_next_call() -> None:
    @tool
    async def switch() -> str:
        run.session.set_mode("plan")
        return "switched"

    script = [reply_tool_calls(("switch", {})), reply_tool_calls(("act", {})), "ok"]
    async with scripted_session(script, tools=[act, switch]) as run:
        await run.session.run("go")
    assert [result.is_error for result in run.results()] == [False, True]
