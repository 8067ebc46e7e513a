"""How long a runtime lives: its background tasks, and how turns end with it."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from openheim.runtime.background import BackgroundTask

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anyio.abc import TaskGroup

    from openheim.agent.turn import ToolEnvironment
    from openheim.runtime.flushing import Flusher
    from openheim.runtime.live import LiveSessions

__all__ = ("RuntimeLife",)

T = TypeVar("T")

_log = logging.getLogger(__name__)

#: Seconds between two renewals of the leases of running turns.
LEASE_REFRESH_SECS = 300.0

#: Seconds that turns may take to end when the runtime is closed.
CLOSE_SECS = 10.0


class RuntimeLife:
    """The task group of a runtime, in which its sessions' files are flushed and their leases renewed."""

    def __init__(self, live: LiveSessions, flusher: Flusher) -> None:
        self._live = live
        self._flusher = flusher
        self._closed = anyio.Event()
        self._exit = AsyncExitStack()
        self._group: TaskGroup | None = None
        self._closing = False

    def require_not_closed(self) -> None:
        """Raises :class:`RuntimeError` once the runtime was closed, or is closing."""
        if self._closing:
            raise RuntimeError("the runtime was closed, with its client: make a new one")

    async def begin(self) -> None:
        """Starts the background tasks.

        Raises:
            RuntimeError: that was done before.
        """
        self.require_not_closed()
        if self._group is not None:
            raise RuntimeError("the runtime is open already: enter it, or its client, once")
        self._group = group = await self._exit.enter_async_context(anyio.create_task_group())
        self._closed = anyio.Event()
        group.start_soon(self._flusher.run)
        group.start_soon(self._refresh_leases)

    def start_task(self, call: Callable[..., Awaitable[T]], *arguments: Any) -> BackgroundTask[T]:
        """Starts a call that lives as long as the runtime does, or as it takes.

        Raises:
            RuntimeError: the runtime was not entered, or is closing.
        """
        if self._group is None or self._closing:
            raise RuntimeError("the runtime is not open: use it as an async context manager")
        task: BackgroundTask[T] = BackgroundTask()
        self._group.start_soon(task.run, call, arguments)
        return task

    def close_tools(self, environment: ToolEnvironment) -> None:
        """Has tools told that a session has ended, also while the runtime is closing; :meth:`end` waits for it."""
        if environment.has_to_close and self._group is not None:
            self._group.start_soon(environment.close)

    async def end_turns(self) -> None:
        """Cancels the turns that are running and flushes what sessions wrote; nothing can be started from then on."""
        running = [session for session in self._live if session.running]
        for session in running:
            session.cancel()
        with anyio.move_on_after(CLOSE_SECS) as waiting:
            for session in running:
                await session.wait_until_idle()
        if waiting.cancelled_caught:
            _log.warning("a turn did not end within %s s and is left behind", CLOSE_SECS)
        self._closing = True
        self._closed.set()
        await self._flusher.close()

    async def end(self) -> None:
        """Waits for the background tasks; to be called behind :meth:`end_turns`."""
        # Without the error: a task group would wrap it, and what the program raised should reach it as it is.
        await self._exit.aclose()
        self._group = None

    async def _refresh_leases(self) -> None:
        while not self._closing:
            with anyio.move_on_after(LEASE_REFRESH_SECS):
                await self._closed.wait()
            for session in self._live:
                if session.running:
                    session.refresh_lease()
