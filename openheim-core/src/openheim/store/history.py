"""A session's messages: ``{uuid}.jsonl``, one JSON object a line, append only.

A line is a message, or a record (an object with the key ``record``) that says something else about the session. Readers
skip what they do not know, and nothing is ever rewritten. What an ``append`` returned from is in the kernel's hands and
survives the death of this process; :meth:`SessionLog.prepare_sync` makes it survive the machine's.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openheim.errors import SessionNotFoundError, StorageError
from openheim.jsontext import dump_bytes, parse
from openheim.messages import Message, message_from_stored, message_to_stored
from openheim.store.meta import SessionMeta, meta_text, read_meta, write_meta

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

__all__ = ("HistoryStore", "SessionLog", "StoredSession")

# Not every system has fdatasync; fsync does the same and more.
_datasync = getattr(os, "fdatasync", os.fsync)

_SESSION_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

#: Logs whose descriptor is kept open; the least recently written one is closed beyond that.
KEPT_DESCRIPTORS = 128


@dataclass(slots=True)
class StoredSession:
    """A session as it was read. ``warnings`` says what had to be skipped, one line each."""

    meta: SessionMeta
    messages: list[Message]
    records: list[dict[str, Any]]
    warnings: list[str]


class SessionLog:
    """The log of one session, open for appending while it is in use."""

    def __init__(self, path: Path, opened: OrderedDict[int, SessionLog]) -> None:
        self.path = path
        self._opened = opened
        self._descriptor: int | None = None
        self._torn = True

    def append(self, message: Message) -> None:
        """Adds a message.

        Raises:
            StorageError: it could not be written; the log is as it was, up to a torn tail that readers skip.
        """
        self._write(dump_bytes(message_to_stored(message)))

    def append_record(self, record: Mapping[str, Any]) -> None:
        """Adds a record: an object with the key ``record``. Raises as :meth:`append` does."""
        self._write(dump_bytes(record))

    def _write(self, line: bytes) -> None:
        try:
            descriptor = self._open()
            data = line + b"\n"
            if self._torn:
                data = self._line_break(descriptor) + data
            while data:
                # Short writes happen on a full disk; the next one then says why.
                self._torn = True
                written = os.write(descriptor, data)
                data = data[written:]
            self._torn = False
        except OSError as err:
            raise StorageError(
                f"cannot write {self.path}: {err.strerror}", hint="check free space and permissions"
            ) from err

    def _open(self) -> int:
        key = id(self)
        if self._descriptor is None:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._torn = True
            self._opened[key] = self
            while len(self._opened) > KEPT_DESCRIPTORS:
                self._opened.popitem(last=False)[1].close()
        else:
            self._opened.move_to_end(key)
        return self._descriptor

    @staticmethod
    def _line_break(descriptor: int) -> bytes:
        # A process that died while appending may have left half a line; the next line must not become part of it.
        size = os.fstat(descriptor).st_size
        return b"\n" if size and os.pread(descriptor, 1, size - 1) != b"\n" else b""

    def prepare_sync(self) -> Callable[[], None]:
        """A function that waits until what was appended so far is on the disk; to be called in another thread.

        It has a descriptor of its own, so that closing this log meanwhile does no harm. It raises
        :class:`~openheim.errors.StorageError` if the disk refuses.
        """
        if self._descriptor is None:
            return lambda: None
        descriptor = os.dup(self._descriptor)

        def sync() -> None:
            try:
                _datasync(descriptor)
            except OSError as err:
                raise StorageError(f"cannot sync {self.path}: {err.strerror}", hint="check the disk") from err
            finally:
                os.close(descriptor)

        return sync

    def close(self) -> None:
        """Lets go of the descriptor; the next append opens it again."""
        self._opened.pop(id(self), None)
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class HistoryStore:
    """All sessions below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._opened: OrderedDict[int, SessionLog] = OrderedDict()

    def log_path(self, session_id: str) -> Path:
        return self.folder / f"{session_id}.jsonl"

    def meta_path(self, session_id: str) -> Path:
        return self.folder / f"{session_id}.json"

    def prepare(self) -> None:
        """Makes the folder.

        Raises:
            StorageError: it cannot be made or written to.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            writable = os.access(self.folder, os.W_OK | os.X_OK)
        except OSError as err:
            raise StorageError(
                f"cannot make the folder {self.folder}: {err.strerror}",
                hint="set OPENHEIM_HOME to a folder that can be written",
            ) from err
        if not writable:
            raise StorageError(
                f"the folder {self.folder} cannot be written", hint="set OPENHEIM_HOME to a folder that can be written"
            )

    def log(self, session_id: str) -> SessionLog:
        return SessionLog(self.log_path(session_id), self._opened)

    def write_meta(self, meta: SessionMeta) -> None:
        """Raises :class:`StorageError` if it cannot be written."""
        write_meta(self.meta_path(meta.id), meta_text(meta))

    def prepare_meta(self, meta: SessionMeta) -> Callable[[], None]:
        """A function that writes the metadata as it is now; to be called in another thread. Raises as above."""
        path, text = self.meta_path(meta.id), meta_text(meta)
        return lambda: write_meta(path, text)

    def load(self, session_id: str) -> StoredSession:
        """Reads a session. A line that cannot be read is skipped with a warning and never hides the others.

        Raises:
            SessionNotFoundError: there is no such session.
            StorageError: its log cannot be read.
        """
        if not _SESSION_ID.fullmatch(session_id):
            raise SessionNotFoundError(
                f"{session_id!r} is no session id", session_id=session_id, hint="see openheim sessions list"
            )
        meta = read_meta(self.meta_path(session_id))
        try:
            data = self.log_path(session_id).read_bytes()
        except FileNotFoundError:
            if meta is None:
                raise SessionNotFoundError(
                    f"there is no session {session_id}", session_id=session_id, hint="see openheim sessions list"
                ) from None
            data = b""
        except OSError as err:
            raise StorageError(f"cannot read {self.log_path(session_id)}: {err.strerror}") from err
        messages, records, warnings = _read_lines(data)
        if meta is None:
            created = messages[0].created_at if messages else ""
            meta = SessionMeta(session_id, created, messages[-1].created_at if messages else created)
            warnings.append("the metadata was missing or damaged and was made anew from the messages")
        return StoredSession(meta, messages, records, warnings)

    def close(self) -> None:
        """Closes every kept descriptor."""
        for log in list(self._opened.values()):
            log.close()


def _read_lines(data: bytes) -> tuple[list[Message], list[dict[str, Any]], list[str]]:
    messages: list[Message] = []
    records: list[dict[str, Any]] = []
    warnings: list[str] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            raw = parse(line, lenient=True)
            if isinstance(raw, dict) and "record" in raw:
                records.append(raw)
            else:
                messages.append(message_from_stored(raw))
        except (ValueError, RecursionError):
            warnings.append(f"line {number} of the history cannot be read and is skipped")
    return messages, records, warnings
