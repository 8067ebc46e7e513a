"""The tool edit_file: a piece of text replaced by another, every other byte kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio.to_thread

from openheim import TextBlock, ToolError, ToolResult, Turn, tool
from openheim_tools_fs.encoding import UTF_8, Encoding, detect_in, possible_utf16
from openheim_tools_fs.replacing import Edit, find_edit
from openheim_tools_fs.results import counted, edit_display, path_target, printable, short_diff
from openheim_tools_fs.schemas import EDIT_FILE

if TYPE_CHECKING:
    from openheim.files import Files

__all__ = ("edit_file",)

#: Longer files are refused: they are read into memory, and are seldom meant to be edited by hand.
MAX_FILE_BYTES = 10 * 1024 * 1024
#: How many line numbers a result names.
MAX_LINES_NAMED = 10


@tool(
    description="Edit a file by replacing an exact occurrence of old_string with new_string, without rewriting the "
    "whole file. old_string must match the file's existing content exactly (including whitespace/indentation) and must "
    "be unique in the file unless replace_all is set. Use write_file instead to create a new file or replace a file's "
    "entire contents.",
    parameters=EDIT_FILE,
    kind="edit",
    target=path_target,
)
async def edit_file(path: str, old_string: str, new_string: str, turn: Turn, replace_all: bool = False) -> ToolResult:
    if not old_string:
        raise ToolError("old_string is empty; give the text to replace, or use write_file for the whole file")
    if old_string == new_string:
        raise ToolError("old_string and new_string are the same, so there is nothing to change")
    change = _Change(path, old_string, new_string, replace_all)
    # Not abandoned when cancelled: an edit is short, and half of one would be worse.
    return await anyio.to_thread.run_sync(_edit, turn.files, change)


def _edit(files: Files, change: _Change) -> ToolResult:
    canonical = files.resolve(change.path)
    old, new = files.update(change.path, change.made_in, limit=MAX_FILE_BYTES)
    replaced = counted(len(change.lines), "occurrence")
    text = f"Edited {printable(canonical)}: replaced {replaced} at {_named(change.lines)}"
    diff = short_diff(old, new) or short_diff(change.old.encode(), change.new.encode())
    return ToolResult((TextBlock(text),), display=edit_display(files, canonical, "Edit", change.lines[0], diff))


@dataclass(slots=True)
class _Change:
    path: str
    old: str
    new: str
    everywhere: bool
    #: Line numbers of the places, known once the change is made.
    lines: list[int] = field(default_factory=list)

    def made_in(self, data: bytes) -> bytes:
        detected = detect_in(data)
        encoding = detected or UTF_8
        edit = find_edit(data, encoding, self.old, self.new)
        if edit is None:
            from openheim_tools_fs.nearest import nearest_lines

            raise ToolError(
                f"old_string is not in {self.path!r}; it must match exactly, with all blanks"
                f"{nearest_lines(data.decode(encoding.codec, errors='replace'), self.old)}"
            )
        self.lines = _line_numbers(data, edit, encoding)
        if edit.ambiguous and not self.everywhere:
            raise ToolError(
                f"old_string stands in {self.path!r} more than once, at {_named(self.lines)}; "
                "add lines around it to make it unique, or set replace_all"
            )
        changed = edit.applied(data)
        if encoding.unit == 1 and (detected is None or not detected.is_utf8 or data.isascii()):
            self._refuse_what_is_uncertain(data, edit, changed)
        return changed

    def _refuse_what_is_uncertain(self, data: bytes, edit: Edit, changed: bytes) -> None:
        """Refuses what would be wrong if the file has an encoding with several bytes a character, as it may have."""
        from openheim_tools_fs.multibyte import adds_characters, likely_shape, split_character

        if b"\0" in data and possible_utf16(data):
            raise ToolError(
                f"{self.path!r} may be UTF-16, or a binary file: nothing tells which",
                hint="have it converted to UTF-8 first, for instance with iconv; or write the whole file",
            )
        borders = [border for place in edit.places for border in (place, place + len(edit.old))]
        if (split := split_character(data, borders)) is not None:
            shape, border = split
            line = data.count(b"\n", 0, border) + 1
            raise ToolError(
                f"{self.path!r} is not UTF-8, and may be {shape.label}: then an end of old_string in line {line} is "
                "inside of a character",
                hint="let old_string begin and end beside ASCII, best with whole lines; or have the file converted to "
                "UTF-8 first, for instance with iconv",
            )
        if not self.new.isascii() and adds_characters(data, changed) and (likely := likely_shape(data)) is not None:
            raise ToolError(
                f"{self.path!r} is not UTF-8, and may be {likely.label}: then what new_string has besides ASCII "
                "would be wrong",
                hint="use ASCII, or have the file converted to UTF-8 first, for instance with iconv",
            )


def _line_numbers(data: bytes, edit: Edit, encoding: Encoding) -> list[int]:
    feed = "\n".encode(encoding.codec)
    numbers = []
    line, end = 1, 0
    for place in edit.places:
        line += data.count(feed, end, place)
        end = place
        numbers.append(line)
    return numbers


def _named(lines: list[int]) -> str:
    named = ", ".join(str(line) for line in lines[:MAX_LINES_NAMED])
    more = len(lines) - MAX_LINES_NAMED
    return f"line{'s' if len(lines) > 1 else ''} {named}" + (f" and {more} more" if more > 0 else "")
