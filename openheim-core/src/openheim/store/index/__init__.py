"""An index of all sessions, for listing, search and totals: ``index.db`` beside the history.

It is made from the history, is brought up to date before it is asked, and can be deleted at any time. Nothing reads it
to learn what a session holds, and writers of sessions know nothing of it.
"""

from __future__ import annotations

from openheim.store.index.sessions import SessionIndex
from openheim.store.index.update import Progress

__all__ = ("Progress", "SessionIndex")
