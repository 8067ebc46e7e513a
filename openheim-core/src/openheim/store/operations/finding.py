"""A session by what a person types."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from openheim.errors import SessionNotFoundError, StorageError, UsageError
from openheim.store.history import is_session_id

if TYPE_CHECKING:
    from openheim.store.history import HistoryStore

__all__ = ("find_session",)

_PREFIX = re.compile(r"[0-9a-fA-F][0-9a-fA-F-]*")

#: Ids that an error names.
_FEW = 5


def find_session(store: HistoryStore, prefix: str) -> str:
    """The id of the session that begins with ``prefix``.

    Raises:
        SessionNotFoundError: there is none.
        UsageError: there are several.
        StorageError: the history's folder cannot be read.
    """
    if is_session_id(prefix) and store.exists(prefix):
        return prefix
    found = sorted(_ids_with(store, prefix)) if _PREFIX.fullmatch(prefix) else []
    if not found:
        raise SessionNotFoundError(
            f"there is no session {prefix}", session_id=prefix, hint="see openheim sessions list"
        )
    if len(found) > 1:
        named = ", ".join(found[:_FEW]) + (", …" if len(found) > _FEW else "")
        raise UsageError(f"{len(found)} sessions begin with {prefix}: {named}", hint="give more of the id")
    return found[0]


def _ids_with(store: HistoryStore, prefix: str) -> set[str]:
    try:
        names = os.listdir(store.folder)
    except FileNotFoundError:
        return set()
    except OSError as err:
        raise StorageError(f"cannot read {store.folder}: {err.strerror}", hint="check its permissions") from err
    lowered = prefix.lower()
    ids = {
        session_id
        for session_id, _dot, kind in (name.partition(".") for name in names)
        if kind in ("json", "jsonl") and session_id.lower().startswith(lowered)
    }
    return set(filter(is_session_id, ids))
