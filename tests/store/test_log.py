"""A log beside other writers and on a disk that fails: what is cut off, what is adopted, what is refused."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from openheim.errors import SessionNotFoundError, StorageError
from openheim.messages import Message
from openheim.store import HistoryStore, SessionLog
from openheim.store.log import KEPT_DESCRIPTORS
from tests.store.stores import ID, assistant, call, result, session_id, texts, turn_end, user, write_session


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file of this process may grow beyond ``size``: a write that would is cut short, and the next one fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def new_ids(log: SessionLog) -> list[str]:
    return [entry.id if isinstance(entry, Message) else entry["record"] for entry in log.read_new()]


def opened(store: HistoryStore) -> SessionLog:
    """The log of a session that was loaded."""
    return store.log(ID, store.load(ID).position)


# --- torn tails ---


def test_any_cut_of_the_last_three_messages_loads_and_goes_on(store: HistoryStore) -> None:
    """At every byte: what was whole is there, the rest is gone, and the next message is added as if nothing was."""
    write_session(store, ID, user("one"), user("zwölf é\u2028"), call("c1"), result("c1", "äöü\n"), assistant("done"))
    path = store.log_path(ID)
    whole = path.read_bytes()
    ends = [place for place, byte in enumerate(whole, 1) if byte == ord("\n")]
    ids = [message.id for message in store.load(ID).messages]
    for length in range(ends[1], len(whole) + 1):
        path.write_bytes(whole[:length])
        # A line that lacks only its line end is whole.
        complete = sum(end - 1 <= length for end in ends)
        loaded = store.load(ID)
        assert [message.id for message in loaded.messages] == ids[:complete], length
        assert bool(loaded.warnings) == (length not in ends and length + 1 not in ends), length
        log = store.log(ID, loaded.position)
        assert new_ids(log) == [], length
        log.append(user("next"))
        log.close()
        again = store.load(ID)
        assert [message.id for message in again.messages] == [*ids[:complete], "next"], length
        assert again.warnings == [], length


@pytest.mark.parametrize("tail", [b"\0" * 300, b'{"role": "us\0\0\0', b"\xc3", b"{" * 100_000, b"\xef\xbb\xbf{"])
def test_a_tail_that_is_no_line_is_cut_off(store: HistoryStore, tail: bytes) -> None:
    write_session(store, ID, user("one"))
    whole = store.log_path(ID).read_bytes()
    store.log_path(ID).write_bytes(whole + tail)
    assert store.load(ID).warnings == ["the last line of the history was cut off and is skipped"]
    store.log(ID).append(user("two"))
    assert texts(store) == ["one", "two"]
    assert store.log_path(ID).read_bytes().startswith(whole + b'{"role"')


@pytest.mark.parametrize(
    "tail", [b'{"record":"x"}', b'{"record":"x"}  ', b'\t{"record":"x"}\r', b'{"record":"x"}\0\0', b" "]
)
def test_a_whole_last_line_gets_its_line_end(store: HistoryStore, tail: bytes) -> None:
    write_session(store, ID, user("one"))
    whole = store.log_path(ID).read_bytes()
    store.log_path(ID).write_bytes(whole + tail)
    store.log(ID).append(user("two"))
    assert texts(store) == ["one", "two"]
    assert store.log_path(ID).read_bytes().startswith(whole + tail + b"\n")
    assert len(store.load(ID).records) == (b"record" in tail)


def test_a_torn_tail_of_megabytes_is_cut_off(store: HistoryStore) -> None:
    write_session(store, ID, user("one"))
    whole = store.log_path(ID).read_bytes()
    store.log_path(ID).write_bytes(whole + b'{"role":"user","content":[{"type":"text","text":"' + b"x" * 3_000_000)
    store.log(ID).append(user("two"))
    assert texts(store) == ["one", "two"]


def test_many_bad_lines_hide_no_good_one(store: HistoryStore) -> None:
    write_session(store, ID, user("one"))
    with store.log_path(ID).open("ab") as file:
        for number in range(200):
            file.write(b'{"role": "user", "content": [{\n\xff\xfe\n\0\0\n' if number % 2 else b"\r\n[1, 2]\n12\nnull\n")
            file.write(b'{"role":"user","content":[{"type":"text","text":"%d"}]}\r\n' % number)
    loaded = store.load(ID)
    assert [message.text for message in loaded.messages] == ["one", *map(str, range(200))]
    assert loaded.warnings == ["600 lines of the history cannot be read and are skipped; the first is line 3"]
    assert len({message.id for message in loaded.messages}) == 201


# --- what others write ---


def test_lines_of_another_process_are_adopted_and_not_overwritten(store: HistoryStore) -> None:
    write_session(store, ID, user("one"))
    ours, theirs = opened(store), HistoryStore(store.folder).log(ID)
    assert ours.foreign_bytes() == 0
    theirs.append(user("two"))
    theirs.append_record(turn_end())
    assert ours.foreign_bytes() > 0
    assert new_ids(ours) == ["two", "turn_end"]
    assert ours.foreign_bytes() == 0
    ours.append(user("three"))
    assert new_ids(ours) == []
    assert texts(store) == ["one", "two", "three"]


def test_lines_that_came_between_our_own_are_found(store: HistoryStore) -> None:
    ours, theirs = store.log(ID), HistoryStore(store.folder).log(ID)
    ours.append(user("1"))
    theirs.append(user("2"))
    ours.append(user("3"))
    theirs.append(user("4"))
    theirs.append(user("5"))
    ours.append(user("6"))
    theirs.append(user("7"))
    assert new_ids(ours) == ["2", "4", "5", "7"]
    assert ours.foreign_bytes() == 0
    assert new_ids(theirs) == ["3", "6"]


def test_a_session_that_had_no_log_yet_adopts_one(store: HistoryStore) -> None:
    write_session(store, ID)
    ours = opened(store)
    assert ours.read_new() == []
    HistoryStore(store.folder).log(ID).append(user("one"))
    assert new_ids(ours) == ["one"]
    ours.append(user("two"))
    assert texts(store) == ["one", "two"]


def test_what_was_there_when_a_log_is_first_used_is_known(store: HistoryStore) -> None:
    write_session(store, ID, user("one"))
    log = store.log(ID)
    assert log.foreign_bytes() == 0
    assert log.read_new() == []
    log.append(user("two"))
    assert log.read_new() == []


def test_half_a_line_of_another_writer_is_not_adopted_before_it_is_whole(store: HistoryStore) -> None:
    write_session(store, ID, user("one"))
    ours = opened(store)
    line = b'{"role":"user","content":[{"type":"text","text":"two"}]}\n'
    with store.log_path(ID).open("ab", buffering=0) as file:
        file.write(line[:20])
        assert ours.read_new() == []
        file.write(line[20:])
        (entry,) = ours.read_new()
    assert isinstance(entry, Message)
    assert entry.text == "two"
    assert entry.id


def test_a_record_beside_a_running_turn_harms_nothing(store: HistoryStore) -> None:
    write_session(store, ID, user("one"))
    ours = opened(store)
    ours.append(user("two"))
    beside = HistoryStore(store.folder).log(ID)
    beside.append_beside({"record": "title", "title": "new"})
    ours.append(user("three"))
    assert new_ids(ours) == ["title"]
    # Also where our own line is in the middle of being written.
    with store.log_path(ID).open("ab") as file:
        file.write(b'{"role":"user","conte')
    beside.append_beside({"record": "title", "title": "newer"})
    ours.append(user("four"))
    loaded = store.load(ID)
    assert [message.text for message in loaded.messages] == ["one", "two", "three", "four"]
    assert loaded.meta.title == "newer"


def test_a_deleted_session_is_not_written_to(store: HistoryStore) -> None:
    write_session(store, ID, user("one"))
    ours = opened(store)
    ours.append(user("two"))
    store.log_path(ID).unlink()
    with pytest.raises(SessionNotFoundError, match="deleted meanwhile"):
        ours.foreign_bytes()
    with pytest.raises(SessionNotFoundError):
        ours.read_new()


@pytest.mark.parametrize("how", ["shortened", "replaced"])
def test_a_file_that_is_not_the_one_that_was_read_is_refused(store: HistoryStore, how: str) -> None:
    write_session(store, ID, user("one"), user("two"))
    ours = opened(store)
    path = store.log_path(ID)
    if how == "shortened":
        os.truncate(path, 10)
    else:
        other = path.with_suffix(".other")
        other.write_bytes(path.read_bytes() * 2)
        other.replace(path)
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(StorageError, match="load the session again"):
            ours.read_new()
    assert path.read_bytes() == before


# --- failing disks ---


def test_a_short_write_is_cut_off_before_the_next_line(store: HistoryStore) -> None:
    log = store.log(ID)
    log.append(user("one"))
    size = store.log_path(ID).stat().st_size
    for room in (0, 1, 30, len(b'{"role"'), 100):
        with room_for(size + room), pytest.raises(StorageError, match="File too large"):
            log.append(user("lost " + "x" * 200))
        assert log.read_new() == []
    log.append(user("two"))
    assert [json.loads(line)["id"] for line in store.log_path(ID).read_bytes().splitlines()] == ["one", "two"]
    assert log.foreign_bytes() == 0


def test_a_write_that_failed_after_all_of_it_was_written_is_taken_back(
    store: HistoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = store.log(ID)
    log.append(user("one"))
    write = os.write

    def failing(descriptor: int, data: bytes) -> int:
        write(descriptor, data)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "write", failing)
    with pytest.raises(StorageError, match="Input/output error"):
        log.append(user("refused"))
    monkeypatch.undo()
    # Nobody was told that it was stored, and its author that it was not.
    assert log.read_new() == []
    log.append(user("two"))
    assert texts(store) == ["one", "two"]


def test_a_short_write_by_another_process_in_between_leaves_both_alone(store: HistoryStore) -> None:
    log = store.log(ID)
    log.append(user("one"))
    with room_for(store.log_path(ID).stat().st_size + 20), pytest.raises(StorageError):
        log.append(user("lost"))
    store.log(ID).append_beside({"record": "title", "title": "kept"})
    log.append(user("two"))
    loaded = store.load(ID)
    assert [message.text for message in loaded.messages] == ["one", "two"]
    assert loaded.meta.title == "kept"


def test_a_log_that_was_closed_for_room_is_synced_all_the_same(
    store: HistoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr("openheim.store.log.datasync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    logs = [store.log(session_id(number)) for number in range(KEPT_DESCRIPTORS + 5)]
    for log in logs:
        log.append(user("x"))
    for log in logs:
        log.prepare_sync()()
    assert sorted(synced) == sorted(log.path.stat().st_ino for log in logs)
    # What is on the disk is not written there again.
    for log in logs:
        log.prepare_sync()()
    assert len(synced) == len(logs)


def test_a_sync_of_a_deleted_log_says_so(store: HistoryStore) -> None:
    log = store.log(ID)
    log.append(user("x"))
    log.close()
    log.path.unlink()
    with pytest.raises(StorageError, match="cannot sync"):
        log.prepare_sync()()
