"""Threads wake tasks, on any of the event loops that anyio knows."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("Bell", "Listener")


class Bell:
    """What one thread rings, and any number of tasks listen for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: set[int] = set()

    def ring(self) -> None:
        """Wakes whoever listens. It may be called from any thread and does not block."""
        with self._lock:
            for end in self._ends:
                with suppress(BlockingIOError):  # It was rung so often that nobody can have missed it.
                    os.write(end, b"\0")

    @contextmanager
    def listening(self) -> Iterator[Listener]:
        """From the first moment of the block on, nothing that rings is missed."""
        read, write = os.pipe()
        try:
            os.set_blocking(read, False)
            os.set_blocking(write, False)
            with self._lock:
                self._ends.add(write)
            yield Listener(read)
        finally:
            with self._lock:
                self._ends.discard(write)
                os.close(write)
            os.close(read)


class Listener:
    """Made by :meth:`Bell.listening`."""

    def __init__(self, end: int) -> None:
        self._end = end

    async def wait(self, secs: float) -> None:
        """Returns once the bell has rung since the last call, and after ``secs`` in any case."""
        with anyio.move_on_after(secs):
            await anyio.wait_readable(self._end)
        with suppress(BlockingIOError):
            os.read(self._end, 4096)
