"""Content on its way into a file: a file beside it, which no killed process leaves there for long.

Its name is one of a row, ``.openheim-unfinished-0`` and on, which nothing else may be given, and whoever writes holds a
lock on it. So the next who writes in the directory, in whatever process, comes across what a killed one left, sees that
nobody holds it, and removes it; without listing the directory, which may be long, and without asking which processes
live, which cannot be known across containers. A file with no name (``O_TMPFILE``) would not do: it can be given a free
name only, never one that is taken.

Where there are no locks (Windows, some network file systems) names are passed over that are taken, whoever's they are.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openheim.files._directory import Directory

__all__ = ("UnfinishedFile", "is_kept_name", "unfinished_file")

try:
    import fcntl
except ImportError:  # Windows.
    HAVE_LOCKS = False
else:
    HAVE_LOCKS = True

_PREFIX = ".openheim-unfinished-"
#: Names in the row; beyond them a name is made up.
MAX_NUMBER = 1000
#: After so many free names in a row nothing more is expected. Names are taken from the beginning.
MAX_GAP = 8


class UnfinishedFile:
    """A new file of a directory, open for writing.

    Attributes:
        fd: its descriptor.
    """

    __slots__ = ("_directory", "_finished", "_name", "fd")

    def __init__(self, directory: Directory, name: str, fd: int) -> None:
        self._directory = directory
        self._name = name
        self._finished = False
        self.fd = fd

    def finish(self, name: str) -> None:
        """Gives it its name, which whatever had it loses.

        Raises:
            FileNotFoundError: it is gone: somebody else removed it, or the whole directory.
        """
        if not HAVE_LOCKS:
            self._close()  # An open file cannot be renamed on Windows.
        self._directory.move(self._name, self._directory, name)
        self._finished = True

    def _close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _discard(self) -> None:
        if not HAVE_LOCKS:
            self._close()
        if not self._finished:
            with suppress(OSError):
                self._directory.remove(self._name)
        self._close()  # Which unlocks; so it comes last.


@contextmanager
def unfinished_file(directory: Directory, mode: int) -> Iterator[UnfinishedFile]:
    """A new file for the block; afterwards it has the name that it was given, or is gone.

    Args:
        directory: where.
        mode: permission bits that the umask has a say in.
    """
    number, file = _created(directory, mode)
    try:
        _remove_left_over_after(directory, number)
        yield file
    finally:
        file._discard()


def _created(directory: Directory, mode: int) -> tuple[int, UnfinishedFile]:
    for number in range(MAX_NUMBER):
        name = _name(number)
        try:
            fd = directory.create_file(name, mode)
        except FileExistsError:
            if not _removed_left_over(directory, name):
                continue
            try:
                fd = directory.create_file(name, mode)
            except FileExistsError:
                continue
        if _is_ours(fd):
            return number, UnfinishedFile(directory, name, fd)
        os.close(fd)
    name = _name(os.urandom(8).hex())
    return MAX_NUMBER, UnfinishedFile(directory, name, directory.create_file(name, mode))


def _name(number: int | str) -> str:
    return f"{_PREFIX}{number}"


def is_kept_name(name: str) -> bool:
    """Whether a name is kept for unfinished files: whatever has it may be removed by the next write."""
    return name.startswith(_PREFIX)


def _is_ours(fd: int) -> bool:
    """Locks a file that was just made. False if somebody took it for left over in the moment before that."""
    if not HAVE_LOCKS:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # A file system without locks: nobody else has one either.
    return os.fstat(fd).st_nlink > 0


def _remove_left_over_after(directory: Directory, number: int) -> None:
    gap = 0
    while gap < MAX_GAP and (number := number + 1) < MAX_NUMBER:
        try:
            directory.stat(_name(number))
        except OSError:
            gap += 1
        else:
            gap = 0
            _removed_left_over(directory, _name(number))


def _removed_left_over(directory: Directory, name: str) -> bool:
    """Removes a file that nobody writes any more; False if it is in use, or is somebody else's or something else."""
    if not HAVE_LOCKS:
        return False
    try:
        fd = directory.open_for_change(name)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held = os.fstat(fd)
        # With the lock in hand, only we may take the name off this file. Whether it has it still is the question.
        if not stat.S_ISREG(held.st_mode) or not os.path.samestat(directory.stat(name), held):
            return False
        directory.remove(name)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
