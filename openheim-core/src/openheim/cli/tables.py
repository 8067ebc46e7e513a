"""Listings on stdout: aligned columns for people, JSON for programs."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Any

from openheim.cli.printing import one_line, print_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ("print_json", "print_table")

#: A last column of less than that stands below its row, that much to the right.
_NARROW, _INDENT = 24, 4


def print_json(document: Any) -> None:
    """One JSON document."""
    import json

    from openheim.jsontext import plain

    print_text(json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False))


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Columns as wide as their longest cell; on a terminal the last one goes on below where it does not fit."""
    if not rows:
        return
    cells = [list(header), *([one_line(str(cell)) if cell is not None else "" for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    limit = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for row in cells:
        *others, last = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        before = "".join(f"{cell}  " for cell in others)
        line = f"{before}{last}".rstrip()
        if limit is None or len(line) <= limit:
            print(line)
        else:
            for part in _within(before, last.rstrip(), limit):
                print(part)


def _within(before: str, last: str, limit: int) -> Iterator[str]:
    """The lines of a row, none of them longer than ``limit`` for its last cell, but for words that are: one that is
    broken, such as a path, could not be copied."""
    import textwrap

    start = len(before)
    if limit - start < _NARROW:
        yield before.rstrip()
        before, start = " " * _INDENT, _INDENT
    for part in textwrap.wrap(last, max(limit - start, _NARROW), break_long_words=False, break_on_hyphens=False):
        yield before + part
        before = " " * start
