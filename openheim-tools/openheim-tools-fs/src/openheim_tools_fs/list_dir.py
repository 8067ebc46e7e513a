"""The tool list_dir: the names in a directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openheim import TextBlock, ToolResult, Turn, text_room, tool
from openheim_tools_fs.results import counted, full_path, optional_path, path_target, printable
from openheim_tools_fs.schemas import LIST_DIR
from openheim_tools_fs.threads import run_abandonable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from openheim.files import Entry, Listing

__all__ = ("list_dir",)

MAX_ENTRIES = 500
#: Further down a listing cannot begin: the names above it are kept in memory while it is made.
MAX_OFFSET = 100_000


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
    above, most = (offset - 1, MAX_ENTRIES) if offset <= MAX_OFFSET else (0, 0)

    def work(check: Callable[[], None]) -> tuple[str, Listing]:
        return files.resolve(where), files.list(where, limit=most, offset=above, check=check)

    canonical, listing = await run_abandonable(work)
    lines = _fitting(map(_line, listing.entries), text_room(turn))
    lines += _note(offset, len(lines), listing)
    return ToolResult(
        (TextBlock("\n".join(lines)),),
        display={"title": f"List {printable(canonical)}", "locations": [{"path": full_path(files, canonical)}]},
    )


def _note(offset: int, shown: int, listing: Listing) -> tuple[str, ...]:
    """What is to be said below the names."""
    by_name = "use search with names=true to find files by name"
    if listing.total == 0:
        return ("[the directory is empty]",)
    if offset > MAX_OFFSET and (offset <= listing.total or not listing.whole):
        return (f"[a listing can begin with one of the first {MAX_OFFSET} entries; {by_name}]",)
    if not shown:
        return (f"[offset {offset} is past the end: the directory has {counted(listing.total, 'entry')}]",)
    last = offset - 1 + shown
    if listing.whole and last >= listing.total:
        return ()
    # Those that were not read may belong anywhere among the others.
    of_total = listing.total if listing.whole else f"the first {listing.total} that the system gives, and no others,"
    go_on = f"go on with offset={last + 1}, or " if last < listing.total else ""
    return (f"[entries {offset}-{last} of {of_total} are shown; {go_on}{by_name}]",)


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
