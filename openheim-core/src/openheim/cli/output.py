"""Writing to stdout from the event loop.

A reader that is slow must not stop the loop (nor Ctrl+C), so a thread does the writing. What waits to be written is
bounded.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("StdoutWriter",)

#: Bytes that may wait for a slow reader.
WAITING_BYTES = 64 * 1024 * 1024


class StdoutWriter:
    """Writes text to standard output in order.

    Args:
        on_gone: called, in the writing thread, when the reader has gone away or has fallen too far behind.
    """

    def __init__(self, on_gone: Callable[[], None]) -> None:
        self._on_gone = on_gone
        # A descriptor of our own: while a plugin is loaded, descriptor 1 leads to standard error.
        self._descriptor = os.dup(1)
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._ending = False
        #: Whether nothing can be written any more.
        self.gone = False
        self._thread = threading.Thread(target=self._write_all, name="stdout", daemon=True)
        self._thread.start()

    def write(self, text: str) -> None:
        """Has the text written soon; returns at once."""
        data = text.encode("utf-8", "replace")
        with self._changed:
            if self.gone:
                return
            self._waiting.append(data)
            self._bytes += len(data)
            too_much = self._bytes > WAITING_BYTES
            self._changed.notify()
        if too_much:
            self._give_up()

    def finish(self) -> None:
        """Waits until everything is written, or the reader is gone. Blocks."""
        with self._changed:
            self._ending = True
            self._changed.notify()
        self._thread.join()
        os.close(self._descriptor)

    def _give_up(self) -> None:
        with self._changed:
            if self.gone:
                return
            self.gone = True
            self._waiting.clear()
            self._changed.notify()
        self._on_gone()

    def _write_all(self) -> None:
        sys.stdout.flush()
        while True:
            with self._changed:
                while not self._waiting and not self._ending and not self.gone:
                    self._changed.wait()
                if self.gone or not self._waiting:
                    return
                data = b"".join(self._waiting)
                self._waiting.clear()
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(self._descriptor, view) :]
            except OSError:
                self._give_up()
                return
            with self._changed:
                self._bytes -= len(data)
