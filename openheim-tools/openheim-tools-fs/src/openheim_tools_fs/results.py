"""What the calls of file tools have in common: what they act on, and how their results read and show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openheim import Turn
    from openheim.files import Files

__all__ = ("counted", "edit_display", "full_path", "optional_path", "path_target", "printable", "short_diff")

#: A diff with more text than this on either side is not shown: it would go to every watcher.
MAX_DIFF_BYTES = 64 * 1024


def path_target(arguments: dict[str, Any], turn: Turn) -> str | None:
    """The canonical path relative to the boundary, links followed; the current directory where none is given."""
    return turn.files.resolve(optional_path(arguments.get("path")))


def optional_path(path: str | None) -> str:
    """The path, or the current directory where it was left out or is blank."""
    return path if path is not None and path.strip() else "."


def counted(number: int, noun: str) -> str:
    """``1 line``, ``2,000 lines``; ``1 entry``, ``2 entries``."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"


def printable(name: str) -> str:
    """A file name as one line of valid text, whatever bytes it is made of."""
    if name.isprintable():
        return name
    text = name.encode("utf-8", errors="surrogateescape").decode("utf-8", errors="replace")
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def full_path(files: Files, canonical: str) -> str:
    """A canonical path in full, for surfaces; valid text whatever it is made of."""
    return printable(str(files.root / canonical))


def short_diff(old: bytes | None, new: bytes) -> dict[str, str | None] | None:
    """Both texts for a diff (``old`` is None for a new file); None if they are too long to be shown, or no UTF-8."""
    if max(len(old or b""), len(new)) > MAX_DIFF_BYTES:
        return None
    try:
        return {"old": None if old is None else old.decode("utf-8-sig"), "new": new.decode("utf-8-sig")}
    except UnicodeDecodeError:
        return None


def edit_display(
    files: Files, canonical: str, verb: str, line: int, diff: dict[str, str | None] | None
) -> dict[str, Any]:
    """The display of a call that changed a file at a line."""
    path = full_path(files, canonical)
    display: dict[str, Any] = {"title": f"{verb} {printable(canonical)}", "locations": [{"path": path, "line": line}]}
    if diff is not None:
        display["diff"] = {"path": path, **diff}
    return display
