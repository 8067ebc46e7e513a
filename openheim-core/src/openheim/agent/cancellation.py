"""Telling a cancellation or an interrupt that is meant from what a plugin let slip."""

from __future__ import annotations

import math
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

import anyio

from openheim.errors import described

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ("being_cancelled", "slip_in_words", "slipped")


def being_cancelled() -> bool:
    """Whether the running task is being cancelled by whoever runs it.

    A plugin that awaits something cancelled, or raises the exception itself, looks the same from outside; what it
    does must not end the turn.
    """
    if anyio.current_effective_deadline() == -math.inf:
        return True
    # A program on asyncio may cancel the task without anyio's knowing.
    asyncio = sys.modules.get("asyncio")
    try:
        task = asyncio.current_task() if asyncio is not None else None
    except RuntimeError:
        return True
    return task is not None and task.cancelling() > 0


def slipped(err: BaseException) -> bool:
    """Whether what came out of a plugin is its own failure, so that it goes no further.

    Not its own are the cancellation of the running task, Ctrl+C, and the end of a coroutine that is closed.
    """
    if isinstance(err, Exception | SystemExit):
        return True
    if isinstance(err, BaseExceptionGroup):
        return all(map(slipped, err.exceptions))
    if isinstance(err, KeyboardInterrupt):
        return not _came_by_signal(err)
    if isinstance(err, anyio.get_cancelled_exc_class()):
        return not being_cancelled()
    return not isinstance(err, GeneratorExit)


def slip_in_words(err: BaseException) -> str:
    """What a plugin did that let this slip, as the end of a sentence that begins with the plugin."""
    while isinstance(err, BaseExceptionGroup) and len(err.exceptions) == 1:
        err = err.exceptions[0]
    if isinstance(err, SystemExit):
        return "tried to end the program"
    if isinstance(err, KeyboardInterrupt):
        return "tried to interrupt the program"
    if isinstance(err, anyio.get_cancelled_exc_class()):
        return "awaited something that was cancelled"
    return f"failed: {described(err)}"


def _came_by_signal(err: KeyboardInterrupt) -> bool:
    """Whether Ctrl+C, or another signal, can be behind an interrupt, and not only a plugin that raises one."""
    if threading.current_thread() is not threading.main_thread():
        return False
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # It leaves no trace of its own, so that the two look the same.
        return True
    # Any other handler, asyncio's for instance, stands in the traceback if it raised.
    handlers: list[Any] = [signal.getsignal(number) for number in signal.valid_signals()]
    codes = {getattr(getattr(handler, "func", handler), "__code__", None) for handler in handlers} - {None}
    trace: TracebackType | None = err.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False
