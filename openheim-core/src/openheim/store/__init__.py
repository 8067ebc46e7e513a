"""What openheim keeps on disk: one log of messages and one small file of metadata per session."""

from __future__ import annotations

from openheim.store.history import HistoryStore, SessionLog, StoredSession
from openheim.store.meta import SessionMeta

__all__ = ("HistoryStore", "SessionLog", "SessionMeta", "StoredSession")
