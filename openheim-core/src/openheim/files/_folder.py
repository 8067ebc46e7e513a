"""A directory of the boundary that is held open while the tree below it is walked."""

from __future__ import annotations

import errno
import io
import itertools
import os
import stat
from typing import TYPE_CHECKING, Literal, TypeAlias

from openheim.files._failures import failures_of

if TYPE_CHECKING:
    from types import TracebackType

    from openheim.files._directory import Directory

__all__ = ("FileKind", "Folder", "kind_of")

FileKind: TypeAlias = Literal["file", "directory", "link", "other"]


class Folder:
    """An open directory. No method follows a link, so all that it leads to is inside the boundary.

    It is a context manager; leaving the block closes it. Like :class:`~openheim.files.Files`, it is for worker threads.

    Attributes:
        path: canonical, as in :class:`~openheim.files.FileInfo`, when it was opened.

    Raises:
        ToolError: by each method: the system refuses.
    """

    __slots__ = ("_directory", "path")

    def __init__(self, directory: Directory, path: str) -> None:
        self._directory = directory
        self.path = path

    def __enter__(self) -> Folder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Once more does no harm."""
        self._directory.close()

    def fileno(self) -> int | None:
        """Its descriptor, for use with ``dir_fd`` as long as it is open; None where the system has no such handles.

        Whoever uses it opens with ``O_NOFOLLOW``, and single names only: nothing here checks that.
        """
        return self._directory.fileno()

    def duplicate(self) -> Folder:
        """The same directory once more, which stays open when this one is closed."""
        with failures_of(self.path):
            return Folder(self._directory.duplicate(), self.path)

    def names(self, *, limit: int) -> list[tuple[str, FileKind]]:
        """What is in the directory, in no particular order; at most ``limit`` names."""
        try:
            with self._directory.listing() as entries:
                return [
                    # Mostly the listing knows, without asking the system again.
                    (entry.name, "file" if entry.is_file(follow_symlinks=False) else _kind_of_other(entry))
                    for entry in itertools.islice(entries, limit)
                ]
        except OSError as err:
            with failures_of(self.path):
                raise err

    def has(self, name: str) -> bool:
        """Whether there is something of that name, be it a broken link."""
        if not _is_name(name):
            return False
        try:
            self._directory.stat(name)
        except OSError:
            return False
        return True

    def folder(self, below: str) -> Folder | None:
        """A directory further down; None if there is none any more, or a link is on the way.

        Args:
            below: one or more names with ``/`` between them.
        """
        names = below.split("/")
        if not all(map(_is_name, names)):
            return None
        directory = self._directory
        try:
            if len(names) == 1:
                inner = directory.enter_to_list(below)
            else:
                inner = directory.enter_all(names) or self._enter_each(names)
        except OSError as err:
            if err.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                return None
            with failures_of(f"{self.path}/{below}"):
                raise err
        return Folder(inner, below if self.path == "." else f"{self.path}/{below}")

    def _enter_each(self, names: list[str]) -> Directory:
        here = self._directory
        for name in names:
            try:
                inner = here.enter(name)
            finally:
                if here is not self._directory:
                    here.close()
            here = inner
        return here

    def open_file(self, name: str, *, size: int) -> tuple[bytes, io.FileIO | None] | None:
        """The beginning of a file that :meth:`names` gave.

        Args:
            name: the file's.
            size: most bytes to read at once.

        Returns:
            The first bytes; and the file, open behind them for whoever gets it to close, or None if they are all there
            is. None instead of both if there is no regular file of that name any more.
        """
        if not _is_name(name):
            return None
        try:
            opened = self._directory.open_listed(name)
            if opened is None:
                return None
            fd, length = opened
            try:
                # As much room as is needed: a large piece that has to be given back costs more than the reading.
                data = os.read(fd, min(size, length + 1))
                if length < len(data) < size:  # It grew, or is one that does not tell its length.
                    data += os.read(fd, size - len(data))
                if len(data) == length:
                    os.close(fd)
                    return data, None
                return data, io.FileIO(fd)
            except BaseException:
                os.close(fd)
                raise
        except OSError as err:
            with failures_of(name):
                raise err


def _is_name(text: str) -> bool:
    """Whether it is a single component, and one that does not lead up."""
    return os.sep not in text and text not in ("", ".", "..") and "\0" not in text


def kind_of(mode: int) -> FileKind:
    """What ``st_mode`` says."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def _kind_of_other(entry: os.DirEntry[str]) -> FileKind:
    if entry.is_dir(follow_symlinks=False):
        return "directory"
    return "link" if entry.is_symlink() else "other"
