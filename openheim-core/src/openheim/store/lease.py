"""The right to run turns of a session, between processes: ``{uuid}.lock``.

The file is JSON and names the process that holds the lease. It is taken for a turn, never for reading, and the holder
renews it from time to time. Whose process is gone has lost it, and so has a holder on another machine (where nobody
can look) after :data:`FOREIGN_SECS` without a renewal.

Every change to the file is made under a lock that the kernel keeps (:mod:`openheim.store.guard`). Looking whether a
lease is stale and replacing it is therefore one step, which only one contender makes, and a crash in the middle of it
leaves nothing that is in anybody's way, since every file appears whole. A protocol of links and renames alone cannot do
that: between looking and renaming, a stale file can have become somebody's live lease. Where a file system has no
locks, creating the file is still exclusive, and only two takers of the same stale lease could both win.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import time
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from openheim._reading import open_regular
from openheim.errors import SessionBusyError, SessionLockedError, StorageError
from openheim.store.guard import Guard
from openheim.store.meta import timestamp
from openheim.store.process import ProcessName, liveness, this_process
from openheim.store.writing import TEMPORARY_SUFFIX, create_whole, replace_whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

    from openheim.store.guard import Guarded

__all__ = ("FOREIGN_SECS", "UNREADABLE_SECS", "Lease", "owner_of")

#: Age after which a lease is up for taking if nobody can tell whether its holder lives. Renewing it begins anew.
FOREIGN_SECS = 30 * 60

#: Age after which a file that cannot be read is up for taking: its writer died between making and filling it.
UNREADABLE_SECS = 10

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)

#: What a disk without room says.
_FULL = (errno.ENOSPC, errno.EDQUOT)

#: Nobody writes more than that into the file.
_LIMIT = 4096

_UNKNOWN = ProcessName(0, "unknown")

_log = logging.getLogger(__name__)

#: The leases that this process holds.
_held: WeakValueDictionary[str, Lease] = WeakValueDictionary()


class Lease:
    """The lease of one session; also a context manager that takes and gives it back.

    All methods are quick (some 20 µs) and belong to one thread at a time.

    Args:
        path: the lock file. Its folder exists.
        guard: that of the folder, which its leases share.
    """

    __slots__ = ("__weakref__", "_content", "_guard", "_name", "_stamp", "session_id")

    def __init__(self, path: Path | str, session_id: str, guard: Guard | None = None) -> None:
        self.session_id = session_id
        self._name = str(path)
        self._guard = guard or Guard(os.path.dirname(self._name))
        self._content: bytes | None = None
        #: What the file looked like when it was written last.
        self._stamp: tuple[int, ...] = ()

    @property
    def path(self) -> Path:
        """The lock file."""
        from pathlib import Path

        return Path(self._name)

    @property
    def held(self) -> bool:
        """Whether it was taken and not given back; :meth:`refresh` says whether that still holds."""
        return self._content is not None

    def acquire(self) -> None:
        """Takes the lease, also from a holder that is gone.

        Raises:
            SessionLockedError: another process holds it; ``pid`` and ``host`` say which.
            SessionBusyError: this process holds it already, through another object.
            StorageError: the file cannot be read or written.
        """
        if self._content is not None:
            self.refresh()
            return
        key = self._name
        with self._guarded() as guard:
            self._check_free_here()
            self._take(guard)
            _held[key] = self

    def refresh(self) -> None:
        """Renews the lease; to be called every few minutes while it is held.

        Raises:
            SessionLockedError: another process has taken it meanwhile (this one was stopped for long): what the
                session does must end.
            StorageError: as :meth:`acquire`.
        """
        if self._content is None:
            raise RuntimeError("the lease is not held")
        with self._guarded() as guard:
            if _read(self._name) == self._content:
                os.utime(self._name)
                self._stamp = _stamp(os.stat(self._name))
            else:
                self._take(guard)

    def release(self) -> None:
        """Gives the lease back. One that is not held, or that another process has taken, is left alone."""
        content, self._content = self._content, None
        if content is None:
            return
        try:
            with self._guarded():
                if _held.get(self._name) is self:
                    del _held[self._name]
                if self._is_there(content):
                    os.unlink(self._name)
        except StorageError as err:
            # It falls to the next turn of this process, or to anybody once this process has ended.
            _log.warning("the lease of session %s could not be given back: %s", self.session_id, err)

    @contextmanager
    def held_for_removal(self) -> Iterator[None]:
        """The lease, for deleting the session, which has to be possible on a disk that has no room for the file.

        There the right to change lock files is held instead for as long as deleting takes, so that nobody takes the
        lease meanwhile. Raises as :meth:`acquire` does.
        """
        try:
            self.acquire()
        except StorageError as err:
            cause = err.__cause__
            if not isinstance(cause, OSError) or cause.errno not in _FULL:
                raise
            _log.info("session %s: deleting without the lease, for which there is no room", self.session_id)
        else:
            try:
                yield
            finally:
                self.release()
            return
        with self._guarded() as guard:
            self._check_free_here()
            found = _read(self._name)
            if found is not None:
                self._check_stale(_parse(found), guard)
            yield
            if found is not None:
                os.unlink(self._name)

    def __enter__(self) -> Lease:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _is_there(self, content: bytes) -> bool:
        """Whether the file is still the one that was written."""
        try:
            found = os.stat(self._name)
        except FileNotFoundError:
            return False
        return _stamp(found) == self._stamp or _read(self._name) == content

    def _take(self, guard: Guarded) -> None:
        content = _content()
        if not (guard.locked and self._create(content)):
            found = _read(self._name)
            if found is None:
                try:
                    create_whole(self._name, content, durable=False)
                except FileExistsError:
                    # Only where there are no locks.
                    raise self._locked(owner_of(self.path) or _UNKNOWN) from None
            else:
                self._check_stale(_parse(found), guard)
                replace_whole(self._name, content)
            self._stamp = _stamp(os.stat(self._name))
        self._content = content

    def _create(self, content: bytes) -> bool:
        """Makes the file if there is none, whole, while nobody else can."""
        if os.path.lexists(self._name):
            return False
        folder, name = os.path.split(self._name)
        temporary = f"{folder}{os.sep}.{name}{TEMPORARY_SUFFIX}"
        try:
            descriptor = os.open(temporary, _NEW, 0o600)
        except FileExistsError:
            # Left by a crash, or no file at all.
            os.unlink(temporary)
            descriptor = os.open(temporary, _NEW, 0o600)
        try:
            try:
                if os.write(descriptor, content) < len(content):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                self._stamp = _stamp(os.fstat(descriptor))
            finally:
                os.close(descriptor)
            os.rename(temporary, self._name)
        except OSError:
            os.unlink(temporary)
            raise
        return True

    def _check_stale(self, owner: ProcessName | None, guard: Guarded) -> None:
        """Returns if the lease may be taken from its owner, and raises if not."""
        if owner is None:
            if self._age(guard) < UNREADABLE_SECS:
                raise self._locked(_UNKNOWN)
            _log.warning("session %s: taking over a lease that cannot be read", self.session_id)
            return
        if _is_this_process(owner):
            # Left by an object that is gone.
            return
        state = liveness(owner)
        if state == "alive" or (state == "unknown" and self._age(guard) < FOREIGN_SECS):
            raise self._locked(owner)
        why = "which is gone" if state == "dead" else "which has not renewed it"
        _log.warning(
            "session %s: taking over the lease of process %d on %s, %s", self.session_id, owner.pid, owner.host, why
        )

    def _age(self, guard: Guarded) -> float:
        """Seconds since the file was written or renewed, by the clock of the disk that it is on."""
        os.utime(guard.descriptor)
        # A time in the far future comes from a clock that was wrong; it must not lock the session until then.
        return abs(os.fstat(guard.descriptor).st_mtime - os.stat(self._name).st_mtime)

    def _check_free_here(self) -> None:
        """Raises if another object of this process holds it. One that could not give it back holds it no more."""
        holder = _held.get(self._name)
        if holder is not None and holder.held:
            raise SessionBusyError(
                "a turn of this session is running", session_id=self.session_id, hint="wait for its end, or cancel it"
            )

    def _locked(self, owner: ProcessName) -> SessionLockedError:
        who = f"process {owner.pid} on {owner.host}" if owner.pid else "a process that has not said its name yet"
        return SessionLockedError(
            f"session {self.session_id} is in use by {who}",
            session_id=self.session_id,
            pid=owner.pid,
            host=owner.host,
            hint="wait for its turn to end, or stop that process",
        )

    @contextmanager
    def _guarded(self) -> Iterator[Guarded]:
        """The right to change lock files of the folder; OS errors become ours."""
        try:
            with self._guard.held() as guard:
                yield guard
        except OSError as err:
            raise StorageError(
                f"cannot use the lease {self._name}: {err.strerror}", hint="check free space and permissions"
            ) from err


def owner_of(path: Path) -> ProcessName | None:
    """The process that a lock file names, alive or not; None if there is none or it cannot be read.

    For showing it: who wants the lease takes it.
    """
    try:
        content = _read(path)
    except OSError:
        return None
    return _parse(content) if content is not None else None


def _is_this_process(owner: ProcessName) -> bool:
    here = this_process()
    return (owner.pid, owner.host) == (here.pid, here.host) and all(
        theirs in (None, ours) for theirs, ours in zip(owner[2:], here[2:], strict=True)
    )


def _content() -> bytes:
    # Two leases of one process within a millisecond must differ as well: each is given back once.
    return f'{_named(this_process())}, "acquired_at": "{timestamp()}", "token": "{time.monotonic_ns():x}"}}'.encode(
        "ascii"
    )


@lru_cache(maxsize=2)
def _named(process: ProcessName) -> str:
    """The beginning of a file's JSON, which is the same for all leases of a process."""
    named: dict[str, Any] = {"pid": process.pid, "hostname": process.host, "process_start": process.start}
    if process.table is not None:
        named["pid_namespace"] = process.table
    return json.dumps(named)[:-1]


def _stamp(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def _read(path: Path | str) -> bytes | None:
    try:
        with open_regular(path) as file:
            return file.read(_LIMIT)
    except FileNotFoundError:
        return None


def _parse(content: bytes) -> ProcessName | None:
    try:
        named = json.loads(content)
        pid, host = named["pid"], named["hostname"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if type(pid) is not int or not 0 < pid < 1 << 31 or not isinstance(host, str):
        return None

    def text(key: str) -> str | None:
        value = named.get(key)
        return value if isinstance(value, str) else None

    return ProcessName(pid, host, text("process_start"), text("pid_namespace"))
