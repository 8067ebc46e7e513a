"""What the calls of file tools have in common: what they act on, and how their results read and show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openheim import Turn
    from openheim.files import Files

__all__ = ("counted", "edit_display", "optional_path", "path_target", "printable")

#: A diff with more text than this on either side is not shown: it would be sent to every watcher.
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
    text = name.encode("utf-8", errors="surrogateescape").decode("utf-8", errors="replace")
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def edit_display(files: Files, canonical: str, verb: str, old: bytes, new: bytes, line: int) -> dict[str, Any]:
    """The display of a call that changed a file: its whole old and new text if they are short and are UTF-8."""
    path = str(files.root / canonical)
    display: dict[str, Any] = {"title": f"{verb} {canonical}", "locations": [{"path": path, "line": line}]}
    if max(len(old), len(new)) <= MAX_DIFF_BYTES:
        try:
            display["diff"] = {"path": path, "old": old.decode("utf-8-sig"), "new": new.decode("utf-8-sig")}
        except UnicodeDecodeError:
            pass
    return display
