"""Reads files that anything may stand in for: no pipe is waited for without end, and nothing endless is taken in."""

from __future__ import annotations

import errno
import io
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("NO_WAIT", "open_regular", "read_given", "read_regular", "require_regular")

#: Flags for opening: a pipe whose other end is missing is not waited for, and a terminal does not become ours.
NO_WAIT: int = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)

_FLAGS = os.O_RDONLY | NO_WAIT | getattr(os, "O_BINARY", 0)

#: Seconds that the next bytes of a pipe may take to come.
PATIENCE_SECS = 10.0

#: Bytes that are read in one step of what does not tell its length.
_STEP = 1 << 20


def require_regular(found: os.stat_result) -> None:
    """Raises :class:`OSError` for what is no regular file."""
    if stat.S_ISREG(found.st_mode):
        return
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    raise OSError(errno.EINVAL, "it is a pipe, socket or device, not a file")


def open_regular(path: Path | str) -> io.FileIO:
    """A regular file, for reading.

    Raises:
        OSError: it is none, is missing, or may not be read.
    """
    descriptor = os.open(path, _FLAGS)
    try:
        require_regular(os.fstat(descriptor))
        return io.FileIO(descriptor)
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path | str, *, limit: int) -> bytes:
    """The content of a regular file.

    Raises:
        OSError: as :func:`open_regular`; ``EFBIG`` if there are more than ``limit`` bytes.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        # A file may be longer than it says: those of /proc call themselves empty, and others grow.
        content = file.read(min(size, limit) + 1)
        while content and len(content) <= limit and (more := file.read(min(_STEP, limit + 1 - len(content)))):
            content += more
    if max(size, len(content)) > limit:
        raise _too_long(limit)
    return content


def read_given(path: Path | str, *, limit: int) -> bytes:
    """What stands at a path that the user named: a file, or a pipe or device that ends in time.

    Raises:
        OSError: as :func:`read_regular`; ``ETIMEDOUT`` if nothing more came for some seconds.
    """
    descriptor = os.open(path, _FLAGS)
    try:
        # To a pipe that nobody has opened for writing yet, a writer may still come.
        may_begin = stat.S_ISFIFO(os.fstat(descriptor).st_mode)
        data = bytearray()
        while len(data) <= limit:
            try:
                piece = os.read(descriptor, min(_STEP, limit + 1 - len(data)))
            except BlockingIOError:
                _wait_for(descriptor)
                continue
            if not piece and not may_begin:
                break
            if not piece:
                _wait_for(descriptor)
            may_begin = False
            data += piece
    finally:
        os.close(descriptor)
    if len(data) > limit:
        raise _too_long(limit)
    return bytes(data)


def _wait_for(descriptor: int) -> None:
    import select

    if not select.select([descriptor], [], [], PATIENCE_SECS)[0]:
        raise TimeoutError(errno.ETIMEDOUT, f"nothing came for {PATIENCE_SECS:g} s")


def _too_long(limit: int) -> OSError:
    shown = f"{limit >> 20} MiB" if limit >= 1 << 20 else f"{limit >> 10} KiB"
    return OSError(errno.EFBIG, f"it is longer than {shown}")
