"""Which folders are trusted, so that the settings and skills that they bring take effect.

Kept in ``trust.json`` of ``OPENHEIM_HOME``. Trust belongs to a folder by its canonical path, whatever it holds; folders
inside of it that have settings of their own are asked about anew. An answer of no is kept too.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import TYPE_CHECKING, Any

from openheim._reading import NO_WAIT, read_regular
from openheim.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ("TrustStore",)

_FORMAT = 1

#: Longest file that is read.
_MAX_BYTES = 16 * 1024 * 1024


class TrustStore:
    """The decisions in ``file``, which need not exist. Each call reads it anew: other processes decide as well."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def decision(self, folder: Path) -> bool | None:
        """Whether the folder is trusted; None if nobody has decided.

        Raises:
            StorageError: the file cannot be read.
        """
        entry = self._read().get(_canonical(folder))
        trusted = entry.get("trusted") if isinstance(entry, dict) else None
        return trusted if isinstance(trusted, bool) else None

    def decide(self, folder: Path, *, trusted: bool) -> None:
        """Keeps a decision.

        Raises:
            StorageError: the file cannot be read or written.
        """
        from datetime import UTC, datetime

        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self._one_writer():
                folders = self._read()
                at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
                folders[_canonical(folder)] = {"trusted": trusted, "at": at}
                self._write(folders)
        except OSError as err:
            raise StorageError(
                f"cannot write {self._file}: {err.strerror}", hint="check permissions and free space"
            ) from err

    def _read(self) -> dict[str, Any]:
        import json

        try:
            document = json.loads(read_regular(self._file, limit=_MAX_BYTES))
        except FileNotFoundError:
            return {}
        except OSError as err:
            raise StorageError(
                f"cannot read {self._file}: {err.strerror}", hint="check what stands there, and its permissions"
            ) from err
        except (ValueError, RecursionError):
            document = None
        folders = document.get("folders") if isinstance(document, dict) else None
        if not isinstance(folders, dict):
            raise StorageError(
                f"{self._file} is damaged, so no folder counts as trusted", hint="move it away and trust folders anew"
            )
        return folders

    def _write(self, folders: dict[str, Any]) -> None:
        import json

        text = json.dumps({"format": _FORMAT, "folders": folders}, indent=2, sort_keys=True, ensure_ascii=True)
        # A temporary file of this kind is readable by its owner only.
        descriptor, temporary = tempfile.mkstemp(dir=self._file.parent, prefix=f".{self._file.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(text.encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self._file)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise

    @contextlib.contextmanager
    def _one_writer(self) -> Iterator[None]:
        """Keeps decisions that are made at the same time from undoing each other, where files can be locked."""
        try:
            import fcntl
        except ImportError:
            yield
            return
        descriptor = os.open(self._file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | NO_WAIT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _canonical(folder: Path) -> str:
    return os.path.normcase(os.path.realpath(folder))
