"""The tool list_dir: the names in a directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openheim import TextBlock, ToolResult, Turn, tool
from openheim_tools_fs.results import counted, full_path, optional_path, path_target, printable
from openheim_tools_fs.schemas import LIST_DIR
from openheim_tools_fs.threads import run_abandonable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from openheim.files import Entry

__all__ = ("list_dir",)

MAX_ENTRIES = 500
#: Further down a listing cannot begin: the names above it are kept in memory while it is made.
MAX_OFFSET = 1_000_000
#: Room for the note at the end.
NOTE_BYTES = 1024


@tool(
    description="List the immediate contents of a directory (not recursive). Directories are suffixed with '/' and "
    "symlinks are shown as 'name -> target'. Defaults to the current directory if no path is given.",
    parameters=LIST_DIR,
    kind="read",
    read_only=True,
    target=path_target,
)
async def list_dir(turn: Turn, path: str | None = None, offset: int = 1) -> ToolResult:
    where, files = optional_path(path), turn.files
    # As many names as anybody may have counted to; more than a directory has are no names at all.
    most = min(offset - 1, MAX_OFFSET) + MAX_ENTRIES
    canonical, listing = await run_abandonable(lambda check: (files.resolve(where), files.list(where, limit=most)))
    entries = listing.entries[offset - 1 :]
    lines = _fitting(map(_line, entries), max(1024, turn.result_limit_bytes - NOTE_BYTES))
    if listing.total == 0:
        lines = ["[the directory is empty]"]
    elif not lines:
        lines = [f"[offset {offset} is past the end: the directory has {counted(listing.total, 'entry')}]"]
    elif (shown := offset - 1 + len(lines)) < listing.total:
        lines.append(
            f"[entries {offset}-{shown} of {listing.total} are shown; go on with offset={shown + 1}, "
            "or use search with names=true to find files by name]"
        )
    return ToolResult(
        (TextBlock("\n".join(lines)),),
        display={"title": f"List {printable(canonical)}", "locations": [{"path": full_path(files, canonical)}]},
    )


def _fitting(lines: Iterable[str], size: int) -> list[str]:
    fitting: list[str] = []
    for line in lines:
        size -= len(line.encode()) + 1
        if size < 0 and fitting:
            break
        fitting.append(line)
    return fitting


def _line(entry: Entry) -> str:
    name = printable(entry.name)
    if entry.link is not None:
        return f"{name} -> {printable(entry.link)}"
    return f"{name}/" if entry.is_dir else name
