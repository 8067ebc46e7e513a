"""Listing and searching sessions."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from openheim._arguments import whole_number
from openheim.errors import StorageError, UsageError
from openheim.messages import message_to_stored
from openheim.store.digest import totals_of
from openheim.store.history import is_session_id
from openheim.store.rows import SessionPage, SessionRow, cursor_of, position_of, sort_key

if TYPE_CHECKING:
    from openheim.store.digest import Totals
    from openheim.store.history import HistoryStore
    from openheim.store.index import Progress
    from openheim.store.rows import SearchHit

__all__ = ("list_sessions", "search_sessions", "session_totals")

_log = logging.getLogger(__name__)


def list_sessions(
    store: HistoryStore,
    *,
    cwd: str | None = None,
    archived: bool | None = False,
    limit: int | None = 50,
    cursor: str | None = None,
    progress: Progress | None = None,
) -> SessionPage:
    """Sessions, the one that was used last first. Arguments are those of :meth:`SessionIndex.page`.

    Where the index cannot be used the metadata of all sessions is read instead, which takes longer and counts no
    messages.

    Raises:
        UsageError: ``limit`` or ``cursor`` is none.
        StorageError: the history's folder cannot be read.
    """
    if limit is not None:
        whole_number("limit", limit, least=1)
    try:
        from openheim.store.index import SessionIndex

        return SessionIndex(store).page(cwd=cwd, archived=archived, limit=limit, cursor=cursor, progress=progress)
    except (ImportError, StorageError) as err:
        _log.info("listing without the index: %s", err)
        return _read_all(store, cwd, archived, limit, cursor)


def search_sessions(
    store: HistoryStore,
    words: str,
    *,
    archived: bool | None = None,
    limit: int = 20,
    progress: Progress | None = None,
) -> list[SearchHit]:
    """Sessions that hold the words, see :meth:`SessionIndex.search`.

    Raises:
        UsageError: there is no word in ``words``, or ``limit`` is less than 1.
        StorageError: the index cannot be used.
    """
    whole_number("limit", limit, least=1)
    if not any(map(str.isalnum, words)):
        raise UsageError("there is nothing to search for", hint="give one word or more")
    try:
        from openheim.store.index import SessionIndex
    except ImportError as err:
        raise StorageError(
            f"searching needs SQLite, which this Python lacks: {err}", hint="use a Python that was built with SQLite"
        ) from err
    return SessionIndex(store).search(words, archived=archived, limit=limit, progress=progress)


def session_totals(store: HistoryStore, session_id: str) -> Totals:
    """Messages, turns and tokens of a session.

    Raises:
        SessionNotFoundError: there is no such session.
        StorageError: it cannot be read.
    """
    try:
        from openheim.store.index import SessionIndex

        return SessionIndex(store).totals(session_id)
    except (ImportError, StorageError) as err:
        _log.info("counting without the index: %s", err)
        stored = store.load(session_id)
        return totals_of(map(message_to_stored, stored.messages), stored.records)


def _read_all(
    store: HistoryStore, cwd: str | None, archived: bool | None, limit: int | None, cursor: str | None
) -> SessionPage:
    found = []
    for session_id in _ids(store):
        meta = store.read_meta(session_id)
        if meta is None or cwd not in (None, meta.cwd) or archived not in (None, meta.archived):
            continue
        meta.id = session_id
        found.append((-sort_key(meta.updated_at), session_id, meta))
    if cursor is not None:
        updated, last = position_of(cursor)
        found = [one for one in found if one[:2] > (-updated, last)]
    found.sort(key=lambda one: one[:2])
    shown = found[:limit]
    more = len(found) > len(shown)
    return SessionPage(
        [SessionRow(meta) for _key, _id, meta in shown],
        cursor_of(-shown[-1][0], shown[-1][1]) if more and shown else None,
    )


def _ids(store: HistoryStore) -> list[str]:
    try:
        names = os.listdir(store.folder)
    except FileNotFoundError:
        return []
    except OSError as err:
        raise StorageError(f"cannot read {store.folder}: {err.strerror}", hint="check its permissions") from err
    return [name.removesuffix(".json") for name in names if name.endswith(".json") and is_session_id(name[:-5])]
