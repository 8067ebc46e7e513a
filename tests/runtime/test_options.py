"""What a session is started and resumed with: options, the managed policy over them, and the directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openheim import Client, Decision, tool
from openheim.errors import UsageError
from openheim.events import Event, PermissionAsked
from openheim.messages import TextBlock, ThinkingBlock
from openheim.testing import ScriptedProvider, reply_tool_calls
from tests.runtime.test_live import make_runtime

pytestmark = pytest.mark.anyio


class Lenient:
    async def decide(self, call: Any, session: Any) -> Decision:
        return Decision("allow")


@tool
async def act() -> str:
    return "did"


# --- the managed policy ---


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In force from now on; sessions may have been there before."""
    file = tmp_path / "policy.toml"
    file.write_text('max_iterations = 3\n[permissions]\nmode = "plan"\ngate = "deny"\ndeny = ["act"]\n')
    monkeypatch.setenv("OPENHEIM_POLICY_FILE", str(file))


LOOSE: dict[str, Any] = {
    "mode": "bypassPermissions",
    "gate": Lenient(),
    "max_iterations": 50,
    "allow": ["act"],
}


@pytest.mark.usefixtures("policy")
async def test_a_policy_wins_over_arguments_and_says_so(tmp_path: Path) -> None:
    async with make_runtime(tools=[act]) as runtime:
        provider = ScriptedProvider([reply_tool_calls(("act", {})), "ok"])
        session = runtime.new_session(provider=provider, cwd=tmp_path, **LOOSE)
        assert (session.meta.mode, session.options.max_iterations, session.options.asked_gate) == ("plan", 3, "deny")
        assert [warning.split(" by the managed policy")[0] for warning in session.warnings] == [
            "permissions.mode is 'plan'",
            "permissions.gate is 'deny'",
            "max_iterations is 3",
        ]
        outcome = await session.run("go")
        assert [denied["tool"] for denied in outcome.denied] == ["act"]
        told: list[str] = []
        session.stream.attach(lambda event: told.append(event.text) if event.type == "notice" else None)
        session.set_mode("bypassPermissions")
        assert session.meta.mode == "plan"
        assert "managed policy" in told[0]
        # Whoever asks for the same, or for nothing, is told nothing.
        assert runtime.new_session(provider="demo", cwd=tmp_path, mode="architect").warnings == ()
        assert runtime.new_session(provider="demo", cwd=tmp_path).warnings == ()


async def test_a_policy_wins_over_what_a_session_was_started_with(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async with make_runtime(tools=[act]) as before:
        session = before.new_session(provider=ScriptedProvider(["ok", "ok"]), cwd=tmp_path, **LOOSE)
        await session.run("go")
        request.getfixturevalue("policy")
        async with make_runtime(tools=[act]) as runtime:
            loaded = runtime.load_session(session.id, provider=ScriptedProvider(["ok", "ok"]))
            assert (loaded.meta.mode, loaded.options.asked_gate) == ("plan", "deny")
            assert "managed policy" in loaded.warnings[0]
            await loaded.run("on")
            # Nor can a process that knows nothing of it change that.
            session.set_mode("bypassPermissions")
            await loaded.run("on")
            assert loaded.meta.mode == "plan"


@pytest.mark.usefixtures("policy")
async def test_a_policy_wins_where_one_tool_is_called(tmp_path: Path) -> None:
    said: list[str] = []
    async with make_runtime(tools=[act], report=said.append) as runtime:
        result = await runtime.call_tool("act", "{}", cwd=tmp_path, mode="bypassPermissions")
    assert result.is_error
    assert any("managed policy" in line for line in said)


# --- the directory ---


async def test_a_directory_outside_of_work_dir_is_replaced_by_it(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder in (inside / "deep", outside):
        folder.mkdir(parents=True)
    async with make_runtime(settings={"work_dir": str(inside)}) as runtime:
        provider = ScriptedProvider(["ok"])
        session = runtime.new_session(provider=provider, cwd=outside)
        assert (session.files.cwd, session.meta.cwd) == (inside, str(inside))
        assert "outside of the work directory" in session.warnings[0]
        await session.run("go")
        assert str(outside) not in provider.requests[0].system
        within = runtime.new_session(provider="demo", cwd=inside / "deep")
        assert (within.files.cwd, within.warnings) == (inside / "deep", ())
        # Nobody asked for the directory of the process.
        unasked = runtime.new_session(provider="demo")
        assert (unasked.files.cwd, unasked.warnings) == (inside, ())


async def test_so_is_the_one_of_a_session_that_is_resumed(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    async with make_runtime() as runtime:
        session = runtime.new_session(provider=ScriptedProvider(["ok"]), cwd=outside)
        await session.run("go")
    async with make_runtime(settings={"work_dir": str(inside)}) as runtime:
        loaded = runtime.load_session(session.id, provider=ScriptedProvider(["ok"]))
        assert loaded.files.cwd == inside
        assert "outside of the work directory" in loaded.warnings[0]


# --- a session that is live ---


async def test_resuming_a_live_session_changes_its_mode_and_refuses_what_is_otherwise(tmp_path: Path) -> None:
    provider = ScriptedProvider(["ok"])
    async with make_runtime() as runtime:
        session = runtime.new_session(provider=provider, cwd=tmp_path, gate="ask", deny=["act"], max_iterations=4)
        await session.run("go")
        same: dict[str, Any] = {
            "provider": provider,
            "model": "scripted",
            "cwd": tmp_path,
            "gate": "ask",
            "deny": ["act"],
            "max_iterations": 4,
        }
        assert runtime.load_session(session.id, mode="plan", **same) is session
        assert session.meta.mode == "plan"
        other: dict[str, Any] = {
            "provider": ScriptedProvider([]),
            "model": "another",
            "cwd": Path("/"),
            "gate": Lenient(),
            "deny": ["write_file"],
            "allow": ["act"],
            "max_iterations": 5,
            "attended": True,
        }
        for name, value in other.items():
            with pytest.raises(UsageError, match=f"another value for {name}"):
                runtime.load_session(session.id, mode="default", **{name: value})
        with pytest.raises(UsageError, match="another value for provider"):
            runtime.load_session(session.id, provider="demo")
        assert session.meta.mode == "plan"


# --- slips ---


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"deny": "write_file"}, r"deny is a list, not str: write \['write_file'\]"),
        ({"allow": "write_file"}, "allow is a list, not str"),
        ({"deny": [None]}, "deny holds NoneType"),
        ({"allow": 3}, "allow is a list, not int"),
        ({"skills": "review"}, "skills is a list, not str"),
        ({"max_iterations": "3"}, "max_iterations is an integer, not str"),
        ({"max_iterations": True}, "max_iterations is an integer, not bool"),
        ({"max_iterations": 2.5}, "max_iterations is an integer, not float"),
        ({"max_iterations": 0}, "max_iterations is 0"),
    ],
)
async def test_what_is_no_such_argument_is_refused(options: dict[str, Any], complaint: str) -> None:
    async with make_runtime() as runtime:
        session = runtime.new_session(provider=ScriptedProvider(["one"]))
        await session.run("hi")
        with pytest.raises((TypeError, UsageError), match=complaint):
            runtime.new_session(provider=ScriptedProvider([]), **options)
        if "skills" not in options:
            for _live_or_not in range(2):
                with pytest.raises((TypeError, UsageError), match=complaint):
                    runtime.load_session(session.id, provider=session.binding.provider, **options)
                runtime.close_session(session)


def test_a_program_s_list_of_tools_or_skills_is_one() -> None:
    with pytest.raises(TypeError, match="tools is a list, not str"):
        Client(provider="demo", tools="act")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(TypeError, match="skills is a list, not str"):
        Client(provider="demo", skills="review")


@pytest.mark.parametrize(
    "content",
    [None, 5, b"help", bytearray(b"x"), {"a": 1}, ["help"], [5], [ThinkingBlock("x")], [TextBlock(3)]],  # type: ignore[arg-type]  # wrong on purpose
)
async def test_what_is_no_prompt_is_neither_stored_nor_sent(content: Any) -> None:
    async with make_runtime() as runtime:
        session = runtime.new_session(provider=ScriptedProvider([]))
        with pytest.raises(TypeError, match="prompt"):
            await session.run(content)
        with pytest.raises(TypeError, match="prompt"):
            async for _event in session.prompt(content):
                pass
        assert list(session.messages) == []
        assert not runtime.store.exists(session.id)


# --- damaged metadata ---


@pytest.mark.parametrize(
    ("key", "value", "kept"),
    [
        ("context", "x", None),
        ("context", [1], None),
        ("context", {"bytes_per_token": "a", "binding": 3}, {"bytes_per_token": "a", "binding": 3}),
        ("decisions", "x", {}),
        ("decisions", [1], {}),
        ("decisions", {"a": "allow", "b": 3, "c": ["deny"]}, {"a": "allow"}),
    ],
)
async def test_damaged_metadata_counts_as_missing(key: str, value: Any, kept: Any) -> None:
    async with make_runtime(tools=[act]) as runtime:
        session = runtime.new_session(provider=ScriptedProvider(["one"]))
        await session.run("hi")
        runtime.close_session(session)
    path = runtime.store.meta_path(session.id)
    document = json.loads(path.read_text())
    document["meta"][key] = value
    path.write_text(json.dumps(document))
    async with make_runtime(tools=[act]) as runtime:
        provider = ScriptedProvider([reply_tool_calls(("act", {})), "done"])
        session = runtime.load_session(session.id, provider=provider, attended=True)
        assert session.meta.extra.get(key) == kept
        assert [warning for warning in session.warnings if f"{key} in the metadata" in warning] or kept == value

        def answer(event: Event) -> None:
            if isinstance(event, PermissionAsked):
                session.answer(event.ask_id, "allow", by="me", remember=True)

        session.stream.attach(answer)
        assert (await session.run("go")).text == "done"
        assert "allow" in session.meta.extra["decisions"].values()
