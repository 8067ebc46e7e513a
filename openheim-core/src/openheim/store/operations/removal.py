"""Deleting sessions."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from openheim._arguments import seconds, whole_number
from openheim.errors import OpenheimError, SessionNotFoundError, StorageError, UsageError
from openheim.store.operations.listing import list_sessions
from openheim.store.rows import sort_key
from openheim.store.writing import sync_folder

if TYPE_CHECKING:
    from openheim.store.history import HistoryStore
    from openheim.store.index import Progress
    from openheim.store.meta import SessionMeta

__all__ = ("Pruned", "delete_session", "prune_sessions")

_log = logging.getLogger(__name__)


def delete_session(store: HistoryStore, session_id: str) -> None:
    """Deletes all files of a session.

    Raises:
        SessionNotFoundError: there is no such session.
        SessionLockedError: another process runs a turn of it.
        SessionBusyError: this process does.
        StorageError: a file cannot be deleted. Deleting can be tried again.
    """
    if not store.exists(session_id):
        raise store.not_found(session_id)
    with store.lease(session_id).held_for_removal():
        # The metadata last: as long as it is there the session can be found, and deleted.
        for path in (store.log_path(session_id), store.metrics_path(session_id), store.meta_path(session_id)):
            try:
                os.unlink(path)
            except FileNotFoundError:
                pass
            except OSError as err:
                raise StorageError(f"cannot delete {path}: {err.strerror}", hint="check its permissions") from err
    sync_folder(store.folder)
    _forget(store, session_id)


def _forget(store: HistoryStore, session_id: str) -> None:
    # What was said must not live on in the index until somebody looks at it.
    if not (store.folder.parent / "index.db").exists():
        return
    try:
        from openheim.store.index import SessionIndex

        SessionIndex(store).forget(session_id)
    except (ImportError, StorageError) as err:
        _log.warning("the deleted session %s is still in the index: %s", session_id, err)


@dataclass(slots=True)
class Pruned:
    """What :func:`prune_sessions` did.

    Args:
        removed: sessions that were deleted, or would be.
        kept: sessions that could not be deleted, each with the reason.
    """

    removed: list[SessionMeta] = field(default_factory=list)
    kept: list[tuple[SessionMeta, OpenheimError]] = field(default_factory=list)


def prune_sessions(
    store: HistoryStore,
    *,
    older_than_secs: float | None = None,
    keep: int | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Pruned:
    """Deletes sessions that were not used for long, archived ones too. One that is in use is left alone.

    Args:
        older_than_secs: only those that were last used longer ago.
        keep: never the newest so many.
        dry_run: delete nothing, and say what would be deleted.

    Raises:
        UsageError: neither limit is given, or one is negative or not finite.
        TypeError: a limit is no number.
        StorageError: the history's folder cannot be read.
    """
    if older_than_secs is None and keep is None:
        raise UsageError("pruning needs a limit", hint="say how old, or how many to keep")
    # A slip here would cost sessions: what compares oddly must not reach the comparison below.
    if older_than_secs is not None:
        seconds("older_than_secs", older_than_secs)
    if keep is not None:
        whole_number("keep", keep, least=0)
    rows = list_sessions(store, archived=None, limit=None, progress=progress).rows
    newest = time.time() * 1_000_000 - (older_than_secs or 0) * 1_000_000
    pruned = Pruned()
    for row in rows[keep or 0 :]:
        if older_than_secs is not None and sort_key(row.meta.updated_at) > newest:
            continue
        try:
            if not dry_run:
                delete_session(store, row.meta.id)
        except SessionNotFoundError:
            continue
        except OpenheimError as err:
            pruned.kept.append((row.meta, err))
        else:
            pruned.removed.append(row.meta)
    return pruned
