"""On which line of a TOML file a key stands, for error messages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ("line_of",)

_PART = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[\w-]+)"""
_KEY = rf"\s*{_PART}(?:\s*\.\s*{_PART})*\s*"
_HEADER_LINE = re.compile(rf"\s*\[\[?({_KEY})\]\]?\s*(?:#.*)?")
_KEY_AT_START = re.compile(rf"({_KEY})=")
_PARTS = re.compile(_PART)


def line_of(file: Path, path: Sequence[str]) -> int | None:
    """The line (from 1) of the key at ``path``, or of the table that holds it; None if it cannot be told.

    It reads headers and keys line by line, which is exact for the way config files are written by hand. Keys inside a
    value that spans lines are not told apart, so the line of the value's own key is given.
    """
    try:
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError):
        return None
    wanted = list(path)
    table: list[str] = []
    best: tuple[int, int] | None = None
    for number, line in enumerate(lines, 1):
        if header := _HEADER_LINE.fullmatch(line):
            found = table = _parts(header[1])
        elif key := _KEY_AT_START.match(line):
            found = table + _parts(key[1])
        else:
            continue
        if found and wanted[: len(found)] == found and (best is None or len(found) > best[0]):
            best = (len(found), number)
    return best[1] if best else None


def _parts(dotted: str) -> list[str]:
    return [part[1:-1] if part[0] in "\"'" else part for part in _PARTS.findall(dotted)]
