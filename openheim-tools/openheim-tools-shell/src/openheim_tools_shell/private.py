"""Folders of sessions for the temporary files and caches of their commands. None outlives its session for long.

Each folder holds a file that is locked by the process that made it. What a process left behind that was killed is
recognised by that and removed by the next one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import threading
import time
import weakref
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from openheim import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("PrivateFolders",)

#: Limit of one step of removing a folder.
_REMOVE_SECS = 60.0

#: Seconds that making a folder may wait for another process that makes one. It takes a moment, so one that takes longer
#: is stopped.
GATE_SECS = 5.0
_GATE_AGAIN_SECS = 0.02


class PrivateFolders:
    """The folders of the sessions of this process. Methods block for a moment and may be called from any thread.

    Args:
        base: where they are made.
    """

    def __init__(self, base: Path) -> None:
        self._base = base
        self._lock = threading.Lock()
        self._made: dict[str, _Folder] = {}
        # For what belongs to no session, and where sessions were not closed.
        weakref.finalize(self, _remove_all, self._made)

    def of_session(self, session_id: str) -> Path:
        """The session's folder, made when it is first asked for.

        Raises:
            ToolError: it cannot be made.
        """
        with self._lock:
            folder = self._made.get(session_id)
            if folder is None:
                try:
                    folder = self._made[session_id] = self._make()
                except TimeoutError as err:
                    raise ToolError(
                        f"no private folder for commands can be made: another process keeps {err.filename} locked",
                        hint="it is most likely an openheim that is stopped: continue it, or end it",
                    ) from err
                except OSError as err:
                    raise ToolError(f"no private folder for commands can be made in {self._base}: {err}") from err
            return folder.path

    def remove(self, session_id: str) -> None:
        """Removes a session's folder. Nothing may be running in it any more."""
        with self._lock:
            folder = self._made.pop(session_id, None)
        if folder is not None:
            folder.remove()

    def _make(self) -> _Folder:
        self._base.mkdir(mode=0o700, parents=True, exist_ok=True)
        gate = os.open(self._base / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # Nobody sees a folder before it is locked.
            self._pass(gate)
            stale = [] if self._made else list(self._left_behind())
            path = Path(tempfile.mkdtemp(dir=self._base, prefix=""))
            folder = _Folder.locked(path)
        finally:
            os.close(gate)
        for old in stale:
            old.remove()
        if folder is None:
            raise BlockingIOError(f"{path} is locked by another process")
        return folder

    def _pass(self, gate: int) -> None:
        """Locks the gate. Raises TimeoutError if another process does not let go of it."""
        due = time.monotonic() + GATE_SECS
        while True:
            try:
                fcntl.flock(gate, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as err:
                if time.monotonic() >= due:
                    raise TimeoutError(err.errno, err.strerror, str(self._base / "lock")) from err
                time.sleep(_GATE_AGAIN_SECS)
            else:
                return

    def _left_behind(self) -> Iterator[_Folder]:
        for path in self._base.iterdir():
            if path.is_dir() and not path.is_symlink():
                with suppress(OSError):
                    if (folder := _Folder.locked(path)) is not None:
                        yield folder


class _Folder:
    def __init__(self, path: Path, handle: int) -> None:
        self.path = path
        self._handle = handle

    @classmethod
    def locked(cls, path: Path) -> _Folder | None:
        """The folder, as this process's own; None if it is another's."""
        handle = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        return cls(path, handle)

    def remove(self) -> None:
        _remove_tree(self.path)
        os.close(self._handle)


def _remove_tree(path: Path) -> None:
    """Removes what commands have left, however deep and with whatever rights. What cannot be removed stays."""
    # Python's own way recurses, and commands may make more levels than it can.
    for program, *arguments in (("chmod", "-R", "u+rwx"), ("rm", "-rf")):
        # Not from PATH, which may lead to what commands have written.
        if (found := shutil.which(program, path=os.defpath)) is not None:
            with suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(
                    [found, *arguments, "--", str(path)],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=_REMOVE_SECS,
                    env={},
                )
    with suppress(RecursionError):
        shutil.rmtree(path, ignore_errors=True)


def _remove_all(made: dict[str, _Folder]) -> None:
    while made:
        made.popitem()[1].remove()
