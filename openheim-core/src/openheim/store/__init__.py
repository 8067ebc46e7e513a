"""What openheim keeps on disk: one log of messages and one small file of metadata per session."""

from __future__ import annotations

from openheim.store.history import HistoryStore, StoredSession
from openheim.store.log import LogPosition, SessionLog
from openheim.store.meta import SessionMeta

__all__ = ("HistoryStore", "LogPosition", "SessionLog", "SessionMeta", "StoredSession")
