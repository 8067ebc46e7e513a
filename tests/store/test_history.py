"""The log of a session and its metadata."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openheim.errors import SessionNotFoundError, StorageError
from openheim.messages import Message, TextBlock, ToolUseBlock, UnknownBlock, message_from_stored, message_to_stored
from openheim.store import HistoryStore, SessionMeta
from openheim.store.lease import owner_of
from openheim.store.log import KEPT_DESCRIPTORS
from openheim.store.meta import title_of
from openheim.store.operations.fork import fork_session
from openheim.store.operations.listing import list_sessions, search_sessions
from openheim.store.operations.marks import rename_session
from tests.store.stores import ID, OTHER_ID, turn_end, write_session


@pytest.fixture
def store(tmp_path: Path) -> HistoryStore:
    made = HistoryStore(tmp_path / "history")
    made.prepare()
    return made


def user(text: str) -> Message:
    return Message("user", (TextBlock(text),), id=text, created_at="2026-01-01T00:00:00.000Z", turn=1, step=1)


def texts(store: HistoryStore) -> list[str]:
    return [message.text for message in store.load(ID).messages]


def test_appended_messages_load_again(store: HistoryStore) -> None:
    log = store.log(ID)
    log.append(user("one"))
    log.append_record({"record": "turn_end", "at": "now"})
    log.close()
    log.append(user("two"))
    loaded = store.load(ID)
    assert texts(store) == ["one", "two"]
    assert loaded.records == [{"record": "turn_end", "at": "now"}]
    assert oct(store.log_path(ID).stat().st_mode & 0o777) == "0o600"


@pytest.mark.parametrize("text", ["", "é\u2028\u0085\n\r", "\ud800", "\x00", "x" * 1_000_000, '"\\'])
def test_any_text_survives(store: HistoryStore, text: str) -> None:
    store.log(ID).append(user(text))
    store.log(ID).append(user("after"))
    assert texts(store) == [text, "after"]


def test_a_torn_tail_hides_nothing_that_follows(store: HistoryStore) -> None:
    log = store.log(ID)
    log.append(user("one"))
    log.close()
    whole = store.log_path(ID).read_bytes()
    with store.log_path(ID).open("ab") as file:
        file.write(whole[: len(whole) // 2])
    log.append(user("two"))
    loaded = store.load(ID)
    assert [message.text for message in loaded.messages] == ["one", "two"]
    assert loaded.warnings == ["the metadata was missing or damaged and was made anew from the messages"]
    assert store.log_path(ID).read_bytes().startswith(whole + b'{"role"')


@pytest.mark.parametrize(
    "line", ["{broken", "[]", "3", "null", '{"role": "god", "content": []}', '{"role": "user"}', "\xff"]
)
def test_a_line_that_cannot_be_read_is_skipped_with_a_warning(store: HistoryStore, line: str) -> None:
    store.log(ID).append(user("one"))
    with store.log_path(ID).open("ab") as file:
        file.write(line.encode("latin-1") + b"\n")
    store.log(ID).append(user("two"))
    loaded = store.load(ID)
    assert [message.text for message in loaded.messages] == ["one", "two"]
    assert loaded.warnings[0] == "line 2 of the history cannot be read and is skipped"


def test_unknown_blocks_and_keys_are_kept() -> None:
    stored = {
        "role": "assistant",
        "content": [{"type": "hologram", "size": 3}, {"type": "text"}, {"type": "text", "text": "ok"}],
        "colour": "blue",
        "usage": {"input_tokens": "many"},
    }
    message = message_from_stored(stored)
    assert message.content[:2] == (UnknownBlock({"type": "hologram", "size": 3}), UnknownBlock({"type": "text"}))
    again = message_to_stored(message)
    assert again["content"] == stored["content"]
    assert again["colour"] == "blue"


def test_numbers_that_json_does_not_have_are_read_as_null_and_never_written(store: HistoryStore) -> None:
    odd = '{"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "new", "size": NaN}], "score": 1e999}'
    store.log_path(ID).write_text(odd + "\n")
    store.meta_path(ID).write_text(f'{{"meta": {{"id": "{ID}", "score": [Infinity], "title": "t"}}}}')
    loaded = store.load(ID)
    assert loaded.warnings == []
    (message,) = loaded.messages
    assert message.content == (TextBlock("hi"), UnknownBlock({"type": "new", "size": None}))
    assert (message.extra, loaded.meta.extra) == ({"score": None}, {"score": [None]})
    store.log(ID).append(message)
    store.write_meta(loaded.meta)
    line = store.log_path(ID).read_text().splitlines()[-1]
    assert json.loads(line, parse_constant=pytest.fail)["score"] is None
    assert json.loads(store.meta_path(ID).read_text(), parse_constant=pytest.fail)["meta"]["score"] == [None]


@pytest.mark.parametrize("odd", [float("nan"), {1}, b"x"])
def test_a_message_with_something_that_json_does_not_have_is_stored_all_the_same(store: HistoryStore, odd: Any) -> None:
    store.log(ID).append(Message("assistant", (TextBlock("kept"),), opaque={"item": [odd], "id": "a"}))
    (line,) = store.log_path(ID).read_text().splitlines()
    assert json.loads(line, parse_constant=pytest.fail)["opaque"]["id"] == "a"
    assert store.load(ID).messages[0].text == "kept"


def test_the_oldest_form_of_a_message_is_read() -> None:
    raw = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "c", "name": "read_file", "arguments": '{"path": "a"}'}],
    }
    message = message_from_stored(raw)
    assert message.content == (ToolUseBlock("c", "read_file", '{"path": "a"}'),)
    assert (message.id, message.turn) == ("", 0)


def test_metadata_is_replaced_in_one_step_and_keeps_what_it_does_not_know(store: HistoryStore) -> None:
    path = store.meta_path(ID)
    path.write_text(json.dumps({"meta": {"id": ID, "title": "t", "flavour": "mint", "format": 1}}))
    meta = store.load(ID).meta
    meta.title = "new"
    store.write_meta(meta)
    raw = json.loads(path.read_text())["meta"]
    assert (raw["title"], raw["flavour"], raw["format"]) == ("new", "mint", 1)
    assert [entry.name for entry in store.folder.iterdir()] == [path.name]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"meta": 3}', b'{"meta": {}}', b"\xff"])
def test_damaged_metadata_is_made_anew(store: HistoryStore, content: bytes) -> None:
    store.meta_path(ID).write_bytes(content)
    store.log(ID).append(user("one"))
    loaded = store.load(ID)
    assert loaded.meta.id == ID
    assert "metadata" in loaded.warnings[0]


def test_what_the_log_says_of_the_session_is_in_metadata_that_is_made_anew(store: HistoryStore) -> None:
    log = store.log(ID)
    log.append(user("ä" * 100))
    log.append(Message("assistant", (), id="a", created_at="2026-01-02T00:00:00.000Z", provider="p", model="m"))
    for record in ({"record": "mode", "mode": "plan"}, {"record": "archived"}, {"record": "title"}, {"record": 3}):
        log.append_record(record)
    meta = store.load(ID).meta
    assert (meta.title, meta.mode, meta.archived) == ("ä" * 80, "plan", True)
    assert (meta.provider, meta.model) == ("p", "m")
    assert (meta.created_at, meta.updated_at) == ("2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z")
    log.append_record({"record": "model", "provider": "q", "model": "n"})
    assert (store.load(ID).meta.provider, store.load(ID).meta.model) == ("q", "n")


@pytest.mark.parametrize("session_id", ["", "..", "../../etc/passwd", "x", f"{ID}/", "not-there", f"{ID}\n"])
def test_what_is_no_session_id_is_not_found(store: HistoryStore, session_id: str) -> None:
    with pytest.raises(SessionNotFoundError):
        store.load(session_id)


def test_an_unknown_session_is_not_found(store: HistoryStore) -> None:
    with pytest.raises(SessionNotFoundError):
        store.load(ID)


def test_kept_descriptors_are_bounded(store: HistoryStore) -> None:
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    ids = [f"550e8400-e29b-41d4-a716-{number:012}" for number in range(KEPT_DESCRIPTORS * 2)]
    logs = [store.log(session_id) for session_id in ids]
    for _round in range(2):
        for log in logs:
            log.append(user("x"))
    if before:
        assert len(os.listdir("/proc/self/fd")) <= before + KEPT_DESCRIPTORS
    store.close()
    if before:
        assert len(os.listdir("/proc/self/fd")) <= before
    assert all(len(store.load(session_id).messages) == 2 for session_id in ids)


def test_a_sync_outlives_the_log_being_closed(store: HistoryStore) -> None:
    log = store.log(ID)
    log.append(user("one"))
    sync = log.prepare_sync()
    log.close()
    sync()
    assert texts(store) == ["one"]


def test_a_file_that_was_removed_meanwhile_does_not_count_as_durable(store: HistoryStore) -> None:
    log = store.log(ID)
    log.append(user("one"))
    store.log_path(ID).unlink()
    for _ in range(2):  # Not forgotten once it was told.
        with pytest.raises(StorageError, match="removed while it was in use"):
            log.prepare_sync()()


# --- what is no file ---


@pytest.fixture(params=["pipe", "endless", "folder"])
def put_odd(request: pytest.FixtureRequest) -> Callable[[Path], None]:
    """Puts something at a path that is no file."""

    def put(path: Path) -> None:
        if request.param == "pipe":
            os.mkfifo(path)
        elif request.param == "endless":
            path.symlink_to("/dev/zero")
        else:
            path.mkdir()

    return put


def test_a_log_that_is_no_file_is_neither_read_nor_written(
    store: HistoryStore, put_odd: Callable[[Path], None]
) -> None:
    put_odd(store.log_path(ID))
    with pytest.raises(StorageError, match="cannot read"):
        store.load(ID)
    with pytest.raises(StorageError, match="cannot write"):
        store.log(ID).append(user("one"))
    with pytest.raises(StorageError, match="cannot write"):
        store.log(ID).append_beside({"record": "title", "title": "t"})
    assert [row.meta.id for row in list_sessions(store).rows] == [ID]


def test_metadata_that_is_no_file_is_made_anew(store: HistoryStore, put_odd: Callable[[Path], None]) -> None:
    store.log(ID).append(user("one"))
    put_odd(store.meta_path(ID))
    loaded = store.load(ID)
    assert (loaded.meta.id, loaded.meta.title) == (ID, "one")
    assert "the metadata was missing or damaged" in loaded.warnings[0]
    assert [row.meta.title for row in list_sessions(store).rows] == ["one"]


def test_a_lock_that_is_no_file_is_an_error(store: HistoryStore, put_odd: Callable[[Path], None]) -> None:
    put_odd(store.lock_path(ID))
    with pytest.raises(StorageError, match="cannot use the lease"):
        store.lease(ID).acquire()
    assert owner_of(store.lock_path(ID)) is None


def test_what_stands_in_the_way_of_a_new_lock_is_cleared_away(store: HistoryStore) -> None:
    aside = store.folder / f".{ID}.lock.tmp"
    os.mkfifo(aside)
    with store.lease(ID):
        assert owner_of(store.lock_path(ID)) is not None
    kept = store.folder / "kept"
    kept.write_text("all of it")
    aside.symlink_to(kept)
    with store.lease(ID):
        assert owner_of(store.lock_path(ID)) is not None
    assert kept.read_text() == "all of it"


# --- metadata that lies ---


@pytest.mark.parametrize("claimed", ["../../escaped", "/escaped", OTHER_ID, "\udcff", "x" * 5000])
def test_the_name_of_the_file_is_the_id(store: HistoryStore, claimed: str) -> None:
    write_session(store, ID, user("one"), turn_end())
    path = store.meta_path(ID)
    path.write_text(path.read_text().replace(ID, json.dumps(claimed)[1:-1]))
    loaded = store.load(ID)
    assert loaded.meta.id == ID
    assert [row.meta.id for row in list_sessions(store).rows] == [ID]
    assert rename_session(store, ID, "renamed").id == ID
    assert fork_session(store, ID).forked_from == {"session_id": ID, "message_id": "one"}
    store.write_meta(loaded.meta)
    assert json.loads(path.read_text())["meta"]["id"] == ID
    assert not os.path.exists(store.folder / f"{claimed}.json")


def test_a_title_that_is_no_text_can_be_listed_and_searched(store: HistoryStore) -> None:
    write_session(store, ID, user("one"))
    rename_session(store, ID, "\udcff")
    (row,) = list_sessions(store).rows
    assert row.meta.id == ID
    assert [hit.row.meta.id for hit in search_sessions(store, "one")] == [ID]


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="OPENHEIM_HOME"):
        HistoryStore(tmp_path / "file" / "history").prepare()


def test_titles() -> None:
    assert title_of("ä" * 100) == "ä" * 80
    assert title_of("  \n ") is None
    assert title_of("short") == "short"


def test_metadata_shows_what_every_reader_knows() -> None:
    meta = SessionMeta(ID, "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.000Z")
    assert set(meta.to_dict()) == {"id", "created_at", "updated_at", "title", "model", "provider", "skills", "cwd"}
    assert {"format", "mode"} <= set(meta.to_dict(full=True))
