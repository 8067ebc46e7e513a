"""Putting new content in the place of a file at one stroke, and noticing who else did so in between."""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from openheim.errors import ToolError
from openheim.files._unfinished import is_kept_name, unfinished_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openheim.files._boundary import Place
    from openheim.files._directory import Directory

__all__ = ("FileChangedError", "FileVersion", "one_writer", "replace_file")

#: How long another process may hold a directory's lock. It is held for two system calls at a time.
LOCK_SECS = 5.0

#: This attribute vouches for a program's content, as the set-user bit does.
_CAPABILITIES = "security.capability"
_ACCESS_LIST = "system.posix_acl_access"

#: What file systems say that keep nothing on a disk.
_NO_FLUSH = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EROFS)


class FileChangedError(ToolError):
    """The file is not the one that was read: somebody changed, replaced or removed it since."""


@dataclass(slots=True, frozen=True)
class FileVersion:
    """Tells one content of a file from another without reading it. Times are nanoseconds since the epoch."""

    device: int
    inode: int
    size: int
    modified: int
    changed: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileVersion:
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


# A lock lives as long as somebody holds or awaits it, so the table is never longer than the list of running calls.
_writers: WeakValueDictionary[str, threading.RLock] = WeakValueDictionary()
_writers_guard = threading.Lock()


@contextmanager
def one_writer(canonical_path: str) -> Iterator[None]:
    """Lets one thread of this process at a time change a file; the same thread may enter again."""
    with _writers_guard:
        lock = _writers.get(canonical_path)
        if lock is None:
            lock = _writers[canonical_path] = threading.RLock()
    with lock:
        yield


def replace_file(place: Place, data: bytes, expected: FileVersion | None) -> bool:
    """Makes ``data`` the content of the file at a place, wholly or not at all.

    The content goes to a new file beside it, which then takes the name: readers see the old content or the new, and
    other names of a file with several links keep the old. The file keeps its permission bits and, where that is
    allowed, its owner, its group and extended attributes. Where its group cannot be kept, the new one and all others
    may do what both could before.

    Args:
        place: where; the file may be missing.
        expected: what the file must still be.

    Returns:
        Whether there was a file before.

    Raises:
        FileChangedError: the file is not ``expected``.
        OSError: it cannot be written, or is no regular file. The old content is there as before.
    """
    directory = place.directory
    if is_kept_name(place.name):
        raise OSError(errno.EINVAL, "such a name is for files that are being written; choose another")
    old = _regular_or_none(place)
    if old is not None and not directory.may_write(place.name):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    # A new file gets what the umask leaves; the content of an old one is for nobody else's eyes until its bits are set.
    with unfinished_file(directory, 0o666 if old is None else 0o600) as file:
        _write_all(file.fd, data)
        if old is not None:
            group_kept = _take_after(file.fd, old)
            _take_attributes(file.fd, place, group_kept=group_kept)
        _flush(file.fd)
        with _directory_lock(directory):
            if expected is not None:
                now = _regular_or_none(place)
                if now is None or FileVersion.of(now) != expected:
                    raise FileChangedError("the file changed since it was read; read it again")
            try:
                file.finish(place.name)
            except FileNotFoundError as err:
                raise FileChangedError("the new content was removed before it took its name; try again") from err
    return old is not None


def _regular_or_none(place: Place) -> os.stat_result | None:
    try:
        found = place.directory.stat(place.name)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if stat.S_ISLNK(found.st_mode):  # Links were followed on the way here: this one is new.
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is a pipe, socket or device, not a file")
    return found


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _flush(fd: int) -> None:
    """Has the content on the disk before it takes the name.

    Else a machine that loses its power soon after may come up with the name on an empty file, with neither the old
    content nor the new: file systems are free to write names first, and some wait half a minute with content. It takes
    0.3 to 1 ms on a virtual disk, in a worker thread, beside a call to a model that takes a thousand times that; and a
    full network file system says so here, while the old content is still there. That the name itself gets to the disk
    is not waited for: both contents are whole.
    """
    try:
        os.fsync(fd)
    except OSError as err:
        if err.errno not in _NO_FLUSH:
            raise


def _take_after(fd: int, old: os.stat_result) -> bool:
    """Owner, group and permission bits of the old file, as far as the system allows.

    Returns:
        Whether the group is the old one.
    """
    new = os.fstat(fd)
    # Each by itself: whoever is not root may give a file to a group of their own, and to no other owner.
    if new.st_gid != old.st_gid:
        _chown(fd, -1, old.st_gid)
    group_kept = os.fstat(fd).st_gid == old.st_gid
    if hasattr(os, "fchmod"):
        # Without the set-user and set-group bits: they vouched for the old content.
        bits = stat.S_IMODE(old.st_mode) & 0o777
        if not group_kept:
            # Another group now, whose members were among all others before; and the old group is among them now.
            common = bits >> 3 & bits & 0o7
            bits = bits & 0o700 | common << 3 | common
        os.fchmod(fd, bits)
    if new.st_uid != old.st_uid:
        _chown(fd, old.st_uid, -1)
    return group_kept


def _chown(fd: int, owner: int, group: int) -> None:
    # Also refused where an id has no meaning: in a container that maps few of them.
    if hasattr(os, "fchown"):
        with suppress(OSError):
            os.fchown(fd, owner, group)


def _take_attributes(fd: int, place: Place, *, group_kept: bool) -> None:
    """Extended attributes, access control lists among them, as far as the system lets us see and set them."""
    if not hasattr(os, "listxattr"):
        return
    try:
        old = place.directory.open_file(place.name)
    except OSError:
        return
    try:
        for name in os.listxattr(old):
            # A list says what the group may do, as the permission bits do.
            if name != _CAPABILITIES and (group_kept or name != _ACCESS_LIST):
                with suppress(OSError):
                    os.setxattr(fd, name, os.getxattr(old, name))
    except OSError:
        return  # A file system without any.
    finally:
        os.close(old)


@contextmanager
def _directory_lock(directory: Directory) -> Iterator[None]:
    """Keeps other processes that use this lock from replacing files of the directory between our look and our move."""
    fd = directory.open_for_lock()
    if fd is None:
        yield
        return
    try:
        _lock(fd)
        yield
    finally:
        os.close(fd)  # Which unlocks.


def _lock(fd: int) -> None:
    import fcntl

    end = time.monotonic() + LOCK_SECS
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise ToolError(
                    "another program keeps the directory of this file locked", hint="try again later"
                ) from None
            time.sleep(0.005)
        except OSError:
            return  # A file system without locks: the check alone must do.
        else:
            return
