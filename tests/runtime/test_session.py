"""Sessions: questions to people, joining watchers, what is on disk, what observers see."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from openheim import Decision, Usage, hookimpl, tool
from openheim.config.load import load_config
from openheim.errors import ConfigError, StorageError
from openheim.events import TextDelta
from openheim.messages import ImageBlock, TextBlock
from openheim.plugins.host import PluginHost
from openheim.plugins.policy import policy_from
from openheim.runtime import Runtime
from openheim.testing import Pause, ScriptedProvider, reply_text, reply_tool_calls
from tests.agent.sessions import scripted_session

pytestmark = pytest.mark.anyio


@tool
async def act(what: str = "") -> str:
    """Changes something."""
    return f"did {what}"


@tool(read_only=True)
async def look() -> str:
    """Looks."""
    return "seen"


async def test_every_call_is_announced_before_the_first_question() -> None:
    script = [reply_tool_calls(("act", {"what": "a"}), ("act", {"what": "b"})), "ok"]
    async with (
        scripted_session(script, tools=[act], gate="ask", attended=True) as run,
        anyio.create_task_group() as group,
    ):
        group.start_soon(run.session.run, "go")
        with anyio.fail_after(10):
            await anyio.wait_all_tasks_blocked()
        kinds = [kind for kind in run.types if kind in ("tool_call", "permission_asked")]
        assert kinds == ["tool_call", "tool_call", "permission_asked", "permission_asked"]
        for question in run.session.join().questions:
            assert run.session.answer(question.ask_id, "allow", by="test")
    assert [result.content for result in run.results()] == ["did a", "did b"]


async def test_the_first_answer_wins_and_all_learn_of_it() -> None:
    async with (
        scripted_session([reply_tool_calls(("act", {})), "ok"], tools=[act], gate="ask", attended=True) as run,
        anyio.create_task_group() as group,
    ):
        group.start_soon(run.session.run, "go")
        with anyio.fail_after(10):
            await anyio.wait_all_tasks_blocked()
        (asked,) = run.of_type("permission_asked")
        assert (asked.tool, asked.suggestions) == ("act", ("act",))
        assert run.session.answer(asked.ask_id, "deny", by="editor")
        assert not run.session.answer(asked.ask_id, "allow", by="browser")
        assert not run.session.answer("ask-99", "allow", by="browser")
    assert [(event.decision, event.by) for event in run.of_type("permission_resolved")] == [("deny", "editor")]
    assert run.results()[0].content == "Error: permission denied: the user denied it"
    assert run.events[-1].denied == ({"tool": "act", "reason": "the user denied it"},)


@pytest.mark.parametrize(
    "decide",
    [
        lambda: (_ for _ in ()).throw(RuntimeError("gate")),
        lambda: None,
        lambda: True,
        lambda: "allow",
        lambda: Decision("perhaps"),  # type: ignore[arg-type]  # what the test is about
    ],
)
async def test_a_gate_that_fails_or_gives_no_decision_denies(decide: Any) -> None:
    class Gate:
        async def decide(self, call: Any, session: Any) -> Any:
            return decide()

    async with scripted_session([reply_tool_calls(("act", {})), "ok"], tools=[act], gate=Gate()) as run:
        outcome = await run.session.run("go")
    assert run.results()[0].is_error
    assert len(outcome.denied) == 1


@pytest.mark.parametrize(
    ("mode", "tool_name", "allow", "deny", "runs"),
    [
        ("default", "act", (), (), True),
        ("default", "act", (), ("act",), False),
        ("default", "act", ("act",), ("a*",), False),
        ("dontAsk", "act", (), (), False),
        ("dontAsk", "act", ("act",), (), True),
        ("dontAsk", "look", (), (), True),
        ("bypassPermissions", "act", (), (), True),
        ("bypassPermissions", "act", (), ("act",), False),
        ("acceptEdits", "act", (), (), True),
        ("plan", "look", (), (), True),
        ("architect", "look", (), (), True),
        ("code", "act", (), (), True),
    ],
)
async def test_modes_and_rules_where_nobody_can_be_asked(
    mode: str, tool_name: str, allow: tuple[str, ...], deny: tuple[str, ...], runs: bool
) -> None:
    script = [reply_tool_calls((tool_name, {})), "ok"]
    async with scripted_session(script, tools=[act, look], gate="ask", mode=mode, allow=allow, deny=deny) as run:
        outcome = await run.session.run("go")
    assert run.results()[0].is_error is not runs
    assert bool(outcome.denied) is not runs


async def test_plan_mode_offers_read_only_tools_and_runs_no_other() -> None:
    async with scripted_session([reply_tool_calls(("act", {})), "ok"], tools=[act, look], mode="plan") as run:
        await run.session.run("go")
    assert [spec.name for spec in run.provider.requests[0].tools] == ["look"]
    assert run.results()[0].is_error


async def test_a_deny_rule_about_a_target_holds_when_the_target_is_not_known() -> None:
    script = [reply_tool_calls(("look", {})), "ok"]
    async with scripted_session(script, tools=[look], deny=("look(secret/**)",)) as run:
        await run.session.run("go")
    assert run.results()[0].is_error


async def test_joining_gives_snapshot_and_position_in_one_step() -> None:
    pause = Pause()
    async with scripted_session([reply_text("one ", pause, "two")]) as run, anyio.create_task_group() as group:
        group.start_soon(run.session.run, "go")
        with anyio.fail_after(10):
            await pause.reached()
        snapshot = run.session.join()
        later = run.session.stream.subscribe()
        assert snapshot.running
        assert [message.text for message in snapshot.messages] == ["go"]
        assert [piece.text for piece in snapshot.partial if isinstance(piece, TextDelta)] == ["one "]
        pause.release()
        with anyio.fail_after(10):
            first = await anext(later)
        assert (first.type, first.seq) == ("text_delta", snapshot.seq + 1)


async def test_what_is_on_disk_before_the_model_answers() -> None:
    pause = Pause()
    async with scripted_session([reply_text(pause, "hi")]) as run, anyio.create_task_group() as group:
        folder = run.runtime.store.folder
        assert not list(folder.iterdir())
        group.start_soon(run.session.run, "first question")
        with anyio.fail_after(10):
            await pause.reached()
        assert {".json", ".jsonl"} <= {path.suffix for path in folder.iterdir()}
        stored = run.runtime.store.load(run.session.id)
        assert [message.text for message in stored.messages] == ["first question"]
        assert stored.meta.title == "first question"
        pause.release()


async def test_the_stored_form() -> None:
    script = [
        reply_tool_calls(("act", {"what": "x"}), text="Now.", thinking="hm", usage=Usage(5, 6, 7, 8)),
        reply_text("Done.", usage=Usage(9, 1)),
    ]
    async with scripted_session(script, tools=[act]) as run:
        await run.session.run([TextBlock("do"), ImageBlock("aGk=", "image/png")])
        path = run.runtime.store.log_path(run.session.id)
        meta_path = run.runtime.store.meta_path(run.session.id)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    start, user, first, result, second, end = lines
    assert start.pop("at")
    assert start == {
        "record": "session",
        "mode": "default",
        "provider": "(given)",
        "model": "scripted",
        "cwd": str(Path.cwd()),
        "skills": [],
    }
    assert user["content"] == [
        {"type": "text", "text": "do"},
        {"type": "image", "data": "aGk=", "mime_type": "image/png"},
    ]
    assert [block["type"] for block in first["content"]] == ["thinking", "text", "tool_use"]
    assert json.loads(first["content"][2]["arguments"]) == {"what": "x"}
    assert first["usage"]["cache_read_tokens"] == 8
    assert (first["provider"], first["model"], first["wire"]) == ("(given)", "scripted", "scripted")
    assert (first["stop_reason"], second["stop_reason"]) == ("tool_use", "end_turn")
    assert result["content"] == [
        {
            "type": "tool_result",
            "tool_call_id": first["content"][2]["id"],
            "tool_name": "act",
            "content": "did x",
        }
    ]
    assert [(line["turn"], line["step"]) for line in lines[1:5]] == [(1, 1), (1, 2), (1, 3), (1, 4)]
    assert len({line["id"] for line in lines[1:5]}) == 4
    assert (end["record"], end["turn"], end["stop_reason"]) == ("turn_end", 1, "end_turn")
    meta = json.loads(meta_path.read_text())["meta"]
    assert meta["format"] == 1
    assert meta["context_usage"] == {
        "input_tokens": 9,
        "output_tokens": 1,
        "cache_creation_tokens": 0,
        "cache_read_tokens": 0,
    }
    assert meta["cwd"] == str(Path.cwd())


async def test_a_prompt_that_cannot_be_saved_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    from openheim.store import SessionLog

    def full(self: Any, message: Any) -> None:
        raise StorageError("disk full")

    async with scripted_session(["fine"]) as run:
        with monkeypatch.context() as patch:
            patch.setattr(SessionLog, "append", full)
            with pytest.raises(StorageError):
                await run.session.run("lost?")
        assert not run.provider.requests
        assert (await run.session.run("again")).text == "fine"
        assert [message.text for message in run.stored()] == ["again", "fine"]


async def test_messages_that_cannot_be_saved_are_not_acknowledged_and_follow_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from openheim.store import SessionLog

    real = SessionLog.append

    def refuses_assistants(self: Any, message: Any) -> None:
        if message.role == "assistant":
            raise StorageError("disk full")
        real(self, message)

    async with scripted_session(["one", "two"]) as run:
        with monkeypatch.context() as patch:
            patch.setattr(SessionLog, "append", refuses_assistants)
            outcome = await run.session.run("go")
        assert outcome.text == "one"
        assert [event.message.role for event in run.of_type("message")] == ["user"]
        assert [event.severity for event in run.of_type("notice")] == ["error"]
        await run.session.run("on")
        assert [message.text for message in run.stored()] == ["go", "one", "on", "two"]
        assert len(run.of_type("message")) == 4


async def test_observers_get_events_and_a_failing_one_is_dropped(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []
    reports: list[str] = []

    class Watches:
        @hookimpl
        def openheim_observe(self, event: Any, session_id: str) -> None:
            seen.append((event.type, session_id))

    class Breaks:
        @hookimpl
        def openheim_observe(self, event: Any) -> None:
            raise RuntimeError("no metrics today")

    host = PluginHost(policy_from({}, {}), report=reports.append)
    host.register(Watches(), kind="plugins", name="watches")
    host.register(Breaks(), kind="plugins", name="breaks")
    async with Runtime(load_config(environment={}), host, report=reports.append) as runtime:
        session = runtime.new_session(provider=ScriptedProvider(["hi"]), cwd=tmp_path)
        await session.run("go")
    assert [kind for kind, _id in seen] == ["message", "iteration_start", "message", "turn_finished"]
    assert {session_id for _kind, session_id in seen} == {session.id}
    assert len([line for line in reports if "no metrics today" in line]) == 1


async def test_the_programs_own_errors_leave_the_runtime_as_they_are() -> None:
    with pytest.raises(ZeroDivisionError):
        async with scripted_session([]):
            raise ZeroDivisionError


async def test_unknown_modes_and_directories_are_refused(tmp_path: Path) -> None:
    runtime = Runtime(load_config(environment={}), PluginHost(policy_from({}, {}), report=print))
    with pytest.raises(ConfigError, match="unknown mode 'fast'"):
        runtime.new_session(provider=ScriptedProvider([]), mode="fast")
    with pytest.raises(ConfigError, match="nowhere"):
        runtime.new_session(provider=ScriptedProvider([]), cwd=tmp_path / "nowhere")


async def test_many_sessions_at_once(tmp_path: Path) -> None:
    host = PluginHost(policy_from({}, {}), report=print)
    async with Runtime(load_config(environment={}), host) as runtime:
        sessions = [
            runtime.new_session(provider=ScriptedProvider([f"answer {number}"] * 2), cwd=tmp_path, gate="allow")
            for number in range(300)
        ]
        with anyio.fail_after(50):
            for _turn in range(2):
                async with anyio.create_task_group() as group:
                    for session in sessions:
                        group.start_soon(session.run, "go")
    for number, session in enumerate(sessions):
        stored = runtime.store.load(session.id)
        assert [message.text for message in stored.messages] == ["go", f"answer {number}"] * 2
        assert stored.meta.updated_at >= stored.messages[-1].created_at
