"""What of a session is on disk once it was saved, and what becomes of it where that fails."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from openheim import Session, tool
from openheim.errors import SessionNotFoundError
from openheim.runtime import Runtime, flushing
from openheim.store import log as store_log
from openheim.store.log import SessionLog
from openheim.store.operations.removal import delete_session
from openheim.testing import ScriptedProvider, reply_tool_calls
from tests.runtime.test_live import make_runtime

pytestmark = pytest.mark.anyio


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has nothing wait long that waits for its next flush."""
    monkeypatch.setattr(flushing, "FLUSH_PAUSE_SECS", 0.001)
    monkeypatch.setattr(flushing, "FIRST_RETRY_SECS", 0.001)


def scripted(runtime: Runtime, folder: Path, replies: int = 3, **options: Any) -> Session:
    return runtime.new_session(provider=ScriptedProvider(["ok"] * replies), cwd=folder, **options)


class Notices(list[str]):
    """Errors that a session tells its watchers about."""

    def __init__(self, session: Session) -> None:
        self._new = anyio.Event()
        session.stream.attach(self._take)

    def _take(self, event: Any) -> None:
        if event.type == "notice" and event.severity == "error":
            self.append(event.text)
            self._new.set()

    async def first(self) -> str:
        with anyio.fail_after(10):
            await self._new.wait()
        return self[0]


async def saved(session: Session) -> None:
    """Returns once nothing is unsaved any more."""
    with anyio.fail_after(10):
        while session.unsaved is not None:
            await anyio.lowlevel.checkpoint()


# --- sessions that are deleted ---


async def test_a_deleted_session_does_not_come_back_with_the_flush_that_waits(tmp_path: Path) -> None:
    reports: list[str] = []
    async with make_runtime(report=reports.append) as runtime:
        session = scripted(runtime, tmp_path)
        await session.run("go")
        runtime.close_session(session)
        delete_session(runtime.store, session.id)
    assert not list(runtime.store.folder.glob("*.json*"))
    assert reports == []


async def test_nor_when_another_process_deletes_it(tmp_path: Path) -> None:
    async with make_runtime() as runtime:
        session = scripted(runtime, tmp_path)
        await session.run("go")
        delete_session(runtime.store, session.id)
        for _time in range(2):
            with pytest.raises(SessionNotFoundError):
                session.set_mode("plan")
            with pytest.raises(SessionNotFoundError):
                session.set_model("demo")
            # As if its descriptor had been needed elsewhere.
            session._log.close()
        assert session.meta.mode == "default"
    assert not list(runtime.store.folder.glob("*.json*"))


async def test_nor_when_it_is_deleted_while_its_metadata_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from openheim.store import history

    async with make_runtime() as runtime:
        session = scripted(runtime, tmp_path)
        await session.run("go")
        real = history.write_meta

        def late(path: Path, text: str, *, durable: bool = False) -> None:
            delete_session(runtime.store, session.id)
            real(path, text, durable=durable)

        write = runtime.store.prepare_meta(session.meta)
        monkeypatch.setattr(history, "write_meta", late)
        with pytest.raises(SessionNotFoundError):
            write()
        assert not list(runtime.store.folder.glob("*.json*"))


# --- what the log knows better than the metadata ---


@tool
async def act() -> str:
    return "did"


async def with_a_decision(runtime: Runtime, folder: Path) -> Session:
    """A session in plan mode that has a remembered answer."""
    provider = ScriptedProvider([reply_tool_calls(("act", {})), "ok"])
    session = runtime.new_session(provider=provider, cwd=folder, mode="dontAsk", skills=["s"], attended=True)
    session.set_mode("default")
    session.stream.attach(
        lambda event: (
            session.answer(event.ask_id, "deny", by="test", remember=True) if event.type == "permission_asked" else None
        )
    )
    await session.run("go")
    return session


@pytest.mark.parametrize("lost", ["damaged", "stale", "none"])
async def test_mode_model_and_decisions_outlive_the_metadata(tmp_path: Path, lost: str) -> None:
    home = Path(os.environ["OPENHEIM_HOME"])
    (home / "skills").mkdir(parents=True)
    (home / "skills" / "s.md").write_text("How to do s.")
    async with make_runtime(tools=[act]) as runtime:
        session = await with_a_decision(runtime, tmp_path)
        meta = runtime.store.meta_path(session.id)
        stale = meta.read_text()
        session.set_mode("plan")
        session.set_model("demo", "demo")
    if lost == "none":
        meta.unlink()
    else:
        # What kill -9 leaves before the flush.
        meta.write_text("" if lost == "damaged" else stale)
    async with make_runtime(tools=[act]) as runtime:
        loaded = runtime.load_session(session.id)
        assert (loaded.meta.mode, loaded.binding.provider_name, loaded.meta.cwd) == ("plan", "demo", str(tmp_path))
        assert loaded.meta.extra["decisions"] == {"act": "deny"}
        assert loaded.meta.skills == ["s"]


async def test_the_mode_at_the_start_and_that_of_a_resumption_are_in_the_log(tmp_path: Path) -> None:
    async with make_runtime() as runtime:
        session = scripted(runtime, tmp_path, mode="plan")
        await session.run("go")
        await session.run("on")
        runtime.close_session(session)
        runtime.store.meta_path(session.id).unlink()
        again = runtime.load_session(session.id, provider=ScriptedProvider(["ok", "ok"]))
        assert again.meta.mode == "plan"
        await again.run("on")
        runtime.close_session(again)
        careful = runtime.load_session(session.id, provider=ScriptedProvider(["ok"]), mode="dontAsk")
        await careful.run("on")
        runtime.close_session(careful)
        stored = runtime.store.load(session.id)
    assert stored.meta.mode == "dontAsk"
    # One at the start, one where something changed.
    assert [record["mode"] for record in stored.records if record["record"] == "session"] == ["plan", "dontAsk"]


async def test_a_session_that_was_let_go_comes_back_as_it_was(tmp_path: Path) -> None:
    async with make_runtime(settings={"sessions": {"max_live": 1}}) as runtime:
        session = scripted(runtime, tmp_path)
        await session.run("go")
        session.set_mode("plan")
        context = session.meta.extra["context"]
        scripted(runtime, tmp_path)
        assert runtime.live.get(session.id) is None
        loaded = runtime.load_session(session.id)
        assert (loaded.meta.mode, loaded.meta.extra["context"]) == ("plan", context)
        loaded.set_mode("default")
    # What still waits to be made durable of the one let go does not undo that.
    assert runtime.store.load(session.id).meta.mode == "default"


# --- what cannot be saved ---


async def test_a_disk_that_refuses_is_told_once_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, soon: None
) -> None:
    refused = 0

    def refuses(descriptor: int) -> None:
        nonlocal refused
        refused += 1
        if refused <= 3:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(store_log, "datasync", refuses)
    reports: list[str] = []
    async with make_runtime(report=reports.append) as runtime:
        session = scripted(runtime, tmp_path)
        notices = Notices(session)
        await session.run("go")
        assert "may not be saved" in await notices.first()
        assert "Input/output error" in notices[0]
        await saved(session)
        assert refused == 4
        assert (len(notices), reports) == (1, [])
        refused = 0
        await session.run("on")
        with anyio.fail_after(10):
            while len(notices) < 2:
                await anyio.lowlevel.checkpoint()
        await saved(session)


async def test_so_are_metadata_that_cannot_be_replaced(tmp_path: Path, soon: None) -> None:
    reports: list[str] = []
    async with make_runtime(report=reports.append) as runtime:
        session = scripted(runtime, tmp_path)
        await session.run("go")
        meta = runtime.store.meta_path(session.id)
        meta.unlink()
        meta.mkdir()
        # Nobody watches this one, so the program is told.
        await session.run("on")
        with anyio.fail_after(10):
            while not reports:
                await anyio.lowlevel.checkpoint()
        assert session.unsaved is not None
        assert str(meta) in str(session.unsaved)
        meta.rmdir()
        await saved(session)
        assert json.loads(meta.read_text())["meta"]["title"] == "go"
    assert len(reports) == 1


async def test_running_out_of_descriptors_is_one_of_these(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, soon: None
) -> None:
    real = SessionLog.prepare_sync
    failures = [OSError(24, "Too many open files")] * 2

    def sometimes(self: SessionLog) -> Any:
        if failures:
            raise failures.pop()
        return real(self)

    monkeypatch.setattr(SessionLog, "prepare_sync", sometimes)
    async with make_runtime() as runtime:
        session = scripted(runtime, tmp_path)
        notices = Notices(session)
        await session.run("go")
        assert "Too many open files" in await notices.first()
        await saved(session)
        assert (await session.run("on")).text == "ok"
    assert len(notices) == 1


async def test_what_could_not_be_written_is_written_between_turns_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, soon: None
) -> None:
    real = store_log._write_all
    full = False

    def sometimes(descriptor: int, data: bytes) -> None:
        if full:
            os.write(descriptor, data[: len(data) // 2])
            raise OSError(28, "No space left on device")
        real(descriptor, data)

    monkeypatch.setattr(store_log, "_write_all", sometimes)

    def fill(event: Any) -> None:
        nonlocal full
        full = event.type == "iteration_start" or full

    async with make_runtime() as runtime:
        session = scripted(runtime, tmp_path)
        session.stream.attach(fill)
        notices = Notices(session)
        outcome = await session.run("go")
        assert (outcome.text, str(outcome.error)[:20]) == ("ok", "1 message of this tu")
        session.set_mode("plan")
        session.set_mode("dontAsk")
        assert [message.text for message in runtime.store.load(session.id).messages] == ["go"]
        full = False
        with anyio.fail_after(10):
            while len(runtime.store.load(session.id).records) < 3:
                await anyio.lowlevel.checkpoint()
        await saved(session)
        stored = runtime.store.load(session.id)
    assert [message.text for message in stored.messages] == ["go", "ok"]
    # The one that was replaced before it was written is not missed.
    assert [record["record"] for record in stored.records] == ["session", "turn_end", "mode"]
    assert stored.meta.mode == "dontAsk"
    assert any("not being saved" in notice for notice in notices)
