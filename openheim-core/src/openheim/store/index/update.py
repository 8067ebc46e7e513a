"""Brings the index up to date with the history: only what changed is read, and of a log that grew only what is new."""

from __future__ import annotations

import json
import logging
import sqlite3
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from openheim._reading import open_regular
from openheim.errors import OpenheimError
from openheim.store.digest import LogDigest, text_of
from openheim.store.index.database import storable, transaction
from openheim.store.index.scan import ABSENT, Seen, Stamp, folder_time, scan, stamp_of, unsettled
from openheim.store.lines import LogLines
from openheim.store.rows import sort_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from openheim.store.history import HistoryStore
    from openheim.store.meta import SessionMeta

__all__ = ("PLACES", "Progress", "forget", "refresh", "update")

_log = logging.getLogger(__name__)

#: Told how many sessions have been read, and how many there are to read.
Progress: TypeAlias = "Callable[[int, int], None]"

#: Texts of one session at most: what a text's rowid has room for behind the session's number.
PLACES = 1 << 24

#: The place of the title. It is the last one: texts that are added in the order of their rowids are quickest.
_TITLE_PLACE = PLACES - 1

#: Sessions read in one transaction; other processes can write in between.
_BATCH = 500

#: Characters of one message that can be searched. Longer ones are pasted files.
_TEXT_LIMIT = 200_000

#: Bytes before the end of what was read, by which a log that grew is told from one that was replaced.
_TAIL = 64


def update(
    connection: sqlite3.Connection, store: HistoryStore, *, logs: bool, progress: Progress | None = None
) -> None:
    """Reads what changed since the last time.

    Args:
        logs: also find logs that grew although their metadata is as it was (a turn is running). Without it, nothing is
            looked at while no name in the folder changed.
    """
    now = folder_time(store.folder)
    if not logs and now is not None and connection.execute("SELECT time FROM folder").fetchone() == (now,):
        return
    seen = scan(store.folder, logs=logs)
    known = _known(connection)
    changed = [session_id for session_id, one in seen.items() if _has_changed(one, known.get(session_id))]
    changed += known.keys() - seen.keys()
    for start in range(0, len(changed), _BATCH):
        if progress is not None:
            progress(start, len(changed))
        with transaction(connection):
            _read_sessions(connection, store, changed[start : start + _BATCH])
    if progress is not None and changed:
        progress(len(changed), len(changed))
    with transaction(connection):
        connection.execute("UPDATE folder SET time = ?", (now,))


def refresh(connection: sqlite3.Connection, store: HistoryStore, session_id: str) -> None:
    """Reads what is new of one session."""
    with transaction(connection):
        _read_sessions(connection, store, [session_id])


def forget(connection: sqlite3.Connection, session_id: str) -> None:
    """Takes out all that is known of a session."""
    with transaction(connection):
        found = connection.execute("SELECT number FROM sessions WHERE id = ?", (session_id,)).fetchone()
        if found is not None:
            _forget_texts(connection, found[0])
            connection.execute("DELETE FROM sessions WHERE number = ?", found)


def _known(connection: sqlite3.Connection) -> dict[str, tuple[int, ...]]:
    """The stamps of metadata and log, one behind the other."""
    rows = connection.execute(
        "SELECT id, meta_time, meta_size, meta_inode, log_time, log_size, log_inode FROM sessions"
    )
    return {row[0]: row[1:] for row in rows}


def _has_changed(seen: Seen, known: tuple[int, ...] | None) -> bool:
    meta, log = seen
    return known is None or meta != known[:3] or (log is not None and log != known[3:])


def _read_sessions(connection: sqlite3.Connection, store: HistoryStore, session_ids: Sequence[str]) -> None:
    free = connection.execute("SELECT coalesce(max(number), 0) + 1 FROM sessions").fetchone()[0]
    rows: list[dict[str, Any]] = []
    gone: list[tuple[int]] = []
    for number, session_id in enumerate(session_ids, free):
        one = _SessionUpdate(connection, store, session_id, number)
        try:
            values = one.read()
        except (sqlite3.Error, OpenheimError, MemoryError):
            raise
        except Exception as err:  # whatever is wrong with one session must not hide the others
            _log.warning(
                "session %s cannot be read as a whole, and is listed without its messages: %r", session_id, err
            )
            values = one.read_nothing()
        if values is not None:
            rows.append({name: storable(value) for name, value in values.items()})
        else:
            gone.append((one.row.number,))
    # Last, all at once: a statement that could be undone by itself has the full-text index write out what it has
    # gathered, and texts would take three times as long.
    connection.executemany("DELETE FROM sessions WHERE number = ?", gone)
    if rows:
        names = ", ".join(rows[0])
        places = ", ".join(f":{name}" for name in rows[0])
        connection.executemany(f"REPLACE INTO sessions ({names}) VALUES ({places})", rows)


def _forget_texts(connection: sqlite3.Connection, number: int) -> None:
    first = number * PLACES
    connection.execute("DELETE FROM texts WHERE rowid BETWEEN ? AND ?", (first, first + PLACES - 1))


class _Row(NamedTuple):
    """What the index knows of a session, as far as going on needs it."""

    number: int
    title: str | None = None
    digest: str = ""
    texts: int = 0
    log_end: int = 0
    log_tail: bytes = b""
    log_inode: int = 0


class _SessionUpdate:
    """Reads one session again, or what is new of it.

    Args:
        number: for a session that the index does not know.
    """

    def __init__(self, connection: sqlite3.Connection, store: HistoryStore, session_id: str, number: int) -> None:
        self.connection = connection
        self.store = store
        self.session_id = session_id
        found = connection.execute(
            "SELECT number, title, digest, texts, log_end, log_tail, log_inode FROM sessions WHERE id = ?",
            (session_id,),
        ).fetchone()
        self.row = _Row(*found) if found is not None else _Row(number)
        self.digest = LogDigest()
        self.texts = 0

    def read(self) -> dict[str, Any] | None:
        """Reads the session's texts into the index, and returns its row; None if there is no such session any more."""
        meta_path, log_path = self.store.meta_path(self.session_id), self.store.log_path(self.session_id)
        # Looked at before they are read: what is written meanwhile is found the next time.
        meta_stamp, log_stamp = stamp_of(meta_path), stamp_of(log_path)
        meta = self.store.read_meta(self.session_id)
        gone = log_stamp == ABSENT and meta is None
        start, data = (0, b"") if gone else self._new_bytes(log_path, log_stamp)
        if start:
            self.digest, self.texts = LogDigest.from_dict(json.loads(self.row.digest)), self.row.texts
        elif self.row.digest:
            _forget_texts(self.connection, self.row.number)
        if gone:
            return None
        lines = LogLines(data)
        for _number, raw in lines:
            self._add(raw)
        tail = (self.row.log_tail + data[: lines.end] if start else data[: lines.end])[-_TAIL:]
        shown = self.digest.complete(meta, self.session_id)
        if start and shown.title != self.row.title:
            self.connection.execute("DELETE FROM texts WHERE rowid = ?", (self._rowid(_TITLE_PLACE),))
        if not start or shown.title != self.row.title:
            self._put_text(_TITLE_PLACE, shown.title or "")
        return self._values(shown, meta_stamp, log_stamp) | {"log_end": start + lines.end, "log_tail": tail}

    def read_nothing(self) -> dict[str, Any]:
        """The row of a session of which no more than its metadata is known, until it is changed."""
        _forget_texts(self.connection, self.row.number)
        self.digest, self.texts = LogDigest(), 0
        meta_stamp, log_stamp = (
            stamp_of(path(self.session_id)) for path in (self.store.meta_path, self.store.log_path)
        )
        shown = self.digest.complete(self.store.read_meta(self.session_id), self.session_id)
        return self._values(shown, meta_stamp, log_stamp) | {"log_end": 0, "log_tail": b""}

    def _new_bytes(self, path: Path, stamp: Stamp) -> tuple[int, bytes]:
        """Where to go on, and what is there: 0 and all of it unless the log is what was read before, and more."""
        known = self.row
        try:
            with open_regular(path) as file:
                if known.log_end and stamp[2] == known.log_inode and stamp[1] >= known.log_end:
                    file.seek(known.log_end - len(known.log_tail))
                    if file.read(len(known.log_tail)) == known.log_tail:
                        return known.log_end, file.readall()
                    file.seek(0)
                return 0, file.readall()
        except OSError:
            # What cannot be read now can perhaps be read later; a listing still has the metadata.
            return 0, b""

    def _add(self, raw: Mapping[str, Any]) -> None:
        if "record" in raw:
            self.digest.add_record(raw)
        elif isinstance(raw.get("content"), list):
            self.digest.add_message(raw)
            # What tools returned is left out: it is long, and not what a conversation is remembered by.
            if raw.get("role") in ("user", "assistant") and self.texts < _TITLE_PLACE:
                text = text_of(raw)
                if text:
                    self._put_text(self.texts, text)
                    self.texts += 1

    def _put_text(self, place: int, text: str) -> None:
        self.connection.execute(
            "INSERT INTO texts (rowid, text) VALUES (?, ?)",
            (self._rowid(place), storable(text[:_TEXT_LIMIT])),
        )

    def _rowid(self, place: int) -> int:
        return self.row.number * PLACES + place

    def _values(self, shown: SessionMeta, meta_stamp: Stamp, log_stamp: Stamp) -> dict[str, Any]:
        return {
            "number": self.row.number,
            "id": self.session_id,
            "updated": sort_key(shown.updated_at) or max(meta_stamp[0], log_stamp[0]) // 1000,
            "cwd": shown.cwd,
            "archived": shown.archived,
            "title": shown.title,
            "meta": json.dumps(shown.to_dict(full=True)),
            "digest": json.dumps(self.digest.to_dict()),
            "texts": self.texts,
            "meta_time": -1 if unsettled(meta_stamp) else meta_stamp[0],
            "meta_size": meta_stamp[1],
            "meta_inode": meta_stamp[2],
            "log_time": log_stamp[0],
            "log_size": log_stamp[1],
            "log_inode": log_stamp[2],
        }
