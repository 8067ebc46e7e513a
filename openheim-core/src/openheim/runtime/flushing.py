"""Makes what sessions wrote durable, off the event loop, and together where turns follow each other quickly."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Protocol

import anyio
from anyio import to_thread

from openheim.errors import OpenheimError, SessionNotFoundError, StorageError, described

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ("FLUSH_PAUSE_SECS", "Flushed", "Flusher")

_log = logging.getLogger(__name__)

#: Seconds between two flushes at least.
FLUSH_PAUSE_SECS = 0.25

#: Seconds before a flush that failed is tried again: the first time, doubled each time, and at most.
FIRST_RETRY_SECS, LAST_RETRY_SECS = 0.5, 60.0

#: How often that is tried for a session that nobody uses any more.
CLOSED_RETRIES = 10


class Flushed(Protocol):
    """Files of a session."""

    @property
    def is_open(self) -> bool:
        """Whether the session is in use."""
        ...

    def prepare_flush(self) -> Callable[[], None]:
        """A function that does it, for another thread.

        Both raise ``StorageError`` or ``OSError``, and ``SessionNotFoundError`` where trying again is of no use.
        """
        ...

    def flushed(self, error: OpenheimError | None) -> None:
        """Told on the event loop how that ended."""
        ...


class _Retry:
    """``due`` is by anyio's clock, ``delay`` what is waited for it."""

    __slots__ = ("delay", "due", "number")

    def __init__(self, delay: float, number: int) -> None:
        self.delay = delay
        self.due = anyio.current_time() + delay
        self.number = number


class Flusher:
    """Flushes files in the background, from :meth:`run` on. What fails is tried again, less and less often."""

    def __init__(self) -> None:
        self._waiting: dict[Flushed, None] = {}
        self._retries: dict[Flushed, _Retry] = {}
        self._wanted = anyio.Event()
        self._closed = anyio.Event()
        self._ended = anyio.Event()

    def later(self, files: Flushed) -> None:
        """Has the files made durable soon."""
        self._waiting[files] = None
        self._wanted.set()

    async def run(self) -> None:
        """Works until :meth:`close`."""
        try:
            while not self._closed.is_set():
                with anyio.move_on_after(self._secs_to_retry()):
                    await self._wanted.wait()
                self._wanted = anyio.Event()
                with anyio.CancelScope(shield=True):
                    await self._flush(anyio.current_time())
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
        await self._flush(math.inf)

    def _secs_to_retry(self) -> float | None:
        due = min((retry.due for retry in self._retries.values()), default=None)
        return None if due is None else max(0.0, due - anyio.current_time())

    async def _flush(self, now: float) -> None:
        due = [files for files, retry in self._retries.items() if retry.due <= now and files not in self._waiting]
        wanted = [*self._waiting, *due]
        self._waiting.clear()
        flushes: list[tuple[Flushed, Callable[[], None]]] = []
        for files in wanted:
            try:
                flushes.append((files, files.prepare_flush()))
            except Exception as err:
                # Out of descriptors, for instance.
                self._settle(files, err)
        if flushes:
            try:
                ended = await to_thread.run_sync(_run_all, flushes)
            except RuntimeError:
                # There is no thread to be had.
                ended = _run_all(flushes)
            for files, error in ended:
                self._settle(files, error)

    def _settle(self, files: Flushed, error: Exception | None) -> None:
        last = self._retries.pop(files, None)
        if error is not None and not isinstance(error, OpenheimError):
            error = StorageError(described(error), hint="check free space and permissions")
        if error is not None and not isinstance(error, SessionNotFoundError):
            delay, number = (FIRST_RETRY_SECS, 1) if last is None else (last.delay * 2, last.number + 1)
            if files.is_open or number <= CLOSED_RETRIES:
                self._retries[files] = _Retry(min(delay, LAST_RETRY_SECS), number)
        try:
            files.flushed(error)
        except Exception as err:
            # Whoever is told may fail, which must not be the end of every session.
            _log.warning("a report of what could not be saved failed: %s", described(err))


def _run_all(flushes: Iterable[tuple[Flushed, Callable[[], None]]]) -> list[tuple[Flushed, Exception | None]]:
    ended: list[tuple[Flushed, Exception | None]] = []
    for files, flush in flushes:
        try:
            flush()
        except Exception as err:
            ended.append((files, err))
        else:
            ended.append((files, None))
    return ended
