"""Forks, titles, archive, removal: what becomes of a session's files, also while it is in use."""

from __future__ import annotations

import errno
import json
import os
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from openheim.errors import SessionBusyError, SessionLockedError, SessionNotFoundError, StorageError, UsageError
from openheim.messages import Usage
from openheim.store import HistoryStore
from openheim.store.lease import Lease
from openheim.store.operations.finding import find_session
from openheim.store.operations.fork import fork_session
from openheim.store.operations.listing import list_sessions
from openheim.store.operations.marks import archive_session, rename_session
from openheim.store.operations.removal import delete_session, prune_sessions
from openheim.store.operations.showing import conversation
from tests.store.contenders import heard, tell, workers
from tests.store.stores import (
    ID,
    OTHER_ID,
    assistant,
    call,
    result,
    session_id,
    texts,
    turn_end,
    user,
    write_session,
)

# --- finding ---


def test_a_session_is_found_by_the_beginning_of_its_id(store: HistoryStore) -> None:
    write_session(store, ID)
    store.log(OTHER_ID).append(user("no metadata"))
    assert find_session(store, ID) == ID
    assert find_session(store, ID.upper()[:6]) == ID
    assert find_session(store, "6") == OTHER_ID
    write_session(store, session_id(1))
    with pytest.raises(UsageError, match=rf"2 sessions begin with 550e8400: {session_id(1)}, {ID}"):
        find_session(store, "550e8400")


@pytest.mark.parametrize("prefix", ["", "..", "/", "550e8400-e29b-41d4-a716-446655440000x", "g", "9", "*", "\0"])
def test_what_is_no_beginning_of_an_id_finds_nothing(store: HistoryStore, prefix: str) -> None:
    write_session(store, ID)
    with pytest.raises(SessionNotFoundError):
        find_session(store, prefix)


def test_nothing_is_found_where_there_is_no_history(store: HistoryStore) -> None:
    with pytest.raises(SessionNotFoundError):
        find_session(HistoryStore(store.folder / "none"), "5")


# --- fork ---


def test_a_fork_ends_at_the_last_completed_turn(store: HistoryStore) -> None:
    write_session(
        store,
        ID,
        user("one"),
        call("c1"),
        result("c1"),
        assistant("first", usage=Usage(7)),
        turn_end(1),
        {"record": "mode", "mode": "plan"},
        {"record": "approval", "key": "shell", "decision": "allow"},
        {"record": "archived"},
        user("two", 2),
        call("c2", 2),
        cwd="/somewhere",
        skills=["s"],
        mode="plan",
        context_usage=Usage(99),
        extra={"decisions": {"shell": "allow"}},
    )
    source = store.log_path(ID).read_bytes()
    copy = fork_session(store, ID)
    assert store.log_path(ID).read_bytes() == source
    loaded = store.load(copy.id)
    assert [message.id for message in loaded.messages] == ["one", "m-c1", "r-c1", "a-first"]
    assert [record["record"] for record in loaded.records] == ["turn_end", "mode"]
    assert loaded.warnings == []
    meta = loaded.meta
    assert meta.id == copy.id != ID
    assert meta.forked_from == {"session_id": ID, "message_id": "a-first"}
    assert (meta.title, meta.cwd, meta.skills, meta.mode) == ("a title", "/somewhere", ["s"], "plan")
    assert (meta.context_usage, meta.archived, meta.extra) == (Usage(7), False, {})
    assert meta.created_at == meta.updated_at > "2026-01-01"
    assert [row.meta.id for row in list_sessions(store).rows] == [copy.id]
    # The copy goes on by itself.
    store.log(copy.id).append(user("three", 2))
    assert texts(store, copy.id)[-1] == "three"
    assert store.log_path(ID).read_bytes() == source


@pytest.mark.parametrize("stop_reason", ["cancelled", None])
def test_a_turn_that_was_cancelled_or_failed_is_not_completed(store: HistoryStore, stop_reason: str | None) -> None:
    def ends(turn: int, reason: str | None) -> dict[str, object]:
        return {"record": "turn_end", "turn": turn, "stop_reason": reason}

    lines = [user("one"), assistant("half of it"), ends(1, stop_reason)]
    write_session(store, ID, *lines)
    with pytest.raises(UsageError, match="no completed turn"):
        fork_session(store, ID)
    log = store.log(ID)
    for line in (user("two", 2), assistant("an answer", 2), user("three", 3), assistant("half", 3)):
        log.append(line)
        if line.id == "a-an answer":
            log.append_record(ends(2, "end_turn"))
    log.append_record(ends(3, stop_reason))
    log.close()
    # What came before it is part of the conversation.
    assert texts(store, fork_session(store, ID).id) == ["one", "half of it", "two", "an answer"]


def test_a_fork_can_have_a_title_of_its_own(store: HistoryStore) -> None:
    write_session(store, ID, user("one"), assistant("first"), turn_end(1), {"record": "title", "title": "by hand"})
    assert fork_session(store, ID).title == "by hand"
    copy = fork_session(store, ID, title=" other\n way ")
    assert store.load(copy.id).meta.title == "other way"
    assert store.load(ID).meta.title == "by hand"


def test_lines_that_cannot_be_read_stay_behind_and_unknown_keys_do_not(store: HistoryStore) -> None:
    lines = [
        b'{"role":"user","content":[{"type":"text","text":"one"}],"colour":"blue"}',
        b"\0\0\0",
        b'{"role":"assistant","content":[{"type":"hologram","size":1e400}]}',
        b'{"record":"of the future","x":[1]}',
        b'{"role":"user","content":[{"type":"text","text":"two"}]}',
    ]
    store.log_path(ID).write_bytes(b"\n".join(lines))
    copy = fork_session(store, ID)
    kept = [json.loads(line) for line in store.log_path(copy.id).read_bytes().splitlines()]
    # A number that no JSON reader can hold becomes null.
    strange = json.loads(lines[2].replace(b"1e400", b"null"))
    assert kept == [json.loads(lines[0]), strange, json.loads(lines[3])]


def test_sessions_of_programs_that_write_no_turn_ends_are_forked_at_the_last_answer(store: HistoryStore) -> None:
    write_session(
        store,
        ID,
        user("one", 0),
        call("c", 0),
        result("c", turn=0),
        assistant("answer", 0),
        user("two", 0),
        call("d", 0),
    )
    copy = fork_session(store, ID)
    assert [message.id for message in store.load(copy.id).messages] == ["one", "m-c", "r-c", "a-answer"]


def test_without_a_completed_turn_there_is_nothing_to_fork(store: HistoryStore) -> None:
    write_session(store, ID, user("one"), assistant("still at it"), {"record": "mode", "mode": "plan"})
    with pytest.raises(UsageError, match="no completed turn"):
        fork_session(store, ID)
    with pytest.raises(SessionNotFoundError):
        fork_session(store, OTHER_ID)
    assert len(list(store.folder.glob("*.jsonl"))) == 1


def test_a_session_in_use_can_be_forked(store: HistoryStore) -> None:
    write_session(store, ID, user("one"), assistant("first"), turn_end(1))
    with workers("contend", store.folder, 1) as (other,):
        tell(other, "try")
        assert heard(other).startswith("held")
        assert fork_session(store, ID).title == "a title"
        tell(other, "release")
        assert heard(other) == "released"


def test_a_fork_that_cannot_be_written_leaves_nothing(store: HistoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    write_session(store, ID, user("one"), assistant("first"), turn_end(1))
    before = sorted(path.name for path in store.folder.iterdir())

    def full(*_arguments: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StorageError, match="No space left"):
        fork_session(store, ID)
    monkeypatch.undo()
    assert sorted(path.name for path in store.folder.iterdir()) == before


# --- marks ---


def test_renaming(store: HistoryStore) -> None:
    before = write_session(store, ID, user("one"))
    rename_session(store, ID, "  first\n title ")
    assert rename_session(store, ID, "x" * 1000).title == "x" * 500
    loaded = store.load(ID)
    assert loaded.meta.title == "x" * 500
    assert [record["title"] for record in loaded.records] == ["first title", "x" * 500]
    assert loaded.meta.updated_at == before.updated_at
    assert store.read_meta(ID) == loaded.meta
    assert not store.lock_path(ID).exists()
    # The log knows better than metadata that somebody wrote from memory.
    store.write_meta(before)
    assert store.load(ID).meta.title == "x" * 500
    for blank in ("", " \n"):
        with pytest.raises(UsageError, match="title"):
            rename_session(store, ID, blank)
    with pytest.raises(SessionNotFoundError):
        rename_session(store, OTHER_ID, "title")
    assert not store.lock_path(OTHER_ID).exists()


def test_renaming_cuts_off_a_torn_tail_like_any_writer(store: HistoryStore) -> None:
    write_session(store, ID, user("one"))
    with store.log_path(ID).open("ab") as file:
        file.write(b'{"role":"us')
    rename_session(store, ID, "title")
    assert store.load(ID).warnings == []


def test_archiving_happens_once_and_for_good(store: HistoryStore) -> None:
    write_session(store, ID, user("one"))
    assert archive_session(store, ID).archived
    after = store.log_path(ID).read_bytes()
    assert archive_session(store, ID).archived
    assert store.log_path(ID).read_bytes() == after
    assert list_sessions(store).rows == []
    assert [row.meta.id for row in list_sessions(store, archived=True).rows] == [ID]
    assert texts(store) == ["one"]
    with pytest.raises(SessionNotFoundError):
        archive_session(store, OTHER_ID)


def test_a_session_can_be_marked_while_another_process_runs_a_turn(store: HistoryStore) -> None:
    write_session(store, ID, user("one"))
    meta = store.meta_path(ID).read_bytes()
    with workers("contend", store.folder, 1) as (other,):
        tell(other, "try")
        assert heard(other).startswith("held")
        assert [row.meta.title for row in list_sessions(store).rows] == ["a title"]
        assert rename_session(store, ID, "new").title == "new"
        assert [row.meta.title for row in list_sessions(store).rows] == ["new"]
        archived = archive_session(store, ID)
        assert (archived.archived, archived.title) == (True, "new")
        assert list_sessions(store).rows == []
        assert [row.meta.title for row in list_sessions(store, archived=True).rows] == ["new"]
        # The metadata belongs to whoever runs the turn.
        assert store.meta_path(ID).read_bytes() == meta
        assert store.lock_path(ID).exists()
        tell(other, "release")
        assert heard(other) == "released"
    loaded = store.load(ID)
    assert (loaded.meta.title, loaded.meta.archived) == ("new", True)
    assert [row.meta.title for row in list_sessions(store, archived=True).rows] == ["new"]


def test_a_session_that_was_deleted_meanwhile_is_not_made_anew_by_a_mark(store: HistoryStore) -> None:
    write_session(store, ID, user("one"))
    log = store.log(ID)
    delete_session(store, ID)
    with pytest.raises(SessionNotFoundError):
        log.append_beside({"record": "archived"})
    with pytest.raises(SessionNotFoundError):
        rename_session(store, ID, "new")
    assert not store.exists(ID)


# --- removal ---


def test_deleting_removes_every_file_of_the_session(store: HistoryStore) -> None:
    for identity in (ID, OTHER_ID):
        write_session(store, identity, user("one"))
        store.metrics_path(identity).write_text("{}\n")
    delete_session(store, ID)
    left = {path.name for path in store.folder.iterdir() if not path.name.startswith(".")}
    assert left == {f"{OTHER_ID}.json", f"{OTHER_ID}.jsonl", f"{OTHER_ID}.metrics.jsonl"}
    for identity in (ID, "..", "nonsense"):
        with pytest.raises(SessionNotFoundError):
            delete_session(store, identity)


@pytest.mark.parametrize("missing", ["log", "meta"])
def test_half_a_session_can_be_deleted(store: HistoryStore, missing: str) -> None:
    write_session(store, ID, user("one"))
    (store.log_path(ID) if missing == "log" else store.meta_path(ID)).unlink()
    delete_session(store, ID)
    assert not store.exists(ID)


def test_a_session_is_deleted_where_its_lease_has_no_room(store: HistoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    lock = store.lock_path(ID)
    for stale in (None, b"", b'{"pid": 1, "hostname": "elsewhere"}'):
        write_session(store, ID, user("one"))
        with monkeypatch.context() as patched:
            patched.setattr("openheim.store.lease.os.write", full)
            if stale is not None:
                lock.write_bytes(stale)
                # Of somebody whom nobody can ask, and who is to be believed for now.
                with pytest.raises(SessionLockedError):
                    delete_session(store, ID)
                os.utime(lock, (1, 1))
            with pytest.raises(StorageError):
                store.lease(ID).acquire()
            delete_session(store, ID)
        assert not store.exists(ID)
        assert not lock.exists()


def test_a_session_in_use_is_not_deleted(store: HistoryStore) -> None:
    write_session(store, ID, user("one"))
    with workers("contend", store.folder, 1) as (other,):
        tell(other, "try")
        assert heard(other).startswith("held")
        with pytest.raises(SessionLockedError, match=f"process {other.pid}"):
            delete_session(store, ID)
        tell(other, "release")
        assert heard(other) == "released"
    lease = Lease(store.lock_path(ID), ID)
    with lease, pytest.raises(SessionBusyError):
        delete_session(store, ID)
    assert texts(store) == ["one"]


def days_ago(days: float) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="milliseconds")


def test_pruning_keeps_what_is_new_enough(store: HistoryStore) -> None:
    for number in range(6):
        write_session(store, session_id(number), user("x"), updated=days_ago(number * 10 + 1))
    archive_session(store, session_id(5))

    def left() -> list[str]:
        return [row.meta.id for row in list_sessions(store, archived=None).rows]

    everything = [session_id(number) for number in range(6)]
    secs = 15 * 86400.0
    planned = prune_sessions(store, older_than_secs=secs, keep=3, dry_run=True)
    assert [meta.id for meta in planned.removed] == everything[3:]
    assert left() == everything
    assert prune_sessions(store, older_than_secs=secs, keep=3).removed == planned.removed
    assert left() == everything[:3]
    assert [meta.id for meta in prune_sessions(store, older_than_secs=secs).removed] == everything[2:3]
    assert prune_sessions(store, keep=2).removed == []
    assert [meta.id for meta in prune_sessions(store, keep=0).removed] == everything[:2]
    assert left() == []


def test_pruning_leaves_sessions_in_use_alone_and_names_them(store: HistoryStore) -> None:
    write_session(store, ID, user("x"))
    write_session(store, OTHER_ID, user("x"))
    with store.lease(OTHER_ID):
        pruned = prune_sessions(store, keep=0)
    assert [meta.id for meta in pruned.removed] == [ID]
    ((meta, err),) = pruned.kept
    assert meta.id == OTHER_ID
    assert isinstance(err, SessionBusyError)


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"keep": -1},
        {"keep": True},
        {"keep": 1.0},
        {"keep": "1"},
        *({"older_than_secs": odd} for odd in (-1.0, float("nan"), float("inf"), -float("inf"), "30d", True)),
        {"older_than_secs": float("nan"), "keep": 1},
    ],
)
def test_pruning_needs_a_limit_that_is_one(store: HistoryStore, limits: dict[str, Any]) -> None:
    write_session(store, ID, user("x"), updated=days_ago(time.time() / 86400))
    with pytest.raises((UsageError, TypeError), match=r"limit|keep|older_than_secs"):
        prune_sessions(store, **limits)
    assert store.exists(ID)


# --- showing ---


def test_a_conversation_is_shown_in_the_form_that_every_reader_knows(store: HistoryStore) -> None:
    write_session(store, ID, user("one"), call("c1"), result("c1"), assistant("done"), turn_end())
    stored = store.load(ID)
    shown = conversation(stored)
    assert shown["meta"] == stored.meta.to_dict()
    assert shown["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "one"}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "read_file", "arguments": '{"path":"a"}'}],
        },
        {
            "role": "tool",
            "content": [{"type": "tool_result", "tool_call_id": "c1", "tool_name": "read_file", "content": "text"}],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
    ]
    full = conversation(stored, full=True)
    assert full["meta"]["format"] == 1
    assert full["messages"][-1]["usage"]["input_tokens"] == 10
    assert full["records"] == [turn_end()]
