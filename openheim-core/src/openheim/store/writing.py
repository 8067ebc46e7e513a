"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from openheim.errors import StorageError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("TEMPORARY_SUFFIX", "create_whole", "datasync", "replace_whole", "sync_folder")

#: Ends the names of files that are being written; they begin with a dot. What a crash leaves behind is of no use.
TEMPORARY_SUFFIX = ".tmp"

#: Not every system has fdatasync; fsync does the same and more.
datasync = getattr(os, "fdatasync", os.fsync)

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def replace_whole(path: Path | str, data: bytes, *, durable: bool = False) -> None:
    """Writes the file, or replaces it in one step: readers see the old or the new, never a part.

    Args:
        durable: wait until it is on the disk, which takes milliseconds.

    Raises:
        StorageError: it cannot be written; an old file is untouched.
    """
    try:
        name = _write_temporary(path, data, durable=durable)
        try:
            os.replace(name, path)
        except OSError:
            _discard(name)
            raise
    except OSError as err:
        raise _failure(path, err) from err


def create_whole(path: Path | str, data: bytes, *, durable: bool = True) -> None:
    """Writes a new file, which appears whole.

    Args:
        durable: wait until it is on the disk, name and all.

    Raises:
        FileExistsError: there is such a file; it is untouched.
        StorageError: it cannot be written.
    """
    try:
        name = _write_temporary(path, data, durable=durable)
        try:
            _publish(name, path)
        except OSError:
            _discard(name)
            raise
    except FileExistsError:
        raise
    except OSError as err:
        raise _failure(path, err) from err
    if durable:
        sync_folder(os.path.dirname(path) or os.curdir)


def sync_folder(folder: Path | str) -> None:
    """Makes the names in a folder durable, where the system has a way to."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        # Some file systems refuse this for folders. The files themselves were synced.
        pass
    finally:
        os.close(descriptor)


def _write_temporary(path: Path | str, data: bytes, *, durable: bool) -> str:
    # The name is unique, so that two writers of one file never share a temporary one.
    folder, name = os.path.split(path)
    name = f"{folder}{os.sep if folder else ''}.{name}.{os.urandom(6).hex()}{TEMPORARY_SUFFIX}"
    descriptor = os.open(name, _FLAGS, 0o600)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        if durable:
            datasync(descriptor)
    except OSError:
        os.close(descriptor)
        _discard(name)
        raise
    os.close(descriptor)
    return name


def _publish(name: str, path: Path | str) -> None:
    try:
        # A second name, unlike a rename, never replaces a file.
        os.link(name, path)
    except FileExistsError:
        raise
    except (OSError, NotImplementedError, AttributeError):  # Reason: the latter two come where links do not exist.
        if not os.path.exists(path):
            # Not every file system has second names.
            os.replace(name, path)
            return
        # A disk may do its work and report a failure all the same.
        if not os.path.samefile(name, path):
            raise FileExistsError(str(path)) from None
    _discard(name)


def _discard(name: str) -> None:
    try:
        os.unlink(name)
    except OSError:
        pass


def _failure(path: Path | str, err: OSError) -> StorageError:
    return StorageError(f"cannot write {path}: {err.strerror}", hint="check free space and permissions")
