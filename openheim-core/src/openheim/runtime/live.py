"""The sessions that a process holds in memory.

Bounded: a session that was idle for long, or the one idle for longest beyond a number, is let go. Its files stay, and
    it comes back through :meth:`openheim.Runtime.load_session`. A session whose turn is running, or for which a tool
    has something going on (a job in the background), is never let go.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from openheim.runtime.session import Session

__all__ = ("LiveSessions",)

#: Seconds after which an idle session is let go, and sessions that are kept otherwise.
IDLE_SECS = 7 * 24 * 3600.0
CAPACITY = 512

#: Running and kept sessions that are passed over in one search for idle ones.
_PASSED_OVER = 64


class LiveSessions:
    """Sessions by id, the least recently active first."""

    def __init__(
        self, *, capacity: int = CAPACITY, idle_secs: float = IDLE_SECS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._capacity = capacity
        self._idle_secs = idle_secs
        self._clock = clock
        self._sessions: OrderedDict[str, tuple[Session, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[Session]:
        return iter([session for session, _active in self._sessions.values()])

    def get(self, session_id: str) -> Session | None:
        entry = self._sessions.get(session_id)
        return entry[0] if entry is not None else None

    def add(self, session: Session) -> list[Session]:
        """Adds a session as the most recently active, and returns those that were let go for it."""
        let_go = self._sweep()
        self._sessions[session.id] = (session, self._clock())
        self._sessions.move_to_end(session.id)
        return let_go

    def touch(self, session: Session) -> None:
        """Counts as activity: a prompt, a cancel, a load, a change of mode or model."""
        if session.id in self._sessions:
            self._sessions[session.id] = (session, self._clock())
            self._sessions.move_to_end(session.id)

    def remove(self, session: Session) -> None:
        entry = self._sessions.get(session.id)
        if entry is not None and entry[0] is session:
            del self._sessions[session.id]

    def _sweep(self) -> list[Session]:
        long_ago = self._clock() - self._idle_secs
        let_go = []
        passed_over = 0
        for session, active in list(islice(self._sessions.values(), self._surplus() + _PASSED_OVER)):
            if active > long_ago and self._surplus() <= 0:
                break
            if session.running or session.is_kept:
                passed_over += 1
                if passed_over >= _PASSED_OVER:
                    break
                continue
            del self._sessions[session.id]
            let_go.append(session)
        return let_go

    def _surplus(self) -> int:
        """Sessions too many, once one more is added."""
        return max(len(self._sessions) + 1 - self._capacity, 0)
