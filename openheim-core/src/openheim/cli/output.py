"""Writing to stdout from the event loop.

A reader that is slow must not stop the loop (nor Ctrl+C), so a thread does the writing. What waits to be written is
bounded.
"""

from __future__ import annotations

import errno
import os
import select
import sys
import threading
from collections import deque
from typing import TYPE_CHECKING

import anyio.lowlevel
from anyio import from_thread

from openheim.cli.printing import harmless

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("StdoutWriter",)

#: Bytes that may wait behind what is being written.
WAITING_BYTES = 64 * 1024 * 1024


#: How often a writer that waits for its reader looks whether it was given up.
_LOOK_UP_SECS = 0.5


class StdoutWriter:
    """Writes text in order to what standard output was when this was made. To be made and used on the event loop.

    It has a descriptor of its own, so that standard output can be diverted meanwhile: what plugins and tools print must
    not get into the answer.

    Args:
        on_gone: called on the event loop when nothing can be written any more.
    """

    def __init__(self, on_gone: Callable[[], None]) -> None:
        self._on_gone = on_gone
        self._token = anyio.lowlevel.current_token()
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._ending = False
        self._done = False
        #: Whether nothing can be written any more, and why, if that is not that the reader has gone away.
        self.gone = False
        self.reason = ""
        sys.stdout.flush()
        self._on_terminal = os.isatty(1)
        self._descriptor = os.dup(1)
        self._thread = threading.Thread(target=self._write_all, name="stdout", daemon=True)
        self._thread.start()

    def write(self, text: str) -> None:
        """Has the text written soon; returns at once."""
        data = (harmless(text) if self._on_terminal else text).encode("utf-8", "replace")
        with self._changed:
            if self.gone:
                return
            too_slow = self._bytes > WAITING_BYTES
            if too_slow:
                self._give_up("the reader of standard output is too slow")
            else:
                self._waiting.append(data)
                self._bytes += len(data)
                self._changed.notify_all()
        if too_slow:
            self._on_gone()

    def finish(self) -> None:
        """Waits until everything is written, or cannot be. Blocks."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
            # The thread itself may be stuck in a write that a reader who has stopped reading never ends.
            while not self._done and not self.gone:
                self._changed.wait()

    def _give_up(self, reason: str) -> None:
        """To be called with the lock held."""
        self.gone = True
        self.reason = reason
        self._waiting.clear()
        self._changed.notify_all()

    def _write_all(self) -> None:
        try:
            while self._write_some():
                pass
        except OSError as err:
            with self._changed:
                self._give_up("" if err.errno == errno.EPIPE else f"cannot write to standard output: {err.strerror}")
            try:
                from_thread.run_sync(self._on_gone, token=self._token)
            except RuntimeError:
                # The event loop has ended, so there is nothing left to stop.
                pass
        finally:
            os.close(self._descriptor)
            with self._changed:
                self._done = True
                self._changed.notify_all()

    def _write_some(self) -> bool:
        with self._changed:
            while not self._waiting and not self._ending and not self.gone:
                self._changed.wait()
            if self.gone or not self._waiting:
                return False
            data = b"".join(self._waiting)
            self._waiting.clear()
        view = memoryview(data)
        while view:
            try:
                written = os.write(self._descriptor, view[:1_048_576])
            except BlockingIOError:
                # Whoever shares the other end has made it non-blocking; the reader is slow and not gone.
                select.select([], [self._descriptor], [], _LOOK_UP_SECS)
                written = 0
            view = view[written:]
            with self._changed:
                self._bytes -= written
                if self.gone:
                    return False
        return True
