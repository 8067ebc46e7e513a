"""One writer among processes: the lease of a session while its turn runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from openheim import Runtime
from openheim.errors import SessionLockedError, SessionNotFoundError
from openheim.store.lease import owner_of
from openheim.testing import Pause, ScriptedProvider, reply_text
from tests.runtime.test_live import make_runtime

pytestmark = pytest.mark.anyio

HOLDER = """
import sys
from pathlib import Path
from openheim.store import HistoryStore
lease = HistoryStore(Path(sys.argv[1])).lease(sys.argv[2])
lease.acquire()
print("held", flush=True)
sys.stdin.read()
lease.release()
"""


@contextmanager
def held_elsewhere(runtime: Runtime, session_id: str) -> Iterator[int]:
    """Another process holds the session meanwhile; gives its pid."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(runtime.store.folder), session_id],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    try:
        yield process.pid
    finally:
        process.stdin.close()
        process.wait(20)
        process.stdout.close()


async def test_a_turn_elsewhere_refuses_one_here_and_names_its_process(tmp_path: Path) -> None:
    async with make_runtime() as runtime:
        provider = ScriptedProvider(["one", "two"])
        session = runtime.new_session(provider=provider, cwd=tmp_path)
        await session.run("go")
        with held_elsewhere(runtime, session.id) as pid:
            with pytest.raises(SessionLockedError) as caught:
                await session.run("too soon")
            assert (caught.value.pid, str(pid) in str(caught.value)) == (pid, True)
            assert not session.running
            # Reading takes no lease.
            assert len(runtime.store.load(session.id).messages) == 2
        assert (await session.run("now")).text == "two"
        assert [message.text for message in session.messages] == ["go", "one", "now", "two"]


async def test_the_lease_is_held_for_the_turn_only(tmp_path: Path) -> None:
    pause = Pause()
    async with make_runtime() as runtime, anyio.create_task_group() as group:
        session = runtime.new_session(provider=ScriptedProvider([reply_text(pause, "a")]), cwd=tmp_path)
        lock = runtime.store.lock_path(session.id)
        group.start_soon(session.run, "go")
        with anyio.fail_after(10):
            await pause.reached()
            assert owner_of(lock) is not None
            pause.release()
            await session.wait_until_idle()
        assert owner_of(lock) is None


async def test_what_another_process_added_is_taken_in(tmp_path: Path) -> None:
    async with make_runtime() as here, make_runtime() as there:
        session = here.new_session(provider=ScriptedProvider(["one", "four"]), cwd=tmp_path)
        await session.run("go")
        other = there.load_session(session.id, provider=ScriptedProvider(["two"]))
        await other.run("from there")
        provider = session.binding.provider
        assert (await session.run("back here")).text == "four"
        assert isinstance(provider, ScriptedProvider)
        sent = [message.text for message in provider.requests[-1].messages]
        assert sent == ["go", "one", "from there", "two", "back here"]
        stored = here.store.load(session.id).messages
        assert [message.text for message in stored] == [*sent, "four"]
        assert [message.turn for message in stored] == [1, 1, 2, 2, 3, 3]


async def test_a_session_that_was_deleted_meanwhile_says_so(tmp_path: Path) -> None:
    async with make_runtime() as runtime:
        session = runtime.new_session(provider=ScriptedProvider(["one", "two"]), cwd=tmp_path)
        await session.run("go")
        runtime.store.log_path(session.id).unlink()
        with pytest.raises(SessionNotFoundError):
            await session.run("gone?")
        assert not session.running


async def test_a_lease_that_cannot_be_renewed_ends_no_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openheim.runtime.life.LEASE_REFRESH_SECS", 0.01)
    pause = Pause()
    told = anyio.Event()
    texts: list[str] = []

    def watch(event: Any) -> None:
        if event.type == "notice" and event.severity == "error":
            texts.append(event.text)
            told.set()

    async with make_runtime() as runtime, anyio.create_task_group() as group:
        session = runtime.new_session(provider=ScriptedProvider([reply_text("a", pause, "b")]), cwd=tmp_path)
        session.stream.attach(watch)
        group.start_soon(session.run, "go")
        with anyio.fail_after(10):
            await pause.reached()
            guard = runtime.store.folder / ".guard"
            guard.unlink()
            guard.mkdir()
            await told.wait()
            guard.rmdir()
            # The next time it works again.
            stamp = runtime.store.lock_path(session.id).stat().st_mtime_ns
            while runtime.store.lock_path(session.id).stat().st_mtime_ns == stamp:
                await anyio.lowlevel.checkpoint()
            pause.release()
            await session.wait_until_idle()
        assert session.messages[-1].text == "ab"
        assert owner_of(runtime.store.lock_path(session.id)) is None
    assert "could not be renewed" in texts[0]


async def test_mode_model_and_summary_from_elsewhere_hold_for_the_very_next_turn(tmp_path: Path) -> None:
    settings = {"providers": {"a": {"kind": "demo"}, "b": {"kind": "demo"}}}
    async with make_runtime(settings=settings) as here, make_runtime(settings=settings) as there:
        session = here.new_session(provider="a", cwd=tmp_path)
        await session.run("hello")
        await session.run("hello again")
        other = there.load_session(session.id, provider=ScriptedProvider(["a summary of it"]))
        assert await other.compact()
        other.set_model("b")
        other.set_mode("plan")
        asked = []
        real = session._runtime.bind("b", None).provider
        monkey = real.generate

        async def generate(request: Any, emit: Any) -> Any:
            asked.append(request)
            return await monkey(request, emit)

        real.generate = generate  # type: ignore[method-assign]  # to see the request
        await session.run("on")
        assert session.messages[-1].provider == "b"
        assert {tool.name for tool in asked[0].tools} <= {tool.name for tool in session._toolbox.read_only_specs}
        assert "a summary of it" in "".join(message.text for message in asked[0].messages)
        assert (session.meta.provider, session.meta.mode) == ("b", "plan")


async def test_a_model_from_elsewhere_that_is_unknown_here_is_told_and_passed_over(tmp_path: Path) -> None:
    settings = {"providers": {"b": {"kind": "demo"}}}
    async with make_runtime() as here, make_runtime(settings=settings) as there:
        session = here.new_session(provider="demo", cwd=tmp_path)
        await session.run("hello")
        there.load_session(session.id).set_model("b")
        texts: list[str] = []
        session.stream.attach(lambda event: texts.append(event.text) if event.type == "notice" else None)
        assert (await session.run("on")).error is None
        assert session.messages[-1].provider == "demo"
        assert "cannot be used here" in texts[0]


async def test_a_compaction_can_be_cancelled(tmp_path: Path) -> None:
    pause = Pause()
    async with make_runtime() as runtime:
        provider = ScriptedProvider(["one", "two", reply_text("a sum", pause, "mary"), "three"])
        session = runtime.new_session(provider=provider, cwd=tmp_path)
        await session.run("first")
        await session.run("second")
        done: list[bool] = []

        async def compact() -> None:
            done.append(await session.compact())

        async with anyio.create_task_group() as group:
            group.start_soon(compact)
            with anyio.fail_after(10):
                await pause.reached()
                assert session.running
                session.cancel()
                await session.wait_until_idle()
        assert (done, provider.cancelled) == ([False], 1)
        await session.run("third")
        assert [message.text for message in provider.requests[-1].messages] == [
            "first",
            "one",
            "second",
            "two",
            "third",
        ]
        assert not [record for record in runtime.store.load(session.id).records if record["record"] == "compaction"]


async def test_the_window_of_the_settings_is_kept_to(tmp_path: Path) -> None:
    settings = {"providers": {"demo": {"context_window": 2000}}}
    async with make_runtime(settings=settings) as runtime:
        session = runtime.new_session(provider="demo", cwd=tmp_path)
        assert session.binding.context_window == 2000
        trimmed = []
        session.stream.attach(lambda event: trimmed.append(event) if event.type == "context_trimmed" else None)
        for number in range(12):
            await session.run(f"hello {number} " + "padding " * 100)
        assert trimmed
        assert len(runtime.store.load(session.id).messages) == 24
    context = runtime.store.load(session.id).meta.extra["context"]
    async with make_runtime(settings=settings) as runtime:
        loaded = runtime.load_session(session.id)
        assert loaded.meta.extra["context"] == context
        await loaded.run("hello again")
        assert loaded.meta.extra["context"]["bytes_per_token"] != 4.0


async def test_compacting_on_request(tmp_path: Path) -> None:
    async with make_runtime() as runtime:
        provider = ScriptedProvider(["one", "two", "three", "a summary of it", "four"])
        session = runtime.new_session(provider=provider, cwd=tmp_path)
        assert not await session.compact()
        for prompt in ("first", "second", "third"):
            await session.run(prompt)
        assert await session.compact()
        await session.run("fourth")
        sent = [message.text for message in provider.requests[-1].messages]
        assert "a summary of it" in "".join(sent)
        assert "first" in sent[0]
        assert [message.text for message in runtime.store.load(session.id).messages] == [
            "first",
            "one",
            "second",
            "two",
            "third",
            "three",
            "fourth",
            "four",
        ]
