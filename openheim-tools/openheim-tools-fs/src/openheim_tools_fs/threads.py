"""Blocking work in a worker thread that is told when nobody waits for it any more."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar

import anyio.to_thread

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("Cancelled", "run_abandonable")

T = TypeVar("T")


class Cancelled(Exception):
    """The caller is gone; raised in the worker thread to get out, and seen by nobody."""


async def run_abandonable(work: Callable[[Callable[[], None]], T]) -> T:
    """Runs ``work`` in a worker thread; on cancellation the caller leaves at once and the work ends soon after.

    Args:
        work: gets a function that it calls often; once the caller is gone, that function raises :class:`Cancelled`.
    """
    gone = threading.Event()

    def check() -> None:
        if gone.is_set():
            raise Cancelled

    try:
        return await anyio.to_thread.run_sync(work, check, abandon_on_cancel=True)
    finally:
        gone.set()
