"""The index's SQLite file: its tables, and what happens when it is damaged."""

from __future__ import annotations

import logging
import os
import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from openheim.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ("Database", "OtherFormatError", "storable", "transaction")

T = TypeVar("T")

#: Counts the forms of the tables. Another one, older or newer, is thrown away.
FORMAT = 2

#: Seconds to wait for another process that writes.
BUSY_SECS = 10.0

# A text's rowid is its session's number and its own place there, so that those of a session are a range.
_TABLES = """
CREATE TABLE sessions (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    updated INTEGER NOT NULL,
    cwd TEXT,
    archived INTEGER NOT NULL,
    title TEXT,
    meta TEXT NOT NULL,
    digest TEXT NOT NULL,
    texts INTEGER NOT NULL,
    log_end INTEGER NOT NULL,
    log_tail BLOB NOT NULL,
    meta_time INTEGER NOT NULL,
    meta_size INTEGER NOT NULL,
    meta_inode INTEGER NOT NULL,
    log_time INTEGER NOT NULL,
    log_size INTEGER NOT NULL,
    log_inode INTEGER NOT NULL
);
CREATE INDEX sessions_newest ON sessions (updated DESC, id);
CREATE INDEX sessions_newest_in ON sessions (cwd, updated DESC, id);
CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = "unicode61 remove_diacritics 2");
CREATE TABLE folder (time INTEGER);
INSERT INTO folder VALUES (NULL);
"""

#: What SQLite says about a file that is torn, is no database, or has other tables.
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_LACKING = ("no such table", "no such column", "table texts has no", "table sessions has no")

_log = logging.getLogger(__name__)


#: Codes of what is wrong with the disk, and not with the file's content.
_OF_DISK = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
)

_DISK_HINT = "check free space and permissions, and whether another process is at work on it"


class OtherFormatError(sqlite3.DatabaseError):
    """The index has tables of another version."""


class Database:
    """Opens the file for one piece of work after the other. Each has a connection of its own, in its own thread."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Does the work, a second time with an empty index if the first shows that this one is of no use.

        Raises:
            StorageError: the file cannot be read or written, SQLite lacks full-text search, or another process is
                writing all the time.
        """
        try:
            seen = self._inode()
            try:
                return self._run(work)
            except sqlite3.DatabaseError as err:
                if not _is_useless(err):
                    raise
                _log.info("the index %s is made anew: %s", self.path, err)
            # Another process may have thrown it away meanwhile; a new one must not suffer for the old one.
            if self._inode() == seen:
                self._throw_away()
            return self._run(work)
        except OSError as err:
            raise StorageError(f"cannot use the index {self.path}: {err.strerror}", hint=_DISK_HINT) from err
        except sqlite3.Error as err:
            of_disk = (getattr(err, "sqlite_errorcode", 0) & 0xFF) in _OF_DISK
            hint = _DISK_HINT if of_disk else f"delete {self.path.name}; it is made from the history"
            raise StorageError(f"cannot use the index {self.path}: {err}", hint=hint) from err

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._inode() is None:
            # SQLite would make it readable for others.
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600))
        with closing(sqlite3.connect(self.path, timeout=BUSY_SECS, isolation_level=None)) as connection:
            if _format_of(connection) != FORMAT:
                _make_tables(connection)
            # Losing the latest changes in a power loss does no harm; the next look finds them again.
            connection.execute("PRAGMA synchronous = NORMAL")
            return work(connection)

    def _inode(self) -> tuple[int, int] | None:
        try:
            stat = os.stat(self.path)
        except FileNotFoundError:
            return None
        return stat.st_dev, stat.st_ino

    def _throw_away(self) -> None:
        for suffix in ("", "-wal", "-shm", "-journal"):
            try:
                os.unlink(f"{self.path}{suffix}")
            except FileNotFoundError:
                pass


def storable(value: Any) -> Any:
    """The value as the database takes it: halves of characters, as names of folders may hold, have no form in UTF-8."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing, and alone in writing from the start."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _format_of(connection: sqlite3.Connection) -> int:
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return found


def _make_tables(connection: sqlite3.Connection) -> None:
    # Readers are not stopped by a writer. Not every file system can do that, and then they are.
    connection.execute("PRAGMA journal_mode = WAL")
    with transaction(connection):
        if _format_of(connection) == FORMAT:
            # Another process was quicker.
            return
        if connection.execute("SELECT 1 FROM sqlite_schema").fetchone() is not None:
            raise OtherFormatError("it was written by another version")
        for statement in _TABLES.split(";\n"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {FORMAT}")


def _is_useless(err: sqlite3.DatabaseError) -> bool:
    if isinstance(err, OtherFormatError):
        return True
    code = getattr(err, "sqlite_errorcode", 0) & 0xFF
    return code in _DAMAGED or (code == sqlite3.SQLITE_ERROR and str(err).startswith(_LACKING))
