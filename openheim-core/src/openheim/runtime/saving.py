"""Keeps a session's files in step with it: what is durable, what is not yet, and what could not be saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openheim.errors import OpenheimError, SessionBusyError, SessionLockedError, SessionNotFoundError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from openheim.runtime.flushing import Flusher
    from openheim.runtime.transcript import Transcript
    from openheim.store import HistoryStore, SessionLog, SessionMeta
    from openheim.store.lease import Lease

__all__ = ("SessionSaver",)


class SessionSaver:
    """Log and metadata of one session; a :class:`~openheim.runtime.flushing.Flushed`.

    Args:
        is_stored: whether the session is on disk already.
        catch_up: takes in what other processes added to the log; called under the lease.
        tell: told, once until it works again, that something could not be saved.
    """

    def __init__(
        self,
        store: HistoryStore,
        flusher: Flusher,
        meta: SessionMeta,
        log: SessionLog,
        lease: Lease,
        transcript: Transcript,
        *,
        is_stored: bool,
        catch_up: Callable[[], None],
        tell: Callable[[str], None],
    ) -> None:
        self.is_stored = is_stored
        self.is_open = True
        #: Why files may lack something, as of the last time that they were made durable.
        self.unsaved: OpenheimError | None = None
        self._store = store
        self._flusher = flusher
        self._meta = meta
        self._log = log
        self._lease = lease
        self._transcript = transcript
        self._catch_up = catch_up
        self._tell = tell
        self._meta_changed = False

    def later(self) -> None:
        """Has the files made durable soon, off the event loop; does nothing for a session that is not on disk."""
        if self.is_stored:
            self._meta_changed = True
            self._flusher.later(self)

    def write_meta(self) -> None:
        """Writes the metadata now, without waiting until it is durable. Raises :class:`StorageError`."""
        self._store.write_meta(self._meta)

    def close(self) -> None:
        """Lets go of the files. The log is still made durable, but the metadata is whoever's opens the session next."""
        if self.is_open and self._meta_changed and self._log.path.exists():
            try:
                self.write_meta()
            except StorageError as err:
                self.flushed(err)
        self.is_open = False
        self._log.close()
        self._lease.release()

    def prepare_flush(self) -> Callable[[], None]:
        """What has to be done in a thread to make the files durable. Both raise as :class:`Flushed` says."""
        self._write_rest()
        sync = self._log.prepare_sync()
        write_meta = self._store.prepare_meta(self._meta) if self.is_open else None
        self._meta_changed = False
        unwritten = self._transcript.unwritten

        def flush() -> None:
            try:
                try:
                    if write_meta is not None and self.is_open:
                        write_meta()
                finally:
                    sync()
                if unwritten:
                    raise StorageError("the end of the conversation could not be written", hint="check free space")
            except StorageError as err:
                if self._log.path.exists():
                    raise
                raise SessionNotFoundError(err.message, hint="start a new session") from err

        return flush

    def flushed(self, error: OpenheimError | None) -> None:
        """How a flush ended."""
        deleted = isinstance(error, SessionNotFoundError)
        if deleted and not self.is_open:
            return
        if error is not None:
            self._meta_changed = not deleted
            if self.unsaved is None:
                self._tell(f"the session may not be saved: {error}")
        self.unsaved = error

    def _write_rest(self) -> None:
        """Tries again to write what could not be written in the turn that it belongs to."""
        if not self._transcript.pending or self._lease.held:
            return
        try:
            self._lease.acquire()
        except (SessionBusyError, SessionLockedError):
            # Whoever runs a turn there will be asked again; no two write at a time.
            return
        try:
            self._catch_up()
            self._transcript.acknowledge()
        finally:
            self._lease.release()
