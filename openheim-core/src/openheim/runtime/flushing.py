"""Makes what sessions wrote durable, off the event loop, and together where turns follow each other quickly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import anyio
from anyio import to_thread

from openheim.errors import OpenheimError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ("FLUSH_PAUSE_SECS", "Flushed", "Flusher")

#: Seconds between two flushes at least.
FLUSH_PAUSE_SECS = 0.25


class Flushed(Protocol):
    """A session, as far as its files are concerned."""

    @property
    def id(self) -> str: ...

    def prepare_flush(self) -> Callable[[], None]:
        """A function that does it, for another thread. Both raise ``StorageError`` or ``OSError``."""
        ...


class Flusher:
    """Flushes sessions in the background, from :meth:`run` on.

    Args:
        report: told, once until it works again, that something could not be made durable.
    """

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._waiting: dict[str, Flushed] = {}
        self._wanted = anyio.Event()
        self._closed = anyio.Event()
        self._ended = anyio.Event()
        self._reported = False

    def later(self, session: Flushed) -> None:
        """Has the session's files made durable soon."""
        self._waiting[session.id] = session
        self._wanted.set()

    async def run(self) -> None:
        """Works until :meth:`close`."""
        try:
            while not self._closed.is_set():
                await self._wanted.wait()
                self._wanted = anyio.Event()
                with anyio.CancelScope(shield=True):
                    await self._flush()
                with anyio.move_on_after(FLUSH_PAUSE_SECS):
                    await self._closed.wait()
        finally:
            self._ended.set()

    async def close(self) -> None:
        """Ends :meth:`run` and flushes what is left."""
        self._closed.set()
        self._wanted.set()
        await self._ended.wait()
        # It may have been cancelled with everything else.
        await self._flush()

    async def _flush(self) -> None:
        sessions = list(self._waiting.values())
        self._waiting.clear()
        flushes: list[Callable[[], None]] = []
        for session in sessions:
            try:
                flushes.append(session.prepare_flush())
            except (OpenheimError, OSError) as err:
                # Out of descriptors, for instance. The messages are written; that they are durable is tried again.
                self._waiting[session.id] = session
                self._report_unsaved(err)
        if flushes:
            for problem in await to_thread.run_sync(_run_all, flushes):
                self._report_unsaved(problem)
        if self._waiting:
            self._wanted.set()
        else:
            self._reported = False

    def _report_unsaved(self, err: Exception) -> None:
        if not self._reported:
            self._report(f"a session may not be saved: {err}")
        self._reported = True


def _run_all(calls: Sequence[Callable[[], None]]) -> list[Exception]:
    problems: list[Exception] = []
    for call in calls:
        try:
            call()
        except (OpenheimError, OSError) as err:
            problems.append(err)
    return problems
