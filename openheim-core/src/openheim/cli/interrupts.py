"""What SIGINT, SIGTERM and SIGHUP do: before a turn, while it runs, and when nothing listens any more."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ("Terminated", "ignore_signals", "raise_on_termination", "turn_signals")

_ASK_TO_END = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Terminated(KeyboardInterrupt):
    """SIGTERM came. Like Ctrl+C it passes through whatever catches the faults of plugins, ``SystemExit`` among them."""


def raise_on_termination() -> list[int]:
    """Makes SIGTERM raise :class:`Terminated`, and neither it nor Ctrl+C get lost.

    Returns:
        a list that grows by the number of each SIGTERM that comes.
    """
    came: list[int] = []

    def terminated(number: int, _frame: object) -> NoReturn:
        came.append(number)
        raise Terminated

    signal.signal(signal.SIGTERM, terminated)
    sys.unraisablehook = _end_if_interrupted
    return came


def _end_if_interrupted(unraisable: Any, /) -> None:
    """Ends the process if a finalizer or the callback of a weak reference was interrupted.

    Python drops what is raised there, so the process would go on as if nobody had asked it to end. Modules that are
    being imported run many such callbacks.
    """
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        os._exit(143 if isinstance(unraisable.exc_value, Terminated) else 130)
    sys.__unraisablehook__(unraisable)


async def turn_signals(*, task_status: Any) -> AsyncIterator[int]:
    """Yields the number of the first signal that asks the process to end; the second one ends it at once.

    The second is counted outside of the event loop: a tool or a plugin that blocks the loop keeps the first from being
    seen, and must not keep the user from leaving. SIGHUP counts unless it is ignored, as it is under ``nohup``. SIGINT
    counts always: in the background jobs of scripts it is ignored, and whoever sends it to one means it.

    Args:
        task_status: told when the signals are caught.
    """
    import anyio

    numbers = [
        number for number in _ASK_TO_END if number == signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN
    ]
    came = 0

    def count(number: int, _frame: object) -> None:
        nonlocal came
        came += 1
        if came > 1:
            os._exit(128 + number)

    with anyio.open_signal_receiver(*numbers) as signals:
        for number in numbers:
            # The event loop is woken by the interpreter's own handler, whatever the handler in Python does.
            signal.signal(number, count)
            signal.siginterrupt(number, False)
        task_status.started()
        async for received in signals:
            yield received


def ignore_signals() -> None:
    """Ignores what would ask the process to end, for the moment between its work and its end."""
    for number in _ASK_TO_END:
        signal.signal(number, signal.SIG_IGN)
