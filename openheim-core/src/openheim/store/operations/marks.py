"""Marks on sessions: a title, and that one is archived. Each is a record in the log, and the metadata shows it too.

A session can be marked while a turn of it runs, here or in another process: the record goes beside that writer's lines,
who learns of it when its next turn begins. What log and metadata say of title and archive, the log knows better.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from openheim.errors import SessionBusyError, SessionLockedError, StorageError, UsageError
from openheim.store.digest import LogDigest
from openheim.store.meta import timestamp

if TYPE_CHECKING:
    from openheim.store.history import HistoryStore
    from openheim.store.meta import SessionMeta

__all__ = ("archive_session", "rename_session")

_log = logging.getLogger(__name__)

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
    log = store.log(session_id)
    try:
        with store.lease(session_id):
            if not store.exists(session_id):
                raise store.not_found(session_id)
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
        _show_in_listings(store, session_id)
        # An earlier mark may be in the log alone as well.
        return store.load(session_id).meta


def _show_in_listings(store: HistoryStore, session_id: str) -> None:
    # A listing looks at metadata, not into every log, and so would miss it until the turn has ended.
    try:
        from openheim.store.index import SessionIndex

        SessionIndex(store).refresh(session_id)
    except (ImportError, StorageError) as err:
        _log.info("the index does not show what session %s was marked with: %s", session_id, err)


def _marked(store: HistoryStore, session_id: str, record: dict[str, Any]) -> SessionMeta:
    meta = store.read_meta(session_id) or store.load(session_id).meta
    digest = LogDigest()
    digest.add_record(record)
    return digest.complete(meta, session_id)
