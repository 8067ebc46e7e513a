"""A session's log, ``{uuid}.jsonl``: one JSON object a line, append only.

A line is a message, or a record (an object with the key ``record``) that says something else about the session.
Readers skip what they do not know, and nothing is ever rewritten. What an ``append`` returned from is in the kernel's
hands and survives the death of this process; :meth:`SessionLog.prepare_sync` makes it survive the machine's.

Whoever appends messages holds the session's lease. Records such as a title may be added beside a writer, see
:meth:`SessionLog.append_beside`. So a log keeps count of what it read and wrote itself, and can tell what others added.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from openheim._reading import NO_WAIT, require_regular
from openheim.errors import SessionNotFoundError, StorageError
from openheim.jsontext import dump_bytes, is_deep
from openheim.messages import message_from_stored, message_to_stored
from openheim.store.lines import LogLines, is_whole
from openheim.store.locking import exclusive
from openheim.store.writing import datasync, sync_folder

if TYPE_CHECKING:
    from collections import OrderedDict
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from openheim.messages import Message

__all__ = ("KEPT_DESCRIPTORS", "LogPosition", "SessionLog", "entries")

#: Logs whose descriptor is kept open; the least recently written one is closed beyond that.
KEPT_DESCRIPTORS = 128

_FLAGS = os.O_RDWR | os.O_APPEND | NO_WAIT | getattr(os, "O_BINARY", 0)

#: Bytes looked at in one step when the start of the last line is searched.
_STEP = 64 * 1024


class LogPosition(NamedTuple):
    """How far a log was read: bytes, and the file that they were in. Without arguments: there was no log."""

    end: int = 0
    device: int = 0
    inode: int = 0


class SessionLog:
    """The log of one session, open for appending while it is in use.

    Args:
        opened: the logs of the store that have a descriptor, the least recently used first.
        position: what the caller has read; all that is there when the log is first used, if None.
    """

    def __init__(self, path: Path, opened: OrderedDict[int, SessionLog], position: LogPosition | None = None) -> None:
        self.path = path
        self._opened = opened
        self._descriptor: int | None = None
        #: Whether the file is known to end with a line of ours.
        self._clean = False
        #: Bytes that were read or written here, without the ranges below.
        self._known = position.end if position is not None else None
        self._file = (position.device, position.inode) if position is not None and position.inode else None
        #: What others wrote between our lines: from, to.
        self._between: list[tuple[int, int]] = []
        #: What a write that failed was to write; some or all of it may be in the file.
        self._failed: bytes | None = None
        self._unsynced = False
        self._is_new = False

    def append(self, message: Message) -> None:
        """Adds a message.

        Raises:
            StorageError: it could not be written. Whatever part of it got into the file is cut off by the next append,
                or skipped by readers if there is none.
        """
        self._write(dump_bytes(message_to_stored(message)))

    def append_record(self, record: Mapping[str, Any]) -> None:
        """Adds a record: an object with the key ``record``. Raises as :meth:`append` does."""
        self._write(dump_bytes(record))

    def append_beside(self, record: Mapping[str, Any]) -> None:
        """Adds a record while another process may hold the session's lease; nothing of that process's is touched.

        Raises as :meth:`append` does, and :class:`SessionNotFoundError` if there is no such log. The record is on the
        disk.
        """
        data = dump_bytes(record) + b"\n"
        try:
            descriptor = self._open_file(_FLAGS)
            try:
                # The lock keeps the writer from cutting off a torn tail that has just become the line before ours.
                with exclusive(descriptor):
                    size = os.fstat(descriptor).st_size
                    if size and _read_at(descriptor, size - 1, size) != b"\n":
                        data = b"\n" + data
                    _write_all(descriptor, data)
                datasync(descriptor)
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            raise self._deleted() from None
        except OSError as err:
            raise self._failure("write", err) from err

    # --- what others wrote ---

    def foreign_bytes(self) -> int:
        """Bytes in the file that were neither read nor written here; the parts of a failed write count too.

        Raises:
            SessionNotFoundError: the file is gone: the session was deleted.
            StorageError: it is no longer the file that was read, or what was read is no longer in it.
        """
        try:
            stat = os.stat(self.path)
        except FileNotFoundError:
            if not self._known:
                return 0
            self.close()
            raise self._deleted() from None
        except OSError as err:
            raise self._failure("read", err) from err
        known = self._known_of(stat)
        if (self._file or (stat.st_dev, stat.st_ino)) != (stat.st_dev, stat.st_ino) or stat.st_size < known:
            self.close()
            raise StorageError(
                f"{self.path} was replaced or shortened by another program", hint="load the session again"
            )
        return stat.st_size - known + sum(end - start for start, end in self._between)

    def read_new(self) -> list[Message | dict[str, Any]]:
        """Messages and records that others added since, in order; to be called under the lease.

        What cannot be read is left out, and from now on everything that was there counts as known.

        Raises as :meth:`foreign_bytes` does.
        """
        if not self.foreign_bytes():
            return []
        found: list[Message | dict[str, Any]] = []
        try:
            descriptor = self._open()
            self._cut_failed(descriptor)
            start = self._known or 0
            size = os.fstat(descriptor).st_size
            for first, end in self._between:
                found += entries(LogLines(_read_at(descriptor, first, end)), id_prefix=f"at-{first}-")
            last = LogLines(_read_at(descriptor, start, size))
            found += entries(last, id_prefix=f"at-{start}-")
        except OSError as err:
            raise self._failure("read", err) from err
        self._between.clear()
        self._known = start + last.end
        self._clean = False
        return found

    # --- writing ---

    def _write(self, line: bytes) -> None:
        try:
            descriptor = self._open()
            data = line + b"\n"
            if not self._clean:
                data = self._mend(descriptor) + data
            self._clean = False
            self._failed = data
            _write_all(descriptor, data)
            self._failed = None
            self._clean = True
            self._unsynced = True
            end = os.lseek(descriptor, 0, os.SEEK_CUR)
        except OSError as err:
            raise self._failure("write", err) from err
        start = end - len(data)
        if self._known is not None and start > self._known:
            self._between.append((self._known, start))
        self._known = end

    def _open(self) -> int:
        key = id(self)
        if self._descriptor is not None:
            self._opened.move_to_end(key)
            return self._descriptor
        # One that was there and is gone was deleted, and stays so.
        descriptor = self._descriptor = self._open_file(_FLAGS | os.O_CREAT if self._file is None else _FLAGS)
        self._opened[key] = self
        while len(self._opened) > KEPT_DESCRIPTORS:
            self._opened.popitem(last=False)[1].close()
        self._clean = False
        stat = os.fstat(descriptor)
        self._is_new = self._is_new or not stat.st_size
        self._known_of(stat)
        if self._file is None:
            self._file = (stat.st_dev, stat.st_ino)
        return descriptor

    def _open_file(self, flags: int) -> int:
        descriptor = os.open(self.path, flags, 0o600)
        try:
            # A pipe or a device takes lines and keeps none.
            require_regular(os.fstat(descriptor))
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def _known_of(self, stat: os.stat_result) -> int:
        if self._known is None:
            self._known = stat.st_size
        return self._known

    def _mend(self, descriptor: int) -> bytes:
        """Cuts off a torn last line. Returns what has to be written before the next line: a line end or nothing."""
        self._cut_failed(descriptor)
        size = os.fstat(descriptor).st_size
        if not size or _read_at(descriptor, size - 1, size) == b"\n":
            return b""
        with exclusive(descriptor):
            size = os.fstat(descriptor).st_size
            start, tail = _last_line(descriptor, size)
            if is_whole(tail):
                return b"\n" if tail else b""
            # Nobody was ever told that this was stored.
            os.ftruncate(descriptor, start)
        self._known = min(self._known_of(os.fstat(descriptor)), start)
        return b""

    def _cut_failed(self, descriptor: int) -> None:
        """Takes back what a failed write left, all of it if need be: it was reported as not written."""
        failed = self._failed
        if failed is None:
            return
        with exclusive(descriptor):
            size = os.fstat(descriptor).st_size
            start = self._known or 0
            if start < size <= start + len(failed) and failed.startswith(_read_at(descriptor, start, size)):
                os.ftruncate(descriptor, start)
        self._failed = None

    # --- durability ---

    def prepare_sync(self) -> Callable[[], None]:
        """A function that waits until what was appended so far is on the disk; to be called in another thread.

        It has a descriptor of its own, so that closing this log meanwhile does no harm. It raises
        :class:`~openheim.errors.StorageError` if the disk refuses.
        """
        if not self._unsynced:
            return lambda: None
        try:
            descriptor = (
                os.dup(self._descriptor) if self._descriptor is not None else os.open(self.path, os.O_RDWR | NO_WAIT)
            )
        except OSError as err:
            failure = self._failure("sync", err)

            def fail() -> None:
                raise failure from None

            return fail
        is_new, self._is_new, self._unsynced = self._is_new, False, False

        def sync() -> None:
            try:
                datasync(descriptor)
                # Not every file system counts names, so that the name itself is looked for too.
                if not os.fstat(descriptor).st_nlink and not self.path.exists():
                    raise FileNotFoundError(errno.ENOENT, "it was removed while it was in use")
            except OSError as err:
                self._unsynced, self._is_new = True, is_new
                raise self._failure("sync", err) from err
            finally:
                os.close(descriptor)
            if is_new:
                # The name of a new file is content of its folder.
                sync_folder(self.path.parent)

        return sync

    def close(self) -> None:
        """Lets go of the descriptor; the next append opens it again."""
        self._opened.pop(id(self), None)
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _deleted(self) -> SessionNotFoundError:
        name = self.path.stem
        return SessionNotFoundError(
            f"the session {name} was deleted meanwhile", session_id=name, hint="start a new session"
        )

    def _failure(self, verb: str, err: OSError) -> StorageError:
        return StorageError(f"cannot {verb} {self.path}: {err.strerror}", hint="check free space and permissions")


def entries(lines: LogLines, *, id_prefix: str = "line-") -> list[Message | dict[str, Any]]:
    """Messages and records in order; an object that is neither is skipped with a warning.

    A message without an id (older programs wrote none) is named after its line, as ids have to differ.
    """
    found: list[Message | dict[str, Any]] = []
    for number, raw in lines:
        if "record" in raw:
            if is_deep(raw):
                lines.skip(number)
            else:
                found.append(raw)
            continue
        if not raw.get("id"):
            raw["id"] = f"{id_prefix}{number}"
        try:
            found.append(message_from_stored(raw))
        except ValueError:
            lines.skip(number)
    return found


def _write_all(descriptor: int, data: bytes) -> None:
    written = os.write(descriptor, data)
    while written < len(data):
        # A short write happens on a full disk; the next one then says why.
        data = data[written:]
        written = os.write(descriptor, data)


def _read_at(descriptor: int, start: int, end: int) -> bytes:
    os.lseek(descriptor, start, os.SEEK_SET)
    parts = []
    while start < end:
        part = os.read(descriptor, end - start)
        if not part:
            break
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def _last_line(descriptor: int, size: int) -> tuple[int, bytes]:
    """Where what follows the last line end begins, and what it is."""
    start, pieces = size, []
    while start:
        first = max(0, start - _STEP)
        piece = _read_at(descriptor, first, start)
        found = piece.rfind(b"\n")
        pieces.append(piece[found + 1 :])
        if found >= 0:
            return first + found + 1, b"".join(reversed(pieces))
        start = first
    return 0, b"".join(reversed(pieces))
