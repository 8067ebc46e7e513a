"""Whether the event loop goes on while something runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ("longest_pause",)

#: How often the loop shows that it goes on.
_BEAT_SECS = 0.01


async def longest_pause(call: Callable[[], Awaitable[object]]) -> float:
    """The longest time in seconds for which nothing else on the event loop got its turn, while ``call`` ran.

    On a machine with too little to go round a program waits for a processor too. What Linux counts as that is left out;
    elsewhere it is part of the time.

    Raises:
        Exception: whatever ``call`` raises.
    """
    heart = _Heart()
    problem: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(heart.beat)
        await anyio.lowlevel.checkpoint()
        heart.mark()
        heart.longest_secs = 0.0
        try:
            await call()
        except Exception as err:
            # Raised below, since a task group would wrap it.
            problem = err
        heart.mark()
        group.cancel_scope.cancel()
    if problem is not None:
        raise problem
    return heart.longest_secs


class _Heart:
    def __init__(self) -> None:
        self.longest_secs = 0.0
        self._last = time.monotonic()
        self._starved_secs = _starved_secs()

    async def beat(self) -> None:
        while True:
            await anyio.sleep(_BEAT_SECS)
            self.mark(_BEAT_SECS)

    def mark(self, slept_secs: float = 0.0) -> None:
        """Counts the time since the last mark, but for what was slept on purpose."""
        now, starved = time.monotonic(), _starved_secs()
        pause = now - self._last - slept_secs - (starved - self._starved_secs)
        self.longest_secs = max(self.longest_secs, pause)
        self._last, self._starved_secs = now, starved


def _starved_secs() -> float:
    """How long this thread was ready to run and had no processor to run on, since it began; 0.0 where nobody counts."""
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
