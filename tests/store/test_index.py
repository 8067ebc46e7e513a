"""The index of sessions: what it says is what is on disk, whoever wrote that, and whatever happens to its own file."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from openheim.errors import SessionNotFoundError, StorageError, UsageError
from openheim.messages import Message, TextBlock, ToolResultBlock, Usage
from openheim.store import HistoryStore
from openheim.store.digest import LogDigest, text_of
from openheim.store.index import SessionIndex
from openheim.store.index.database import Database
from openheim.store.operations.listing import list_sessions, search_sessions
from openheim.store.operations.removal import delete_session
from openheim.store.rows import SessionPage
from tests.store.contenders import run_workers
from tests.store.stores import ID, NOW, OTHER_ID, assistant, session_id, turn_end, user, write_session


@pytest.fixture
def index(store: HistoryStore) -> SessionIndex:
    return SessionIndex(store)


def day(number: int) -> str:
    return f"2026-01-{number:02}T00:00:00.000Z"


def ids(page: SessionPage) -> list[str]:
    return [row.meta.id for row in page.rows]


def found(index: SessionIndex, words: str) -> list[str]:
    return [hit.row.meta.id for hit in index.search(words)]


# --- listing ---


@pytest.mark.parametrize("with_index", [True, False])
def test_pages_are_sorted_by_last_use_and_follow_each_other(
    store: HistoryStore, with_index: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not with_index:
        monkeypatch.setitem(sys.modules, "sqlite3", None)
        monkeypatch.delitem(sys.modules, "openheim.store.index", raising=False)
        monkeypatch.delitem(sys.modules, "openheim.store.index.sessions", raising=False)
        monkeypatch.delitem(sys.modules, "openheim.store.index.database", raising=False)
    for number in range(1, 8):
        write_session(store, session_id(number), user("x"), updated=day(number), cwd=f"/{number % 2}")
    # Ties go by id; forms of time that older programs wrote are times as well.
    write_session(store, session_id(8), updated="2026-01-07T00:00:00Z", cwd="/0")
    write_session(store, session_id(9), updated="2026-01-07T01:00:00+01:00", cwd="/0")
    everything = [session_id(number) for number in (7, 8, 9, 6, 5, 4, 3, 2, 1)]
    assert ids(list_sessions(store)) == everything
    pages, cursor = [], None
    while True:
        page = list_sessions(store, limit=2, cursor=cursor)
        pages += ids(page)
        cursor = page.next_cursor
        if cursor is None:
            break
    assert pages == everything
    assert ids(list_sessions(store, cwd="/1")) == [session_id(number) for number in (7, 5, 3, 1)]
    assert ids(list_sessions(store, limit=None)) == everything
    assert list_sessions(store, limit=9).next_cursor is None
    row = list_sessions(store, limit=1).rows[0]
    assert (row.messages, row.first_prompt) == ((1, "x") if with_index else (None, None))
    assert (store.folder.parent / "index.db").exists() == with_index
    for cursor in ("", "x", "1", "१.x", "1e3.x", f"{10**20}.x", f"-{'9' * 5000}.x"):
        with pytest.raises(UsageError, match="no cursor"):
            list_sessions(store, cursor=cursor)
    with pytest.raises(UsageError, match="limit"):
        list_sessions(store, limit=0)


def test_nothing_is_listed_where_there_is_nothing(tmp_path: Path) -> None:
    store = HistoryStore(tmp_path / "history")
    assert ids(SessionIndex(store).page()) == []
    assert SessionIndex(store).search("word") == []
    # There is not even a place for an index.
    assert ids(list_sessions(HistoryStore(tmp_path / "a" / "b" / "history"))) == []


def test_every_change_is_seen(store: HistoryStore, index: SessionIndex) -> None:
    """New, changed, marked and deleted sessions, by a writer that knows of no index."""
    assert ids(index.page()) == []
    meta = write_session(store, ID, user("one"), updated=day(1))
    write_session(store, OTHER_ID, user("two"), updated=day(2))
    assert ids(index.page()) == [OTHER_ID, ID]
    meta.updated_at = day(3)
    for title in ("first", "second", "third"):
        meta.title = title
        store.write_meta(meta)
        assert next((row.meta.id, row.meta.title) for row in index.page().rows) == (ID, title)
    for path in (store.log_path(ID), store.meta_path(ID)):
        path.unlink()
    assert ids(index.page()) == [OTHER_ID]
    assert found(index, "one") == []


def test_what_the_log_says_wins_over_the_metadata(store: HistoryStore, index: SessionIndex) -> None:
    write_session(store, ID, user("x"), {"record": "title", "title": "from the log"}, title="from the file")
    write_session(store, OTHER_ID, user("x"), {"record": "archived"})
    assert [(row.meta.title, row.is_named) for row in index.page().rows] == [("from the log", True)]
    assert ids(index.page(archived=True)) == [OTHER_ID]
    assert len(index.page(archived=None).rows) == 2


def test_sessions_that_lost_their_metadata_are_listed(store: HistoryStore, index: SessionIndex) -> None:
    log = store.log(ID)
    log.append(user("the first words"))
    log.append(assistant("reply"))
    log.close()
    write_session(store, OTHER_ID, user("other"), title=None)
    store.meta_path(OTHER_ID).write_text("{")
    rows = {row.meta.id: row for row in index.page().rows}
    assert set(rows) == {ID, OTHER_ID}
    meta = rows[ID].meta
    assert (meta.title, meta.provider, meta.model, meta.updated_at) == ("the first words", "p", "m", NOW)


def test_what_is_no_session_is_no_row(store: HistoryStore, index: SessionIndex) -> None:
    write_session(store, ID, user("x"))
    store.meta_path("not-an-id").write_text("{}")
    (store.folder / "notes.txt").write_text("")
    store.meta_path(OTHER_ID).write_text("{")  # Undecodable, and no log beside it.
    store.metrics_path(ID).write_text("{}\n")
    store.lock_path(OTHER_ID).write_text("{}")
    assert ids(index.page()) == [ID]


def test_leftovers_of_crashed_writers_are_cleared_up_once_they_are_old(
    store: HistoryStore, index: SessionIndex
) -> None:
    old, fresh = store.folder / ".x.json.abc.tmp", store.folder / ".y.json.abc.tmp"
    for path in (old, fresh):
        path.write_text("")
    os.utime(old, (1, 1))
    index.page()
    assert (old.exists(), fresh.exists()) == (False, True)


# --- search ---


def test_search_finds_words_in_messages_and_titles(store: HistoryStore, index: SessionIndex) -> None:
    write_session(store, ID, user("Where is the Café near the bridge?"), assistant("Beside the old mill."), title="t")
    write_session(store, OTHER_ID, user("A mill grinds corn"), title="Bridges of Prague", updated=day(9))
    assert found(index, "cafe") == [ID]
    assert found(index, "CAFÉ bridge") == [ID]
    assert set(found(index, "mill")) == {ID, OTHER_ID}
    assert found(index, "prague") == [OTHER_ID]
    assert found(index, "nowhere") == []
    # All words in one message go before any of them.
    assert found(index, "old mill") == [ID]
    assert set(found(index, "corn café")) == {ID, OTHER_ID}
    (hit,) = index.search("bridge")
    assert (hit.matches, hit.excerpt) == (1, "Where is the Café near the bridge?")


def test_each_session_is_found_once_by_its_best_message(store: HistoryStore, index: SessionIndex) -> None:
    long = " ".join(["filler"] * 300)
    write_session(store, ID, user(f"{long} needle {long}"), assistant("needle"), user("needle needle"))
    (hit,) = index.search("needle")
    assert hit.matches == 3
    assert "needle" in hit.excerpt
    (hit,) = SessionIndex(store).search("filler needle")
    assert hit.excerpt.startswith("filler")
    assert hit.excerpt.endswith("…")
    assert len(hit.excerpt) < 200


def test_what_tools_returned_and_thinking_are_not_searched(store: HistoryStore, index: SessionIndex) -> None:
    tool = Message("tool", (ToolResultBlock("c", "read_file", "haystack"),), id="r", created_at=NOW)
    write_session(store, ID, user("look"), tool, assistant("found"))
    assert found(index, "haystack") == []
    assert found(index, "found") == [ID]


NO_COMMANDS = (
    '"',
    '" OR "',
    "NEAR(a b)",
    "text:word",
    "a*",
    "^a",
    "- not",
    "(((",
    "a AND",
    "NOT a",
    "\0",
    "a\0b",
    "\ud800",
    "''",
    "%",
    "*",
    "…",
    "' ; DROP TABLE sessions",
    "word " * 500,
)


@pytest.mark.parametrize("words", NO_COMMANDS)
def test_no_word_is_a_command(store: HistoryStore, index: SessionIndex, words: str) -> None:
    write_session(store, ID, user("something else entirely"), title=None)
    assert found(index, words) == []
    assert found(index, "entirely") == [ID]


def test_words_of_the_query_language_are_words(store: HistoryStore, index: SessionIndex) -> None:
    write_session(store, ID, user("to be OR NOT to be, NEAR the foo-bar"))
    write_session(store, OTHER_ID, user("foo and bar"), updated=day(2))
    assert found(index, "OR NOT near") == [ID]
    assert found(index, "foo-bar") == [ID]


@pytest.mark.parametrize(
    ("text", "word"),
    [("明天下午三点开会议室会议", "会议"), ("สวัสดีครับผม", "ครับ"), ("日本語のテキスト50%です", "テキスト50%")],
)
def test_scripts_without_spaces_are_searched_too(
    store: HistoryStore, index: SessionIndex, text: str, word: str
) -> None:
    write_session(store, ID, user(text))
    write_session(store, OTHER_ID, user("plain words"), updated=day(2))
    assert found(index, word) == [ID]
    assert found(index, f"{word} plain") in ([ID, OTHER_ID], [OTHER_ID, ID])
    (hit,) = index.search(word)
    assert word in hit.excerpt


def test_a_turn_that_runs_is_searched_although_its_metadata_is_old(store: HistoryStore, index: SessionIndex) -> None:
    write_session(store, ID, user("one"))
    log = store.log(ID)
    for word in ("two", "three"):
        log.append(user(word))
        assert found(index, word) == [ID]
    assert index.totals(ID).messages == 3
    # A line that is not whole yet is read when it is.
    with store.log_path(ID).open("ab", buffering=0) as file:
        line = b'{"role":"user","content":[{"type":"text","text":"four"}]}\n'
        file.write(line[:-3])
        assert found(index, "four") == []
        file.write(line[-3:])
    assert found(index, "four") == [ID]
    assert index.totals(ID).messages == 4


@pytest.mark.parametrize("in_place", [True, False])
def test_a_log_that_was_replaced_is_read_anew(store: HistoryStore, index: SessionIndex, in_place: bool) -> None:
    write_session(store, ID, user("before"))
    assert found(index, "before") == [ID]
    path = store.log_path(ID)
    lines = path.read_text().replace("before", "behind") * 2
    if not in_place:
        path.rename(path.with_suffix(".old"))
    path.write_text(lines)
    assert found(index, "before") == []
    assert found(index, "behind") == [ID]
    assert index.totals(ID).messages == 2


def test_a_new_title_replaces_the_old_one(store: HistoryStore, index: SessionIndex) -> None:
    meta = write_session(store, ID, user("x"), title="apples")
    assert found(index, "apples") == [ID]
    meta.title = "pears"
    store.write_meta(meta)
    assert found(index, "apples") == []
    assert found(index, "pears") == [ID]


def test_search_without_a_word_is_a_slip(store: HistoryStore) -> None:
    for words in ("", "  ", "?!"):
        with pytest.raises(UsageError, match="nothing to search"):
            search_sessions(store, words)


@pytest.mark.parametrize("limit", [0, -1, 2.5, float("nan"), True, "3"])
def test_a_limit_is_a_number_of_sessions(store: HistoryStore, limit: Any) -> None:
    with pytest.raises((UsageError, TypeError), match="limit is"):
        list_sessions(store, limit=limit)
    with pytest.raises((UsageError, TypeError), match="limit is"):
        search_sessions(store, "x", limit=limit)


# --- totals ---


@dataclass
class Prices:
    input: float = 2.0
    output: float = 8.0
    cache_read: float = 0.5
    cache_write: float = 4.0


def test_totals_of_tokens_and_cost(store: HistoryStore, index: SessionIndex) -> None:
    usage = Usage(1_000_000, 500_000, 250_000, 2_000_000)
    log = store.log(ID)
    for turn in (1, 2):
        log.append(user(f"q{turn}", turn))
        log.append(assistant(f"a{turn}", turn, usage=usage))
        log.append_record(turn_end(turn))
    log.append(assistant("free", 3, provider="local", model="small", usage=Usage(10, 10)))
    log.append(assistant("uncounted", 3, usage=None))
    totals = index.totals(ID)
    assert (totals.messages, totals.turns) == (6, 2)
    assert totals.usage == {("p", "m"): usage + usage, ("local", "small"): Usage(10, 10)}
    assert totals.tokens == usage + usage + Usage(10, 10)
    prices = {"p": Prices(), "local": Prices(0, 0, 0, 0)}
    assert totals.cost(lambda provider, model: prices.get(provider)) == pytest.approx(2 * (2 + 4 + 1 + 1))
    # Where one price is missing the sum would say too little.
    assert totals.cost(lambda provider, model: prices["p"] if provider == "p" else None) is None
    with pytest.raises(SessionNotFoundError):
        index.totals(OTHER_ID)


# --- the index's own file ---


def damage_header(path: Path) -> None:
    path.write_bytes(b"no database at all " * 500)


def damage_pages(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    path.write_bytes(content)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def make_newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")


def drop_table(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TABLE sessions")


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [damage_header, damage_pages, cut, make_newer, drop_table, empty])
def test_an_index_that_is_of_no_use_is_made_anew(
    store: HistoryStore, index: SessionIndex, damage: Callable[[Path], None]
) -> None:
    for number in range(30):
        write_session(store, session_id(number), user(f"word{number} " + "filler " * 100), assistant("reply"))
    assert len(index.page().rows) == 30
    with closing(sqlite3.connect(index.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for suffix in ("-wal", "-shm"):
        Path(f"{index.path}{suffix}").unlink(missing_ok=True)
    damage(index.path)
    assert found(index, "word7") == [session_id(7)]
    assert len(index.page().rows) == 30
    assert oct(index.path.stat().st_mode & 0o777) == "0o600"


def test_an_index_that_cannot_be_written_is_an_error_and_listing_goes_on_without(store: HistoryStore) -> None:
    write_session(store, ID, user("word"))
    (store.folder.parent / "index.db").mkdir()
    with pytest.raises(StorageError, match="cannot use the index"):
        SessionIndex(store).search("word")
    assert ids(list_sessions(store)) == [ID]


def test_a_full_disk_is_not_mended_by_deleting_the_index(index: SessionIndex) -> None:
    def fill(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA max_page_count = 1")
        connection.execute("CREATE TABLE filling (x)")
        connection.execute("INSERT INTO filling VALUES (zeroblob(1000000))")

    with pytest.raises(StorageError, match="full") as caught:
        Database(index.path).run(fill)
    assert caught.value.hint is not None
    assert "free space" in caught.value.hint


def test_a_writer_who_takes_long_does_not_stop_readers(
    store: HistoryStore, index: SessionIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openheim.store.index.database.BUSY_SECS", 0.05)
    write_session(store, ID, user("one"))
    assert ids(index.page()) == [ID]
    with closing(sqlite3.connect(index.path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        write_session(store, OTHER_ID, user("two"))
        # Not up to date, but an answer.
        assert ids(index.page()) == [ID]
        writer.execute("ROLLBACK")
    assert set(ids(index.page())) == {ID, OTHER_ID}


def test_progress_is_told(store: HistoryStore, index: SessionIndex) -> None:
    for number in range(1200):
        store.meta_path(session_id(number)).write_text(json.dumps({"meta": {"id": session_id(number)}}))
    seen: list[tuple[int, int]] = []
    index.page(progress=lambda done, total: seen.append((done, total)))
    assert seen == [(0, 1200), (500, 1200), (1000, 1200), (1200, 1200)]


def test_deleting_a_session_takes_its_words_out_of_the_file(store: HistoryStore, index: SessionIndex) -> None:
    write_session(store, ID, user("unforgettable"))
    write_session(store, OTHER_ID, user("other"))
    assert found(index, "unforgettable") == [ID]
    delete_session(store, ID)
    with closing(sqlite3.connect(index.path)) as connection:
        assert connection.execute("SELECT count(*) FROM texts").fetchone() == (2,)
        assert connection.execute("SELECT id FROM sessions").fetchall() == [(OTHER_ID,)]


def test_threads_and_processes_build_and_use_it_at_once(store: HistoryStore) -> None:
    expected = []
    for number in range(200):
        write_session(store, session_id(number), user(f"word{number}"), updated=day(number % 28 + 1))
        expected.append(session_id(number))
    results: list[list[str]] = []

    def ask() -> None:
        index = SessionIndex(HistoryStore(store.folder))
        for number in range(5):
            results.append(sorted(ids(index.page(limit=None))))
            results.append([*found(index, f"word{number}"), *expected][:1])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    outputs = run_workers("list", store.folder, 3, "5")
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert results.count(sorted(expected)) == 20
    assert all(lines == ["200"] * 5 for lines in outputs)


def test_text_that_is_no_unicode_is_indexed(store: HistoryStore, index: SessionIndex) -> None:
    write_session(store, ID, Message("user", (TextBlock("half \ud800 character"),), id="x", created_at=NOW))
    assert found(index, "character") == [ID]


def test_a_session_that_cannot_be_read_hides_no_other(
    store: HistoryStore, index: SessionIndex, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write_session(store, ID, user("good words"))
    write_session(store, OTHER_ID, user("odd words"), title="odd")
    add_message = LogDigest.add_message

    def failing(digest: LogDigest, raw: dict[str, Any]) -> None:
        if text_of(raw) == "odd words":
            raise ValueError("of all things")
        add_message(digest, raw)

    with monkeypatch.context() as patched:
        patched.setattr(LogDigest, "add_message", failing)
        rows = {row.meta.id: row for row in index.page().rows}
        assert found(index, "words") == [ID]
    assert (rows[ID].messages, rows[OTHER_ID].messages, rows[OTHER_ID].meta.title) == (1, 0, "odd")
    assert f"session {OTHER_ID} cannot be read as a whole" in caplog.text
    store.log(OTHER_ID).append(user("more words"))
    assert sorted(found(index, "words")) == [ID, OTHER_ID]
