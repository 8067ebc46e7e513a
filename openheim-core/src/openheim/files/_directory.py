"""One directory, held open, and what can be done with the names in it. Nothing here follows a symbolic link."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

from openheim._reading import NO_WAIT, require_regular
from openheim.files._beneath import open_beneath

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ("HAVE_HANDLES", "Directory")

#: Whether a directory can be held open and its names be used relative to it. Without that (Windows), names are checked
#: and then used by path: whoever swaps a directory for a link in between can still get through.
HAVE_HANDLES = {os.open, os.stat, os.readlink, os.mkdir, os.rename, os.unlink} <= os.supports_dir_fd

_NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# O_PATH asks for no right to list the directory, only to pass through it.
_PASS: int = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
_LIST: int = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)


class Directory:
    """An open directory. ``path`` is where it was found; with handles it is for messages only."""

    __slots__ = ("_fd", "_lists", "path")

    def __init__(self, path: str, fd: int | None, *, lists: bool = False) -> None:
        self.path = path
        self._fd = fd
        self._lists = lists

    @classmethod
    def open(cls, path: str) -> Directory:
        """Opens a directory by its full path, whose last component must not be a link."""
        if HAVE_HANDLES:
            return cls(path, os.open(path, _PASS | _NO_FOLLOW))
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return cls(path, None)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def fileno(self) -> int | None:
        return self._fd

    def duplicate(self) -> Directory:
        return Directory(self.path, None if self._fd is None else os.dup(self._fd), lists=self._lists)

    def _at(self, name: str) -> str:
        return name if HAVE_HANDLES else os.path.join(self.path, name)

    def enter(self, name: str) -> Directory:
        """Opens the directory of that name.

        Raises:
            NotADirectoryError: it is something else, a link for instance (an ``ELOOP`` error on some systems).
        """
        path = os.path.join(self.path, name)
        if HAVE_HANDLES:
            return Directory(path, os.open(name, _PASS | _NO_FOLLOW, dir_fd=self._fd))
        if self.link_target(name) is not None:  # Junctions too, which lstat shows as directories.
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return Directory.open(path)

    def enter_to_list(self, name: str) -> Directory:
        """As :meth:`enter`, and the handle is good for :meth:`listing` too, which is then quicker."""
        if not HAVE_HANDLES:
            return self.enter(name)
        fd = os.open(name, _LIST | _NO_FOLLOW, dir_fd=self._fd)
        return Directory(f"{self.path}/{name}", fd, lists=True)

    def enter_all(self, names: Sequence[str]) -> Directory | None:
        """Opens a directory some levels below in one step; None if that does not work, because of a link for instance.

        Whoever gets None enters the directories one by one, and learns which of them is in the way.
        """
        if self._fd is None:
            return None
        below = "/".join(names)
        fd = open_beneath(self._fd, below, _PASS)
        return None if fd is None else Directory(f"{self.path}/{below}", fd)

    def link_target(self, name: str) -> str | None:
        """Where the symbolic link of that name points, or None if it is no link."""
        try:
            return os.readlink(self._at(name), dir_fd=self._fd)
        except OSError as err:
            if err.errno == errno.EINVAL:
                return None
            raise

    def stat(self, name: str) -> os.stat_result:
        return os.stat(self._at(name), dir_fd=self._fd, follow_symlinks=False)

    def open_file(self, name: str) -> int:
        """A descriptor of a regular file, for reading. Never waits, whatever the name is.

        Raises:
            OSError: it is no regular file, is missing, or may not be read.
        """
        # A device is not even opened: that alone may do something.
        require_regular(self.stat(name))
        fd = os.open(self._at(name), os.O_RDONLY | _NO_FOLLOW | NO_WAIT, dir_fd=self._fd)
        try:
            require_regular(os.fstat(fd))
        except OSError:
            os.close(fd)
            raise
        return fd

    def open_listed(self, name: str) -> tuple[int, int] | None:
        """As :meth:`open_file` for a name that a listing gave as a regular file, and with the length that it says.

        Returns:
            The descriptor and the length in bytes; None if there is no regular file of that name any more.
        """
        try:
            fd = os.open(self._at(name), os.O_RDONLY | _NO_FOLLOW | NO_WAIT, dir_fd=self._fd)
        except OSError as err:
            if err.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO):  # Gone, a link, a socket.
                return None
            raise
        found = os.fstat(fd)
        if stat.S_ISREG(found.st_mode):
            return fd, found.st_size
        os.close(fd)
        return None

    def create_file(self, name: str, mode: int) -> int:
        """A descriptor of a new file, for writing; the name must be free."""
        return os.open(self._at(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW, mode, dir_fd=self._fd)

    def open_for_change(self, name: str) -> int:
        """A descriptor, for writing, of whatever is there, which is neither emptied nor waited for."""
        return os.open(self._at(name), os.O_WRONLY | _NO_FOLLOW | NO_WAIT, dir_fd=self._fd)

    def may_write(self, name: str) -> bool:
        return os.access(self._at(name), os.W_OK, dir_fd=self._fd)

    def make(self, name: str) -> None:
        """Makes a directory; one that is there already will do."""
        try:
            os.mkdir(self._at(name), dir_fd=self._fd)
        except FileExistsError:
            if not stat.S_ISDIR(self.stat(name).st_mode):
                raise

    def move(self, name: str, into: Directory, as_name: str) -> None:
        """Renames; whatever had the new name is gone then."""
        os.replace(self._at(name), into._at(as_name), src_dir_fd=self._fd, dst_dir_fd=into._fd)

    def remove(self, name: str) -> None:
        """Removes a file or a link (not what it points to)."""
        os.unlink(self._at(name), dir_fd=self._fd)

    def remove_tree(self, name: str) -> None:
        """Removes a directory with all that is in it, following no link."""
        import shutil

        shutil.rmtree(self._at(name), dir_fd=self._fd)

    @contextmanager
    def listing(self) -> Iterator[Iterator[os.DirEntry[str]]]:
        """The entries, in no particular order. They can be asked for their kind within the block only."""
        if not HAVE_HANDLES:
            with os.scandir(self.path) as entries:
                yield entries
            return
        if self._lists and self._fd is not None:
            with os.scandir(self._fd) as entries:
                yield entries
            return
        fd = os.open(".", _LIST | _NO_FOLLOW, dir_fd=self._fd)
        try:
            with os.scandir(fd) as entries:
                yield entries
        finally:
            os.close(fd)

    def open_for_lock(self) -> int | None:
        """A descriptor that an advisory lock can be put on; None if this directory gives none."""
        if not HAVE_HANDLES:
            return None
        try:
            return os.open(".", _LIST | _NO_FOLLOW, dir_fd=self._fd)
        except PermissionError:
            return None
