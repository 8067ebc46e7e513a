"""The tool list_dir: the names in a directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openheim import TextBlock, ToolResult, Turn, tool
from openheim_tools_fs.results import counted, full_path, optional_path, path_target, printable
from openheim_tools_fs.schemas import LIST_DIR
from openheim_tools_fs.threads import run_abandonable

if TYPE_CHECKING:
    from openheim.files import Entry

__all__ = ("list_dir",)

MAX_ENTRIES = 500


@tool(
    description="List the immediate contents of a directory (not recursive). Directories are suffixed with '/' and "
    "symlinks are shown as 'name -> target'. Defaults to the current directory if no path is given.",
    parameters=LIST_DIR,
    kind="read",
    read_only=True,
    target=path_target,
)
async def list_dir(turn: Turn, path: str | None = None) -> ToolResult:
    where, files = optional_path(path), turn.files
    canonical, listing = await run_abandonable(
        lambda check: (files.resolve(where), files.list(where, limit=MAX_ENTRIES))
    )
    lines = [_line(entry) for entry in listing.entries]
    left_out = listing.total - len(lines)
    if not lines:
        lines = ["[the directory is empty]"]
    elif left_out > 0:
        lines.append(f"[{counted(left_out, 'more entry')} not shown; use search with names=true to find files by name]")
    return ToolResult(
        (TextBlock("\n".join(lines)),),
        display={"title": f"List {printable(canonical)}", "locations": [{"path": full_path(files, canonical)}]},
    )


def _line(entry: Entry) -> str:
    name = printable(entry.name)
    if entry.link is not None:
        return f"{name} -> {printable(entry.link)}"
    return f"{name}/" if entry.is_dir else name
