"""The right to change the lock files of one folder, between processes and between threads."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from openheim._reading import NO_WAIT
from openheim.store.locking import exclusive

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("Guard", "Guarded")


class Guarded(NamedTuple):
    """The guard while it is held.

    Args:
        descriptor: an open file of the folder.
        locked: whether the file system has locks. If not, others may believe that they hold the guard as well.
    """

    descriptor: int
    locked: bool


class Guard:
    """A lock on the file ``.guard``, for a few system calls at a time. The file is kept open in between.

    Args:
        folder: it need not exist before the guard is used.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._path = os.path.join(folder, ".guard")
        self._between_threads = threading.Lock()
        self._descriptor: int | None = None
        self._identity: tuple[int, int, int] | None = None

    @contextmanager
    def held(self) -> Iterator[Guarded]:
        """Waits for its holder, and holds it.

        Raises:
            TimeoutError: somebody else held it for :data:`openheim.store.locking.PATIENCE_SECS`.
            OSError: it cannot be used.
        """
        with self._between_threads:
            descriptor = self._current()
            with exclusive(descriptor) as locked:
                yield Guarded(descriptor, locked)

    def close(self) -> None:
        """Closes the file, until the guard is used again."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()

    def _current(self) -> int:
        """The open file, if others still find the same, and if this process opened it: a forked child shares locks."""
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            pass
        else:
            if self._descriptor is not None and self._identity == (found.st_dev, found.st_ino, os.getpid()):
                return self._descriptor
        self.close()
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | NO_WAIT, 0o600)
        opened = os.fstat(descriptor)
        self._descriptor, self._identity = descriptor, (opened.st_dev, opened.st_ino, os.getpid())
        return descriptor
