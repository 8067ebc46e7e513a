"""Listings on stdout: aligned columns for people, JSON for programs."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Any

from openheim.cli.printing import one_line, print_text

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("print_json", "print_table")


def print_json(document: Any) -> None:
    """One JSON document."""
    import json

    from openheim.jsontext import plain

    print_text(json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False))


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Columns as wide as their longest cell; on a terminal the last one is cut at its edge."""
    if not rows:
        return
    cells = [list(header), *([one_line(str(cell)) if cell is not None else "" for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    limit = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for row in cells:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        print(line if limit is None or len(line) <= limit else f"{line[: limit - 1]}…")
