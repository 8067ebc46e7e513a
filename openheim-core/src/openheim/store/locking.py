"""Locks that the kernel keeps and drops with the process: for a change of a file at a time, never for a turn.

They are ``flock`` on POSIX systems and byte-range locks on Windows. A file system that has none is worked on without.
"""

from __future__ import annotations

import errno
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("exclusive",)

#: Seconds to wait for a holder. What is done under such a lock takes well below a millisecond, so whoever holds it
#: longer was stopped in the middle of it, and must not stop everybody else.
PATIENCE_SECS = 2.0

_PAUSE_SECS = 0.001

_BUSY = (errno.EAGAIN, errno.EACCES, errno.EWOULDBLOCK)
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL)


@contextmanager
def exclusive(descriptor: int, *, patience_secs: float = PATIENCE_SECS) -> Iterator[bool]:
    """Excludes everybody else who locks the same file, in this process or another, through a descriptor of their own.

    Args:
        patience_secs: how long to wait for a holder.

    Yields:
        whether it does: False where the file system has no locks.

    Raises:
        TimeoutError: somebody else held it for that long.
        OSError: the file system failed.
    """
    locked = _lock(descriptor, patience_secs)
    try:
        yield locked
    finally:
        if locked:
            _unlock(descriptor)


def _lock(descriptor: int, patience_secs: float) -> bool:
    deadline = None
    while True:
        try:
            _try_lock(descriptor)
            return True
        except OSError as err:
            if err.errno in _NO_LOCKS:
                return False
            if err.errno not in _BUSY:
                raise
        now = time.monotonic()
        if deadline is None:
            deadline = now + patience_secs
        elif now > deadline:
            raise TimeoutError(errno.ETIMEDOUT, "another process holds it")
        time.sleep(_PAUSE_SECS)


if sys.platform == "win32":
    import msvcrt

    #: Windows locks ranges, and nobody can read or write one that is locked: so one far behind any content.
    _RANGE_START = 1 << 40

    def _try_lock(descriptor: int) -> None:
        import os

        os.lseek(descriptor, _RANGE_START, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def _unlock(descriptor: int) -> None:
        import os

        os.lseek(descriptor, _RANGE_START, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
