"""All sessions below one folder: a log and a small file of metadata each."""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from openheim._reading import open_regular
from openheim.errors import SessionNotFoundError, StorageError
from openheim.messages import Message, message_to_stored
from openheim.store.lines import LogLines
from openheim.store.log import LogPosition, SessionLog, entries
from openheim.store.meta import SessionMeta, drop_damaged, meta_text, read_meta, write_meta

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from openheim.store.guard import Guard
    from openheim.store.lease import Lease

__all__ = ("HistoryStore", "StoredSession", "is_session_id")

_SESSION_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


@dataclass(slots=True)
class StoredSession:
    """A session as it was read.

    Args:
        warnings: what had to be skipped, one line each.
        state: what the log says of mode, model, skills and directory, see
            :func:`~openheim.store.meta.state_in`; the metadata has it too.
        position: how far its log was read, for :meth:`HistoryStore.log`.
    """

    meta: SessionMeta
    messages: list[Message]
    records: list[dict[str, Any]]
    warnings: list[str]
    state: dict[str, Any] = field(default_factory=dict)
    position: LogPosition = field(default_factory=LogPosition)


def is_session_id(text: str) -> bool:
    """Whether a session may be called that: a UUID in its usual form."""
    return _SESSION_ID.fullmatch(text) is not None


class HistoryStore:
    """The sessions below one folder, which need not exist before :meth:`prepare`.

    All methods block for as long as the disk takes. What is done with whole sessions (listing, copying, deleting) is
    in :mod:`openheim.store.operations`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._opened: OrderedDict[int, SessionLog] = OrderedDict()
        self._guard: Guard | None = None

    def log_path(self, session_id: str) -> Path:
        """The messages of a session."""
        return self.folder / f"{session_id}.jsonl"

    def meta_path(self, session_id: str) -> Path:
        """The metadata of a session."""
        return self.folder / f"{session_id}.json"

    def metrics_path(self, session_id: str) -> Path:
        """The timings of a session's steps; may be absent."""
        return self.folder / f"{session_id}.metrics.jsonl"

    def lock_path(self, session_id: str) -> Path:
        """The file that says which process runs a turn of a session."""
        return self.folder / f"{session_id}.lock"

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

    def log(self, session_id: str, position: LogPosition | None = None) -> SessionLog:
        """The log of a session, for appending.

        Args:
            position: what was read of it, from :class:`StoredSession`; what others add behind that is foreign. All
                that is there when the log is first used counts as read, if None.
        """
        return SessionLog(self.log_path(session_id), self._opened, position)

    def lease(self, session_id: str) -> Lease:
        """The right to run turns of a session, not taken yet."""
        from openheim.store.guard import Guard
        from openheim.store.lease import Lease

        if self._guard is None:
            self._guard = Guard(str(self.folder))
        return Lease(f"{self._guard.folder}{os.sep}{session_id}.lock", session_id, self._guard)

    def write_meta(self, meta: SessionMeta) -> None:
        """Raises :class:`StorageError` if it cannot be written."""
        write_meta(self.meta_path(meta.id), meta_text(meta))

    def prepare_meta(self, meta: SessionMeta) -> Callable[[], None]:
        """A function that writes the metadata as it is now, durably; to be called in another thread.

        It raises as :meth:`write_meta` does, and :class:`SessionNotFoundError` if the session is gone by then, which
        stays so.
        """
        path, log, text = self.meta_path(meta.id), self.log_path(meta.id), meta_text(meta)

        def write() -> None:
            if log.exists():
                write_meta(path, text, durable=True)
                if log.exists():
                    return
                # It was deleted between the two looks. The log goes first, so that the metadata may have been left.
                path.unlink(missing_ok=True)
            raise SessionNotFoundError(
                f"the session {meta.id} was deleted meanwhile", session_id=meta.id, hint="start a new session"
            )

        return write

    def read_meta(self, session_id: str) -> SessionMeta | None:
        """The metadata as it is stored, or None if there is none that can be read."""
        return read_meta(self.meta_path(session_id))

    def exists(self, session_id: str) -> bool:
        """Whether there is such a session."""
        return is_session_id(session_id) and (self.log_path(session_id).exists() or self.meta_path(session_id).exists())

    def load(self, session_id: str) -> StoredSession:
        """Reads a session. A line that cannot be read is skipped with a warning and never hides the others.

        Raises:
            SessionNotFoundError: there is no such session.
            StorageError: its log cannot be read.
        """
        # Not needed by whoever only writes.
        from openheim.store.digest import LogDigest

        self.check_id(session_id)
        meta = self.read_meta(session_id)
        try:
            lines, position = self.read_log(session_id)
        except SessionNotFoundError:
            if meta is None and not self.meta_path(session_id).exists():
                raise
            lines, position = LogLines(b""), LogPosition()
        messages: list[Message] = []
        records: list[dict[str, Any]] = []
        digest = LogDigest()
        for entry in entries(lines):
            if not isinstance(entry, Message):
                records.append(entry)
                digest.add_record(entry)
                continue
            messages.append(entry)
            if meta is None:
                digest.add_message(message_to_stored(entry))
        warnings = lines.warnings
        if meta is not None:
            warnings += drop_damaged(meta)
        else:
            warnings.append("the metadata was missing or damaged and was made anew from the messages")
        meta = digest.complete(meta, session_id)
        return StoredSession(meta, messages, records, warnings, digest.state, position)

    def read_log(self, session_id: str) -> tuple[LogLines, LogPosition]:
        """The lines of a session's log as they are stored.

        Raises:
            SessionNotFoundError: there is no such log.
            StorageError: it cannot be read.
        """
        path = self.log_path(session_id)
        try:
            with open_regular(path) as file:
                stat = os.fstat(file.fileno())
                lines = LogLines(file.readall())
        except FileNotFoundError:
            raise self.not_found(session_id) from None
        except OSError as err:
            raise StorageError(
                f"cannot read {path}: {err.strerror}", hint="check what stands there, its permissions and the disk"
            ) from err
        return lines, LogPosition(lines.end, stat.st_dev, stat.st_ino)

    def check_id(self, session_id: str) -> None:
        """Raises :class:`SessionNotFoundError` for what is no id, and so the name of no file."""
        if not is_session_id(session_id):
            raise SessionNotFoundError(
                f"{session_id!r} is no session id", session_id=session_id, hint="see openheim sessions list"
            )

    def not_found(self, session_id: str) -> SessionNotFoundError:
        """The error for a session that is not there."""
        return SessionNotFoundError(
            f"there is no session {session_id}", session_id=session_id, hint="see openheim sessions list"
        )

    def close(self) -> None:
        """Closes every kept descriptor."""
        for log in list(self._opened.values()):
            log.close()
        if self._guard is not None:
            self._guard.close()
