"""Running a plugin's own code: what it prints must not reach standard output, and it must not hang unnoticed."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ("NOTICE_AFTER_SECS", "diverted_stdout", "supervised")

#: How long a plugin may take before standard error says which one it is.
NOTICE_AFTER_SECS = 5.0


@contextlib.contextmanager
def supervised(what: str) -> Iterator[None]:
    """Runs a plugin's code.

    Meanwhile whatever is written to standard output goes to standard error, Ctrl+C raises :class:`KeyboardInterrupt` at
    once, and after :data:`NOTICE_AFTER_SECS` one line on standard error says what is being waited for.

    Args:
        what: names the plugin and what it does, ``"Plugin tools:web (…) is being imported"``.
    """
    with diverted_stdout(), _interruptible(), _noticed(what):
        yield


# Code of several plugins may run at once, in several threads: the first one in diverts, the last one out restores.
_lock = threading.Lock()
_depth = 0
_restore: Callable[[], None] = lambda: None  # noqa: E731  # a placeholder until the first diversion


@contextlib.contextmanager
def diverted_stdout(to: TextIO | None = None) -> Iterator[None]:
    """Sends to ``to`` (standard error if None) what is written to standard output meanwhile, by Python, C or children.

    A diversion within another goes where the outer one goes. A transport that talks over standard output keeps a copy
    of the descriptor for itself, so that this does not touch it.
    """
    global _depth, _restore
    with _lock:
        if _depth == 0:
            _restore = _divert(to if to is not None else sys.stderr)
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                _restore()


def _divert(to: TextIO) -> Callable[[], None]:
    stream = sys.stdout
    # What waits in the buffer was written before, and belongs where it was meant to go.
    _flush(stream)
    saved = None
    try:
        saved = os.dup(1)
        os.dup2(to.fileno(), 1)
    except (OSError, ValueError, AttributeError):
        # Descriptor 1 is closed, or ``to`` has no descriptor (a capturing test): the stream itself is diverted still.
        if saved is not None:
            os.close(saved)
            saved = None
    sys.stdout = to

    def restore() -> None:
        _flush(to)
        if saved is not None:
            # The buffer of the real stream may hold what was written through sys.__stdout__.
            _flush(stream)
            os.dup2(saved, 1)
            os.close(saved)
        sys.stdout = stream

    return restore


def _flush(stream: TextIO | None) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        stream.flush()  # type: ignore[union-attr]  # None under pythonw, and caught


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl+C raises at once. An event loop's own handler would wait for a loop that is not running now."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.getsignal(signal.SIGINT)
    if not callable(previous):
        # Ignored on purpose (nohup), or set by something that is not Python.
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


@contextlib.contextmanager
def _noticed(what: str) -> Iterator[None]:
    def notice() -> None:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stderr.write(f"{what}, for {NOTICE_AFTER_SECS:.0f} s now; Ctrl+C ends the wait\n")
            sys.stderr.flush()

    timer = threading.Timer(NOTICE_AFTER_SECS, notice)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
