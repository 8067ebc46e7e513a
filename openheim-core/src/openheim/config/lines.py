"""On which line of a TOML file a key stands, for error messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ("line_of",)


def line_of(file: Path, path: Sequence[str]) -> int | None:
    """The line (from 1) of the key at ``path``, or of the table that holds it; None if it cannot be told.

    It reads headers and keys line by line, which is exact for the way config files are written by hand. Keys inside a
    value that spans lines are not told apart, so the line of the value's own key is given.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    wanted = list(path)
    table: list[str] = []
    best: tuple[int, int] | None = None
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text.startswith("["):
            inner = text.lstrip("[").split("]")[0]
            table = _keys(inner)
            found = table
        elif "=" in text and not text.startswith("#"):
            found = table + _keys(text.split("=", 1)[0])
        else:
            continue
        if found and wanted[: len(found)] == found and (best is None or len(found) > best[0]):
            best = (len(found), number)
    return best[1] if best else None


def _keys(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]
