"""The file operations that tools and surfaces are given."""

from __future__ import annotations

import heapq
import itertools
import os
import random
import stat
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from openheim.errors import ToolError
from openheim.files._boundary import Boundary, Place
from openheim.files._failures import failures_of
from openheim.files._folder import FileKind, Folder, kind_of
from openheim.files._replacing import FileChangedError, FileVersion, one_writer, replace_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from openheim.files._directory import Directory

__all__ = ("Entry", "FileInfo", "Files", "Listing")

T = TypeVar("T")

#: How often a change is begun again because somebody else changed the file meanwhile.
MAX_TRIES = 40
#: Seconds between two of them at most; between the first it is less.
MAX_PAUSE_SECS = 0.1
#: Names of a directory that are read at most, in some seconds.
MAX_NAMES = 1_000_000
#: How many of them are read between two calls of what may end that.
NAMES_A_CHECK = 1000


@dataclass(slots=True, frozen=True)
class FileInfo:
    """What a path leads to. ``path`` is canonical, ``size`` in bytes, ``modified`` in seconds since the epoch."""

    path: str
    kind: FileKind
    size: int
    modified: float


@dataclass(slots=True, frozen=True)
class Entry:
    """A name in a directory. ``link`` is the text of a symbolic link, which is not followed."""

    name: str
    kind: FileKind
    size: int
    modified: float
    link: str | None = None

    @property
    def is_dir(self) -> bool:
        return self.kind == "directory"


@dataclass(slots=True, frozen=True)
class Listing:
    """Names of a directory in order, and how many there are in all.

    ``whole`` is False if there are more than those ``total``, which nobody looked at.
    """

    entries: tuple[Entry, ...]
    total: int
    whole: bool = True


class Files:
    """Files below one directory. No path, link or race leads out of it.

    A path is relative to :attr:`cwd`, or absolute. It is normalised by its text first (``link/../x`` is ``x``);
    symbolic links are followed as long as they lead to something inside. A canonical path is relative to :attr:`root`,
    has ``/`` between its components and no links in it; ``.`` is the root.

    All methods are for worker threads: they block while the disk works, and any number of threads may call them.

    Args:
        root: the boundary: an existing directory, possibly given by way of links.
        cwd: where relative paths start; counts only if it is a directory inside ``root``.

    Raises:
        ToolError: by each method that takes a path: the path leads outside, is missing where it must not be, or the
            system refuses. By the constructor: ``root`` is no directory.
    """

    def __init__(self, root: Path, cwd: Path | None = None) -> None:
        self._boundary = Boundary(root, cwd)

    @property
    def root(self) -> Path:
        """The boundary, without links."""
        return self._boundary.root

    @property
    def cwd(self) -> Path:
        """Where relative paths start, without links; inside the boundary."""
        return self._boundary.cwd

    def resolve(self, path: str) -> str:
        """The canonical form of a path. It need not exist; then the part that does is what links are followed in."""
        with failures_of(path):
            return _text(self._boundary.resolve(path))

    def info(self, path: str) -> FileInfo | None:
        """What the path leads to, or None if there is nothing."""
        with failures_of(path):
            try:
                with self._boundary.place(path) as place:
                    found = place.directory.stat(place.name)
                    return FileInfo(_text(place.parts), kind_of(found.st_mode), found.st_size, found.st_mtime)
            except FileNotFoundError:
                return None

    def open_read(self, path: str) -> BinaryIO:
        """The file, open for reading. A pipe, socket or device is refused without waiting for it."""
        with failures_of(path), self._boundary.place(path) as place:
            return open(place.directory.open_file(place.name), "rb")

    @contextmanager
    def folder(self, path: str) -> Iterator[Folder]:
        """A directory, held open for the block, to walk the tree below it."""
        with failures_of(path), self._boundary.place(path) as place:
            try:
                directory = place.directory.enter(place.name)
            except NotADirectoryError as err:
                raise ToolError(f"{path!r} is not a directory") from err
        with Folder(directory, _text(place.parts)) as folder:
            yield folder

    def read_bytes(self, path: str, *, limit: int) -> tuple[bytes, FileVersion]:
        """The whole content, and the version to hand to :meth:`replace`.

        Args:
            path: the file.
            limit: most bytes; a longer file is refused with its size.
        """
        with failures_of(path), self.open_read(path) as file:
            status = os.fstat(file.fileno())
            if status.st_size > limit:
                raise ToolError(f"{path!r} has {status.st_size} bytes, and at most {limit} are possible here")
            # The version is from before reading, so a change while we read shows when we write.
            data = file.read(limit + 1)
        if len(data) > limit:
            raise ToolError(f"{path!r} has more than {limit} bytes, which is the most possible here")
        return data, FileVersion.of(status)

    def list(self, path: str, *, limit: int, offset: int = 0, check: Callable[[], None] | None = None) -> Listing:
        """The names in a directory, sorted by code point. Of a directory of more than :data:`MAX_NAMES`, some of them.

        Args:
            path: the directory.
            limit: most entries to return; the system is asked about these alone.
            offset: how many to leave out before them. Memory is in proportion to both together.
            check: called now and then; what it raises ends the call.
        """
        with failures_of(path), self._boundary.place(path) as place:
            try:
                directory = place.directory.enter(place.name)
            except NotADirectoryError as err:
                raise ToolError(f"{path!r} is not a directory") from err
            try:
                with directory.listing() as found:
                    counter = itertools.count()
                    read = itertools.islice(found, MAX_NAMES)
                    # The counter stands second, so that it is not asked when there is nothing more.
                    counted = zip(read if check is None else _checked(read, check), counter, strict=False)
                    # Memory is for the names up to the last that is returned, however long the directory is.
                    # (One at least, for nothing is counted for none.)
                    last = offset + limit
                    names = heapq.nsmallest(max(1, last), (entry.name for entry, _ in counted))[offset:last]
                    whole = next(found, None) is None
                entries = [entry for name in names if (entry := _entry(directory, name)) is not None]
                return Listing(tuple(entries), next(counter), whole)
            finally:
                directory.close()

    def replace(self, path: str, data: bytes, *, expected: FileVersion | None = None) -> bool:
        """Makes ``data`` the whole content of a file, at one stroke. Missing directories are made.

        A link inside the boundary is followed to its target; a file with several links gets a new inode, so that its
        other names keep the old content. Permission bits stay.

        Args:
            path: the file; it may be missing.
            data: the new content.
            expected: the version that the file must still have.

        Returns:
            Whether there was a file before.

        Raises:
            FileChangedError: the file is not ``expected`` any more; nothing was written.
        """
        with failures_of(path), one_writer(self._key(path)):
            if path.endswith(("/", os.sep)):
                raise ToolError(f"{path!r} names a directory, not a file")
            with self._boundary.place(path, make_parents=True) as place:
                return replace_file(place, data, expected)

    def update(self, path: str, change: Callable[[bytes], bytes], *, limit: int) -> tuple[bytes, bytes]:
        """Reads a file, has it changed and writes it, without losing what others write meanwhile.

        Calls in this process take turns; when another process changed the file in between, ``change`` is called again
        with the new content.

        Args:
            path: an existing file.
            change: makes the new content from the old; what it raises ends the call, and the file stays as it was.
            limit: as in :meth:`read_bytes`.

        Returns:
            The content before and after.
        """
        with failures_of(path), one_writer(self._key(path)):
            for tried in range(MAX_TRIES):
                old, version = self.read_bytes(path, limit=limit)
                new = change(old)
                try:
                    self.replace(path, new, expected=version)
                except FileChangedError:
                    # Of writers that are equally quick, one would lose again and again.
                    time.sleep(random.uniform(0, min(MAX_PAUSE_SECS, 0.001 * 2 ** min(tried, 10))))  # no secret
                    continue
                return old, new
        raise FileChangedError(f"{path!r} is being changed all the time by something else; try again later")

    def make_dir(self, path: str) -> None:
        """Makes a directory and its parents; one that is there already will do."""
        with failures_of(path), self._boundary.place(path, make_parents=True) as place:
            if place.parts:
                place.directory.make(place.name)

    def delete(self, path: str) -> None:
        """Removes a file, a link (not what it points to) or a directory with all that is in it.

        Raises:
            ToolError: also for the work directory itself, in whatever spelling.
        """
        with failures_of(path), self._boundary.place(path, follow_last=False) as place:
            self._require_below_root(place, path)
            if stat.S_ISDIR(place.directory.stat(place.name).st_mode):
                place.directory.remove_tree(place.name)
            else:
                place.directory.remove(place.name)

    def rename(self, source: str, target: str) -> None:
        """Gives a file, link or directory another name. A name that is taken is refused.

        Raises:
            ToolError: also for the work directory itself, in whatever spelling.
        """
        with failures_of(source), self._boundary.place(source, follow_last=False) as old:
            self._require_below_root(old, source)
            found = old.directory.stat(old.name)
            with failures_of(target), self._boundary.place(target, follow_last=False, make_parents=True) as new:
                self._require_below_root(new, target)
                try:
                    # On a file system that ignores case, both may be one file.
                    taken = not os.path.samestat(new.directory.stat(new.name), found)
                except FileNotFoundError:
                    taken = False
                if taken:
                    raise ToolError(f"{target!r} exists already")
                old.directory.move(old.name, new.directory, new.name)

    def _key(self, path: str) -> str:
        return os.path.join(self.root, *self._boundary.resolve(path))

    def _require_below_root(self, place: Place, path: str) -> None:
        if not place.parts:
            raise ToolError(f"{path!r} is the work directory itself")


def _text(parts: tuple[str, ...]) -> str:
    return "/".join(parts) or "."


def _checked(entries: Iterator[T], check: Callable[[], None]) -> Iterator[T]:
    for number, entry in enumerate(entries):
        if number % NAMES_A_CHECK == 0:
            check()
        yield entry


def _entry(directory: Directory, name: str) -> Entry | None:
    try:
        found = directory.stat(name)
        link = directory.link_target(name) if stat.S_ISLNK(found.st_mode) else None
    except FileNotFoundError:
        return None  # Removed since it was listed.
    return Entry(name, kind_of(found.st_mode), found.st_size, found.st_mtime, link)
