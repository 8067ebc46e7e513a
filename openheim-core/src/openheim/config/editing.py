"""Changing a config file without losing what people wrote in it."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from typing import TYPE_CHECKING, Any

from openheim._reading import read_regular
from openheim.config.toml import MAX_FILE_BYTES, read_toml
from openheim.errors import ConfigError, StorageError
from openheim.store.locking import exclusive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tomlkit import TOMLDocument

__all__ = ("edit_config",)

#: Seconds to wait for another process that changes a file of the same folder, and checks all settings with it.
_PATIENCE_SECS = 30.0


def edit_config(
    path: Path,
    change: Callable[[TOMLDocument], None],
    *,
    only: Sequence[tuple[str, ...]] | None = None,
) -> bool:
    """Changes a TOML file. Comments, order and layout of everything else stay as they are.

    The new text takes the place of the old one in one step: a reader sees one or the other, and so does the file system
    after a crash. The file keeps its permissions; where it is a symbolic link, the file that it points to is replaced.
    A file that does not exist is made, readable by its owner only. Of several changes at a time, in any number of
    processes, each is made to what the one before has left.

    Args:
        path: the file.
        change: edits the document in place. An exception of its own leaves the file as it was.
        only: keys, as paths into the document, that may come out changed. None allows any.

    Returns:
        Whether the file was changed.

    Raises:
        ConfigError: the file is not valid TOML, the change cannot be made safely, or somebody else changed the file at
            the same time, with another program.
        StorageError: it cannot be read or written.
    """
    # Before others are made to wait.
    import tomlkit

    target = path.resolve()
    try:
        with _one_writer(target.parent):
            before = read_toml(target)
            old = _read(target)
            mark = "\ufeff" if old is not None and old.startswith("\ufeff") else ""
            text, line_end = _with_plain_line_ends((old or "").removeprefix(mark))
            document = tomlkit.parse(text)
            change(document)
            new = tomlkit.dumps(document)
            if new == text:
                return False
            _check(path, before or {}, new, document.unwrap(), only)
            new = mark + new.replace("\n", line_end)
            if _read(target) != old:
                raise ConfigError(f"{path} was changed by somebody else at the same time", hint="try again")
            _replace(target, new)
            return True
    except OSError as err:
        raise StorageError(f"cannot write {path}: {err.strerror}", hint="check permissions and free space") from err


@contextlib.contextmanager
def _one_writer(folder: Path) -> Iterator[None]:
    """Keeps changes that are made at the same time from undoing each other, where folders can be locked.

    The folder itself is locked, so that nothing is left in it.
    """
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.ExitStack() as opened:
        try:
            descriptor = os.open(folder, os.O_RDONLY)
            opened.callback(os.close, descriptor)
            opened.enter_context(exclusive(descriptor, patience_secs=_PATIENCE_SECS))
        except TimeoutError:
            raise
        except OSError:
            # Folders cannot be opened on Windows, nor locked on some network file systems. What another program does
            # at the same time is noticed all the same, before the file is replaced.
            pass
        try:
            yield
        finally:
            if made:
                # Nothing was written, if it can be removed.
                with contextlib.suppress(OSError):
                    folder.rmdir()


def _read(path: Path) -> str | None:
    try:
        # Bytes, since reading text would turn the line ends of other systems into ours.
        return read_regular(path, limit=MAX_FILE_BYTES).decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as err:
        raise StorageError(f"cannot read {path}: {err}") from err


def _with_plain_line_ends(text: str) -> tuple[str, str]:
    """The text with ``\\n`` as line end, and the line end it has. A mixture is left as it is."""
    lines = text.count("\n")
    if lines and text.count("\r\n") == lines:
        return text.replace("\r\n", "\n"), "\r\n"
    return text, "\n"


def _check(
    path: Path, before: dict[str, Any], new: str, meant: dict[str, Any], only: Sequence[tuple[str, ...]] | None
) -> None:
    """The new text has to say what was meant, and nothing else may read differently than before."""
    import tomllib

    try:
        after = tomllib.loads(new)
    except tomllib.TOMLDecodeError:
        after = None
    if after == meant and (only is None or _without(before, only) == _without(after, only)):
        return
    keys = ", ".join(".".join(key) for key in only) if only else "that"
    raise ConfigError(f"{path} is laid out in a way that cannot be edited safely", hint=f"change {keys} by hand")


def _without(document: dict[str, Any], keys: Sequence[tuple[str, ...]]) -> dict[str, Any]:
    """A copy without those keys, and without tables that hold nothing else."""
    copy: dict[str, Any] = {}
    for name, value in document.items():
        if (name,) in keys:
            continue
        below = [key[1:] for key in keys if key[0] == name]
        if below and isinstance(value, dict):
            value = _without(value, below)
            if not value:
                continue
        copy[name] = value
    return copy


def _replace(target: Path, text: str) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            with contextlib.suppress(FileNotFoundError):
                _keep_owner_and_mode(target, temporary)
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    _sync_directory(target.parent)


def _keep_owner_and_mode(target: Path, temporary: str) -> None:
    found = target.stat()
    if hasattr(os, "chown"):
        # Only root may give files away, and only root needs to.
        with contextlib.suppress(PermissionError):
            os.chown(temporary, found.st_uid, found.st_gid)
    os.chmod(temporary, stat.S_IMODE(found.st_mode))


def _sync_directory(folder: Path) -> None:
    """Makes the new name durable, where directories can be opened."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
