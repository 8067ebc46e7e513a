"""The index as callers see it."""

from __future__ import annotations

import logging
import sqlite3
from typing import TYPE_CHECKING

from openheim.store.index import queries
from openheim.store.index.database import Database
from openheim.store.index.update import forget, refresh, update

if TYPE_CHECKING:
    from openheim.store.digest import Totals
    from openheim.store.history import HistoryStore
    from openheim.store.index.update import Progress
    from openheim.store.rows import SearchHit, SessionPage

__all__ = ("SessionIndex",)

_log = logging.getLogger(__name__)


class SessionIndex:
    """Listing, search and totals of a store's sessions, without reading them all.

    Each method first finds what any process has written since, so what it says is true at that moment. All block,
    for milliseconds, and for seconds when the index is made for the first time; ``progress`` is told how that goes.
    They may be called from any thread, by any number of processes at a time.

    All methods raise :class:`~openheim.errors.StorageError` where the index cannot be used: its file cannot be written,
    or Python was built without SQLite's full-text search.
    """

    def __init__(self, store: HistoryStore) -> None:
        self.store = store
        self.path = store.folder.parent / "index.db"
        self._database = Database(self.path)

    def page(
        self,
        *,
        cwd: str | None = None,
        archived: bool | None = False,
        limit: int | None = 50,
        cursor: str | None = None,
        progress: Progress | None = None,
    ) -> SessionPage:
        """Sessions, the one that was used last first.

        Args:
            cwd: only those of that directory.
            archived: only archived ones, or only others; all if None.
            limit: sessions at most; all if None.
            cursor: ``next_cursor`` of the page before.

        Raises:
            UsageError: ``cursor`` is none.
        """

        def work(connection: sqlite3.Connection) -> SessionPage:
            self._update(connection, logs=False, progress=progress)
            return queries.page(connection, cwd=cwd, archived=archived, limit=limit, cursor=cursor)

        return self._database.run(work)

    def search(
        self, words: str, *, archived: bool | None = None, limit: int = 20, progress: Progress | None = None
    ) -> list[SearchHit]:
        """Sessions whose titles or messages hold the words, the best match first.

        All words in one message, or any of them if no message has them all. Case and accents do not count.

        Args:
            words: separated by spaces; no word means anything else than itself.
        """

        def work(connection: sqlite3.Connection) -> list[SearchHit]:
            self._update(connection, logs=True, progress=progress)
            return queries.search(connection, words.split(), archived=archived, limit=limit)

        return self._database.run(work)

    def totals(self, session_id: str, *, progress: Progress | None = None) -> Totals:
        """Messages, turns and tokens of a session.

        Raises:
            SessionNotFoundError: there is no such session.
        """

        def work(connection: sqlite3.Connection) -> Totals:
            self._update(connection, logs=True, progress=progress)
            digest = queries.digest_of(connection, session_id)
            if digest is None:
                raise self.store.not_found(session_id)
            return digest.totals

        return self._database.run(work)

    def refresh(self, session_id: str) -> None:
        """Looks at one session's log now: listings do not, while its metadata is as it was."""
        if self.path.exists():
            self._database.run(lambda connection: refresh(connection, self.store, session_id))

    def forget(self, session_id: str) -> None:
        """Takes out a session that was deleted, without waiting for the next look. Does nothing without an index."""
        if self.path.exists():
            self._database.run(lambda connection: forget(connection, session_id))

    def _update(self, connection: sqlite3.Connection, *, logs: bool, progress: Progress | None) -> None:
        try:
            update(connection, self.store, logs=logs, progress=progress)
        except sqlite3.OperationalError as err:
            # Another process is writing for longer than anybody waits, most likely the same as this one would. What
            # there is will do, if there is something.
            busy = (err.sqlite_errorcode & 0xFF) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            if not busy or connection.execute("SELECT 1 FROM sessions").fetchone() is None:
                raise
            _log.info("the index %s is not up to date: %s", self.path, err)
