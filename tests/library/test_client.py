"""openheim in a program: the asynchronous client, and the one for scripts."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from openheim import Client, SyncClient, TextDelta, tool
from openheim.config.paths import trust_file
from openheim.config.trust import TrustStore
from openheim.errors import ConfigError
from openheim.messages import Usage
from openheim.testing import Pause, ScriptedProvider, reply_text, reply_tool_calls
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import text

pytestmark = pytest.mark.anyio


@tool(read_only=True)
async def word_count(words: str) -> str:
    """Counts words."""
    return str(len(words.split()))


async def test_a_streamed_answer_with_a_tool_of_the_program(tmp_path: Path) -> None:
    script = ScriptedProvider([reply_tool_calls(("word_count", {"words": "a b c"})), reply_text("Th", "ree")])
    async with Client(provider=script, tools=[word_count]) as client:
        session = client.new_session(cwd=tmp_path)
        with anyio.fail_after(10):
            pieces = [event.text async for event in session.prompt("count") if isinstance(event, TextDelta)]
        assert "".join(pieces) == "Three"
        assert "word_count" in [spec.name for spec in client.tools()]
        session_id = session.id
    async with Client(provider=ScriptedProvider(["again"])) as client:
        resumed = client.resume(session_id)
        assert (await resumed.run("more")).text == "again"
        assert len(resumed.messages) == 6


async def test_an_imported_session_works_where_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    document = {"meta": {"cwd": "/"}, "messages": []}
    (tmp_path / "sub").mkdir()
    async with Client(provider="demo") as client:
        assert client.resume(await client.import_session(document)).files.root == tmp_path
        session = client.resume(await client.import_session(document, cwd="sub"))
        assert session.meta.cwd == str(tmp_path / "sub")


async def test_what_another_trusted_project_denies_is_denied_in_its_sessions(tmp_path: Path) -> None:
    deny = '[permissions]\ndeny = ["write_file"]\n'
    for name, trusted, content in (("trusted", True, deny), ("foreign", False, deny), ("broken", True, "[broken")):
        settings = tmp_path / name / ".openheim/config.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(content)
        TrustStore(trust_file()).decide(settings.parent.parent, trusted=trusted)
    async with Client(provider="demo") as client:
        made = client.new_session(cwd=tmp_path / "trusted")
        await made.run("help")
        client.runtime.close_session(made)
        for session in (client.resume(made.id), client.new_session(cwd=tmp_path / "trusted")):
            assert [call["tool"] for call in (await session.run("Write x to w.txt")).denied] == ["write_file"]
        assert (await client.new_session(cwd=tmp_path / "foreign").run("Write x to w.txt")).denied == []
        arguments = '{"path": "w.txt", "content": "x"}'
        result = await client.runtime.call_tool("write_file", arguments, cwd=tmp_path / "trusted")
        assert result.is_error
        # What cannot be read may deny anything.
        with pytest.raises(ConfigError, match="not valid TOML"):
            client.new_session(cwd=tmp_path / "broken")


@pytest.fixture
def broken_config(own_environment: Path) -> None:
    own_environment.mkdir(parents=True)
    (own_environment / "config.toml").write_text("[broken")


@pytest.mark.usefixtures("broken_config")
async def test_arguments_alone_decide(tmp_path: Path) -> None:
    with OpenAIServer([text("hello")]) as server:
        async with Client(
            config=False, provider="openai", api_base=server.base_url, model="m-x", data_dir=tmp_path / "data"
        ) as client:
            outcome = await client.new_session(cwd=tmp_path).run("hi")
    assert outcome.text == "hello"
    assert server.prompts[0].json["model"] == "m-x"
    assert [entry.suffix async for entry in anyio.Path(tmp_path / "data/history").glob("*.jsonl")] == [".jsonl"]
    with pytest.raises(ConfigError, match="not valid TOML"):
        Client()


async def test_arguments_go_through_the_same_checks() -> None:
    with pytest.raises(ConfigError, match="plain http"):
        Client(config=False, provider="openai", api_base="http://h", api_key="k").new_session()
    with pytest.raises(ConfigError, match="max_iterations"):
        Client(config=False, max_iterations=0)
    with pytest.raises(TypeError, match="provider that is named"):
        Client(api_key="k")


async def test_gates_and_providers_as_objects(tmp_path: Path) -> None:
    from openheim import Decision

    class Nothing:
        async def decide(self, call: Any, session: Any) -> Decision:
            return Decision("deny", "not today")

    script = ScriptedProvider([reply_tool_calls(("word_count", {"words": "a"})), "ok"])
    async with Client(provider=script, tools=[word_count], gate=Nothing()) as client:
        outcome = await client.new_session(cwd=tmp_path).run("go")
    assert outcome.denied == [{"tool": "word_count", "reason": "not today"}]


def test_the_client_for_scripts(tmp_path: Path) -> None:
    script = ScriptedProvider([reply_tool_calls(("word_count", {"words": "a b"})), reply_text("t", "wo"), "more"])
    with SyncClient(provider=script, tools=[word_count]) as client:
        session = client.new_session(cwd=tmp_path)
        assert "".join(event.text for event in session.prompt("count") if isinstance(event, TextDelta)) == "two"
        assert session.run("on").text == "more"
        assert client.tools()
        session_id = session.id
    with SyncClient(provider=ScriptedProvider(["again"])) as client:
        assert client.resume(session_id).run("hi").text == "again"
    with pytest.raises(RuntimeError, match="not open"):
        SyncClient(provider=script).new_session()


def test_stored_sessions_of_a_script(tmp_path: Path) -> None:
    replies = ["one", "two", "a summary", "three"]
    with SyncClient(provider=ScriptedProvider(replies), data_dir=tmp_path / "data") as client:
        session = client.new_session(cwd=tmp_path)
        session.run("first")
        assert not session.compact()
        copy = client.fork(session.id)
        client.rename(copy, "copy")
        assert [hit.row.meta.title for hit in client.search("copy")] == ["copy"]
        client.archive(session.id)
        assert [row.meta.title for row in client.list_sessions().rows] == ["copy"]
        client.delete(copy)
        assert client.list_sessions().rows == []


def test_the_client_for_scripts_can_do_all_that_the_other_can(tmp_path: Path) -> None:
    def methods(kind: type) -> set[str]:
        return {name for name, member in vars(kind).items() if callable(member) and not name.startswith("_")}

    assert methods(Client) == methods(SyncClient)
    with SyncClient(provider=ScriptedProvider(["one", "two"]), data_dir=tmp_path / "data") as client:
        session = client.new_session(cwd=tmp_path)
        session.run("a question")
        assert "a question" in client.export_markdown(session.id)
        assert "a question" not in client.export_markdown(session.id, secrets=["a question"])
        copy = client.import_session(client.export_json(session.id))
        assert copy != session.id
        assert client.totals(copy).messages == 2
        assert len(client.prune(keep=1, dry_run=True).removed) == 1
        assert len(client.prune(keep=0).removed) == 2
        assert client.list_sessions(archived=None).rows == []
    assert not list((tmp_path / "data" / "history").glob("*.json*"))


async def test_a_session_that_is_deleted_is_gone_though_its_flush_waits(tmp_path: Path) -> None:
    async with Client(provider=ScriptedProvider(["ok"] * 4), data_dir=tmp_path / "data") as client:
        for remove in (client.delete, lambda _id: client.prune(keep=0)):
            session = client.new_session(cwd=tmp_path)
            await session.run("go")
            await session.run("on")
            await remove(session.id)
    assert not list((tmp_path / "data" / "history").glob("*.json*"))


async def test_what_a_summary_cost_is_part_of_the_totals(tmp_path: Path) -> None:
    used = Usage(1000, 100)
    replies = [*(reply_text(word, usage=used) for word in ("one", "two")), reply_text("sum", usage=Usage(5000, 500))]
    async with Client(provider=ScriptedProvider(replies), data_dir=tmp_path / "data") as client:
        session = client.new_session(cwd=tmp_path)
        await session.run("first")
        await session.run("second")
        assert await session.compact()
        totals = await client.totals(session.id)
        assert totals.tokens == Usage(7000, 700)
        (row,) = (await client.list_sessions()).rows
        assert row.totals == totals
        assert totals.to_dict(1.5) == {"messages": 4, "turns": 2, **Usage(7000, 700).to_dict(), "cost": 1.5}
        # Also where the index cannot be used.
        index = tmp_path / "data" / "index.db"
        index.unlink()
        index.mkdir()
        assert await client.totals(session.id) == totals


async def test_a_project_counts_if_the_program_trusts_it(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".openheim").mkdir(parents=True)
    (project / ".openheim" / "config.toml").write_text('[permissions]\nmode = "plan"\n')
    said: list[str] = []
    provider = ScriptedProvider([])
    for trust, mode in ((True, "plan"), (False, "default"), (None, "default")):
        client = Client(provider=provider, cwd=project, trust=trust, report=said.append)
        session = client.new_session()
        assert (session.meta.mode, session.files.cwd) == (mode, project)
    assert any("not trusted" in line for line in said)


async def test_resuming_a_live_session_does_not_ask_for_the_defaults_of_the_client(tmp_path: Path) -> None:
    async with Client(provider=ScriptedProvider(["ok"]), gate="deny", data_dir=tmp_path / "data") as client:
        session = client.new_session(cwd=tmp_path, gate="ask", provider="demo")
        await session.run("hello")
        assert client.resume(session.id) is session


def test_leaving_the_loop_of_a_script_cancels_the_turn(tmp_path: Path) -> None:
    provider = ScriptedProvider([reply_text("a", Pause()), "next"])
    with SyncClient(provider=provider) as client:
        session = client.new_session(cwd=tmp_path)
        for event in session.prompt("go"):
            if isinstance(event, TextDelta):
                break
        assert provider.cancelled == 1
        assert session.run("on").text == "next"


@pytest.mark.parametrize("method", ["run", "prompt"])
def test_an_interrupt_cancels_the_turn_of_a_script(tmp_path: Path, method: str) -> None:
    pause = Pause()
    provider = ScriptedProvider([reply_text("a", pause), "next"])
    with SyncClient(provider=provider) as client:
        session = client.new_session(cwd=tmp_path)

        def interrupt() -> None:
            client.portal.call(pause.reached)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            if method == "run":
                session.run("go")
            for _event in session.prompt("go"):
                pass
        thread.join(10)
        assert provider.cancelled == 1
        assert session.run("on").text == "next"


def test_a_loop_that_outlives_its_client_ends_quietly(tmp_path: Path) -> None:
    with SyncClient(provider=ScriptedProvider([reply_text("a", Pause())])) as client:
        events = client.new_session(cwd=tmp_path).prompt("go")
        next(events)
    events.close()  # type: ignore[attr-defined]  # it is a generator


async def test_a_client_is_entered_once(tmp_path: Path) -> None:
    async with Client(provider="demo") as client:
        session = client.new_session(cwd=tmp_path)
        with pytest.raises(RuntimeError, match="open already"):
            await client.__aenter__()
        assert (await session.run("help")).stop_reason == "end_turn"
    for refused in (client.new_session, lambda: client.resume(session.id)):
        with pytest.raises(RuntimeError, match="was closed"):
            refused()
    with pytest.raises(RuntimeError, match="was closed"):
        await session.run("more")
    with pytest.raises(RuntimeError, match="was closed"):
        await client.__aenter__()


def test_a_client_of_a_script_is_entered_once() -> None:
    threads = set(threading.enumerate())
    with SyncClient(provider="demo") as client:
        with pytest.raises(RuntimeError, match="open already"):
            client.__enter__()
        assert client.new_session().run("help").stop_reason == "end_turn"
    with pytest.raises(RuntimeError, match="was closed"):
        client.__enter__()
    with pytest.raises(RuntimeError, match="not open"):
        client.new_session()
    assert set(threading.enumerate()) <= threads


def test_cancelling_from_another_thread(tmp_path: Path) -> None:
    pause = Pause()
    with SyncClient(provider=ScriptedProvider([reply_text("a", pause)])) as client:
        session = client.new_session(cwd=tmp_path)
        outcomes: list[Any] = []
        thread = threading.Thread(target=lambda: outcomes.append(session.run("go")))
        thread.start()
        client.portal.call(pause.reached)
        session.cancel()
        thread.join(10)
        assert not thread.is_alive()
    assert outcomes[0].stop_reason == "cancelled"


def test_errors_of_a_script_reach_it_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), SyncClient(provider=ScriptedProvider([])):
        raise ZeroDivisionError


async def test_operations_on_stored_sessions(tmp_path: Path) -> None:
    async with Client(provider=ScriptedProvider(["one", "two", "three"]), data_dir=tmp_path / "data") as client:
        session = client.new_session(cwd=tmp_path)
        await session.run("the first question")
        await session.run("the second question")
        copy = await client.fork(session.id, title="another way")
        assert {row.meta.id for row in (await client.list_sessions(cwd=tmp_path)).rows} == {session.id, copy}
        assert [hit.row.meta.id for hit in await client.search("another")] == [copy]
        await client.rename(session.id, "first")
        assert session.meta.title == "first"
        assert "the second question" in await client.export_markdown(copy)
        document = await client.export_json(copy, secrets=["second question"])
        await client.delete(copy)
        assert await client.import_session(document) == copy
        assert "second question" not in await client.export_markdown(copy)
        await client.archive(session.id)
        assert [row.meta.id for row in (await client.list_sessions()).rows] == [copy]
    # A session that is still open may be written, and so become the newest, between two calls.
    async with Client(provider=ScriptedProvider([]), data_dir=tmp_path / "data") as client:
        would_go = [meta.id for meta in (await client.prune(keep=1, dry_run=True)).removed]
        assert len((await client.list_sessions(archived=None)).rows) == 2
        assert [meta.id for meta in (await client.prune(keep=1)).removed] == would_go
        assert len((await client.list_sessions(archived=None)).rows) == 1
