"""The tool write_file: a file's whole content."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio.to_thread

from openheim import TextBlock, ToolError, ToolResult, Turn, tool
from openheim_tools_fs.encoding import detect_in
from openheim_tools_fs.results import counted, edit_display, path_target, printable, short_diff
from openheim_tools_fs.schemas import WRITE_FILE

if TYPE_CHECKING:
    from openheim.files import Files

__all__ = ("write_file",)

#: How much of a file that is written over is looked at, for the display and for what the result says about it.
MAX_OLD_BYTES = 1024 * 1024


@tool(
    description="Write content to a file at the specified path. Creates the file if it doesn't exist.",
    parameters=WRITE_FILE,
    kind="edit",
    target=path_target,
)
async def write_file(path: str, content: str, turn: Turn) -> ToolResult:
    # Not abandoned when cancelled: a write is short, and half of one would be worse.
    return await anyio.to_thread.run_sync(_write, turn.files, path, content)


def _write(files: Files, path: str, content: str) -> ToolResult:
    try:
        data = content.encode()
    except UnicodeEncodeError as err:
        raise ToolError("content holds half of a surrogate pair, which cannot be written") from err
    canonical = files.resolve(path)
    old = _old_content(files, path)
    notes: list[str] = []
    if old is not None:
        data, notes = _in_keeping_with(old, data)
    existed = files.replace(path, data)

    lines = content.count("\n") + (content != "" and not content.endswith("\n"))
    done = f"{'Replaced' if existed else 'Created'} {printable(canonical)}"
    text = f"{done}: {counted(lines, 'line')}, {counted(len(data), 'byte')}"
    display = edit_display(files, canonical, "Write", 1, short_diff(old, data))
    return ToolResult((TextBlock("; ".join((text, *notes))),), display=display)


def _old_content(files: Files, path: str) -> bytes | None:
    """The beginning of the file that is there; None without one."""
    found = files.info(path)
    if found is None or found.kind != "file":
        return None
    with files.open_read(path) as file:
        return file.read(MAX_OLD_BYTES)


def _in_keeping_with(old: bytes, data: bytes) -> tuple[bytes, list[str]]:
    """The new content with the byte-order mark of the old, and what else the model should know about the old one."""
    notes: list[str] = []
    encoding = detect_in(old)
    if encoding is None:
        notes.append("it was a binary file")
    elif not encoding.is_utf8:
        notes.append(f"it was {encoding.label} and is UTF-8 now")
    elif encoding.mark and not data.startswith(encoding.mark):
        data = encoding.mark + data
        notes.append("its byte-order mark is kept")
    before, after = _line_ends(old), _line_ends(data)
    if before and after and before != after:
        notes.append(f"its line ends were {before} and are {after} now")
    return data, notes


def _line_ends(data: bytes) -> str:
    feeds, pairs = data.count(b"\n"), data.count(b"\r\n")
    if not feeds:
        return ""
    return "LF" if not pairs else "CR LF" if pairs == feeds else "mixed"
