"""Marks on sessions: a title, and that one is archived. Each is a record in the log, and the metadata shows it too.

A session can be marked while a turn of it runs, here or in another process: the record goes beside that writer's lines,
who learns of it when its next turn begins. What log and metadata say of title and archive, the log knows better.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim.errors import SessionBusyError, SessionLockedError, UsageError
from openheim.store.digest import LogDigest
from openheim.store.meta import timestamp

if TYPE_CHECKING:
    from openheim.store.history import HistoryStore
    from openheim.store.meta import SessionMeta

__all__ = ("archive_session", "rename_session")

#: Characters of a title that is given by hand.
TITLE_LIMIT = 500


def rename_session(store: HistoryStore, session_id: str, title: str) -> SessionMeta:
    """Gives a session a title, which nothing but another one replaces. Line breaks and outer spaces go.

    Returns:
        The metadata, with the new title.

    Raises:
        UsageError: the title has no text.
        SessionNotFoundError: there is no such session.
        StorageError: it cannot be read or written.
    """
    title = " ".join(title.split())[:TITLE_LIMIT]
    if not title:
        raise UsageError("a title needs text", hint="give one")
    return _mark(store, session_id, {"record": "title", "at": timestamp(), "title": title})


def archive_session(store: HistoryStore, session_id: str) -> SessionMeta:
    """Takes a session out of listings, for good. It can still be opened, searched and deleted.

    Archiving it again changes nothing.

    Returns:
        The metadata, archived.

    Raises:
        SessionNotFoundError: there is no such session.
        StorageError: it cannot be read or written.
    """
    meta = store.load(session_id).meta
    return meta if meta.archived else _mark(store, session_id, {"record": "archived", "at": timestamp()})


def _mark(store: HistoryStore, session_id: str, record: dict[str, Any]) -> SessionMeta:
    if not store.exists(session_id):
        raise store.not_found(session_id)
    log = store.log(session_id)
    try:
        with store.lease(session_id):
            meta = _marked(store, session_id, record)
            try:
                log.append_record(record)
                log.prepare_sync()()
            finally:
                log.close()
            store.write_meta(meta)
            return meta
    except (SessionLockedError, SessionBusyError):
        # The metadata belongs to whoever runs the turn, and is about to be written there.
        log.append_beside(record)
        return _marked(store, session_id, record)


def _marked(store: HistoryStore, session_id: str, record: dict[str, Any]) -> SessionMeta:
    meta = store.read_meta(session_id) or store.load(session_id).meta
    digest = LogDigest()
    digest.add_record(record)
    return digest.complete(meta, session_id)
