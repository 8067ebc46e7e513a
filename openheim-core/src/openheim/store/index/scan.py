"""What the history's folder holds, seen from outside: which files there are, and whether they changed."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, TypeAlias

from openheim.store.history import is_session_id
from openheim.store.writing import TEMPORARY_SUFFIX

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("ABSENT", "Seen", "Stamp", "folder_time", "scan", "stamp_of", "unsettled")

#: Clocks of file systems tick in steps of some milliseconds: two changes within one look like one.
_TICK_NS = 100_000_000

#: Seconds after which a file that somebody began to write was given up by them.
_ABANDONED_SECS = 3600


#: What differs once a file was written to or replaced: time in ns, size in bytes, inode. A plain tuple, as there can be
#: tens of thousands.
Stamp: TypeAlias = tuple[int, int, int]

#: The metadata and the log of a session. The log is None where it was not looked at.
Seen: TypeAlias = tuple[Stamp, Stamp | None]

#: Stands for a file that is not there.
ABSENT: Stamp = (0, -1, 0)


def stamp_of(path: Path | os.DirEntry[str]) -> Stamp:
    """The stamp of a file; :data:`ABSENT` if there is none."""
    try:
        stat = path.stat()
    except OSError:
        return ABSENT
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def folder_time(folder: Path) -> int | None:
    """When a name in the folder changed last, in ns; None if that may not be the last change of this moment.

    Every new session and all new metadata is a new name (see :func:`~openheim.store.writing.replace_whole`).
    """
    stamp = stamp_of(folder)
    return None if stamp == ABSENT or unsettled(stamp) else stamp[0]


def unsettled(stamp: Stamp) -> bool:
    """Whether the file was changed so lately that another change could leave the same stamp."""
    return abs(time.time_ns() - stamp[0]) < _TICK_NS


def scan(folder: Path, *, logs: bool) -> dict[str, Seen]:
    """The sessions in the folder by id.

    Args:
        logs: look at the logs as well, which takes twice as long. Otherwise only at those without metadata.

    Raises:
        OSError: the folder cannot be read.
    """
    metas: dict[str, Stamp] = {}
    found: dict[str, Stamp | None] = {}
    try:
        listing = os.scandir(folder)
    except FileNotFoundError:
        return {}
    with listing:
        for entry in listing:
            session_id, _dot, kind = entry.name.partition(".")
            if not session_id:
                _clear_up(entry)
            elif kind == "json":
                metas[session_id] = stamp_of(entry)
            elif kind == "jsonl":
                found[session_id] = stamp_of(entry) if logs else None
    for session_id in found.keys() - metas.keys():
        found[session_id] = found[session_id] or stamp_of(folder / f"{session_id}.jsonl")
    absent = ABSENT if logs else None
    return {
        session_id: (metas.get(session_id, ABSENT), found.get(session_id, absent))
        for session_id in metas.keys() | found.keys()
        if is_session_id(session_id)
    }


def _clear_up(entry: os.DirEntry[str]) -> None:
    """Removes what a crash left of a file that was being written."""
    if not entry.name.endswith(TEMPORARY_SUFFIX):
        return
    try:
        if time.time() - entry.stat().st_mtime > _ABANDONED_SECS:
            os.unlink(entry.path)
    except OSError:
        pass
