"""The tool read_file: any part of a text file of any size, a bounded piece at a time."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from openheim import ImageBlock, TextBlock, ToolResult, Turn, text_room, tool
from openheim.files import FileVersion
from openheim_tools_fs.bookmarks import Bookmark, Bookmarks
from openheim_tools_fs.encoding import SAMPLE_BYTES, Encoding, utf8_chunks
from openheim_tools_fs.lines import Lines, Piece
from openheim_tools_fs.no_text import binary_content, text_encoding
from openheim_tools_fs.results import full_path, path_target, printable
from openheim_tools_fs.schemas import READ_FILE
from openheim_tools_fs.threads import run_abandonable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ("read_file",)

#: Most bytes of text in one result, less where the turn's limit is lower.
MAX_TEXT_BYTES = 100 * 1024
#: By how much it may be longer where it stands for bytes that are no text; the note below it needs the rest.
MAX_EXCESS_BYTES = 512
#: How far past the text the lines are counted, to give their total.
MAX_COUNT_BYTES = 64 * 1024 * 1024

_CHUNK_BYTES = 256 * 1024

_bookmarks = Bookmarks()


@tool(
    description="Read a text file. Returns up to 100 KB; a longer file ends with a note giving the offset to call "
    "again with. Use offset and limit to read a specific range of lines.",
    parameters=READ_FILE,
    kind="read",
    read_only=True,
    target=path_target,
)
async def read_file(path: str, turn: Turn, offset: int = 1, limit: int | None = None, column: int = 1) -> ToolResult:
    wanted = _Wanted(offset, column, limit, text_room(turn, MAX_TEXT_BYTES))
    files = turn.files

    takes_images = turn.takes_images

    def work(check: Callable[[], None]) -> tuple[str, tuple[TextBlock | ImageBlock, ...]]:
        canonical = files.resolve(path)
        with files.open_read(path) as file:
            sample = file.read(SAMPLE_BYTES)
            encoding = text_encoding(sample)
            if encoding is not None:
                return canonical, (TextBlock(_read(file, encoding, wanted, check)),)
            return canonical, binary_content(path, file, sample, takes_images=takes_images)

    canonical, content = await run_abandonable(work)
    return ToolResult(
        content,
        display={
            "title": f"Read {printable(canonical)}" + (f" from line {offset}" if offset > 1 else ""),
            "locations": [{"path": full_path(files, canonical), "line": offset}],
        },
    )


@dataclass(slots=True, frozen=True)
class _Wanted:
    line: int
    column: int
    lines: int | None
    size: int


def _read(file: BinaryIO, encoding: Encoding, wanted: _Wanted, check: Callable[[], None]) -> str:
    status = os.fstat(file.fileno())
    version = FileVersion.of(status)
    begin = Bookmark(position=len(encoding.mark))
    known = _bookmarks.find(version)
    if known is not None and known.leads_to(wanted.line, wanted.column):
        begin = known
    file.seek(begin.position)
    lines = Lines(utf8_chunks(_chunks(file, check), encoding))

    skipped = lines.skip_lines(wanted.line - begin.line)
    if lines.at_end:
        return _past_end(wanted.line, begin.line - 1 + skipped)
    ahead = wanted.column - (begin.column if wanted.line == begin.line else 1)
    if ahead and not lines.skip_in_line(ahead):
        return f"[line {wanted.line} has fewer than {wanted.column} bytes; call again with a smaller column]"
    piece = lines.take(wanted.lines, wanted.size)
    piece, removed = _shortened(piece, wanted.size, encoding)
    stopped_at = begin.position + lines.passed - len(removed)

    next_line, next_column = wanted.line + piece.lines, 1
    if piece.cut:
        next_line, next_column = wanted.line, wanted.column + len(piece.data)
    if lines.at_end and not removed:
        return _text(piece.data, encoding)
    total = known.total if known is not None else None
    if total is None and not (encoding.is_utf8 and status.st_size - stopped_at > MAX_COUNT_BYTES):
        rest = lines.count_rest(MAX_COUNT_BYTES)
        if rest is not None:
            total = next_line - 1 + rest + _lines_before(rest, removed)
    if encoding.is_utf8:
        _bookmarks.put(version, Bookmark(next_line, next_column, stopped_at, total))
    return f"{_text(piece.data, encoding)}{_going_on(wanted, piece, total)}"


def _chunks(file: BinaryIO, check: Callable[[], None]) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK_BYTES):
        check()
        yield chunk


def _text(data: bytes, encoding: Encoding) -> str:
    """The text as the model gets it, with a note if it is not what the bytes say."""
    notes = []
    if not encoding.is_utf8:
        notes.append(f"[this file is not UTF-8; it is shown as {encoding.label}]")
    text = data.decode("utf-8", errors="replace").replace("\0", "\ufffd")
    if "\ufffd" in text and encoding.is_utf8 and text.encode() != data:
        notes.append("[bytes that are not UTF-8 text are shown as \ufffd]")
    return "\n".join((text.removesuffix("\n"), *notes)) + "\n" if notes else text


def _shortened(piece: Piece, size: int, encoding: Encoding) -> tuple[Piece, bytes]:
    """The piece without its end, if its text is longer than its bytes: what is no text is shown by longer characters.

    Returns:
        The piece, and what was taken off it.
    """
    data = piece.data
    while data and (length := len(_text(data, encoding).encode())) > size + MAX_EXCESS_BYTES:
        end = max(1, len(data) * size // length - 1)
        # Whole lines where there are any; else not through a character, whose later bytes begin with the bits 10.
        whole = data.rfind(b"\n", 0, end) + 1
        while not whole and end > 1 and data[end] & 0xC0 == 0x80:
            end -= 1
        data = data[: whole or end]
    if len(data) == len(piece.data):
        return piece, b""
    cut = not data.endswith(b"\n")
    return Piece(data, data.count(b"\n") + cut, cut), piece.data[len(data) :]


def _lines_before(rest: int, removed: bytes) -> int:
    """How many more lines there are if ``removed`` stands before ``rest`` lines, which may begin within a line."""
    alone = rest == 0 and removed != b"" and not removed.endswith(b"\n")
    return removed.count(b"\n") + alone


def _going_on(wanted: _Wanted, piece: Piece, total: int | None) -> str:
    if piece.cut:
        end = wanted.column + len(piece.data) - 1
        return (
            f"\n[line {wanted.line} is cut: bytes {wanted.column}-{end} of it are shown; go on with "
            f"offset={wanted.line} and column={end + 1}, or with offset={wanted.line + 1} for the next line]"
        )
    last = wanted.line + piece.lines - 1
    of_total = f" of {total}" if total is not None else ""
    return f"[lines {wanted.line}-{last}{of_total} are shown; go on with offset={last + 1}]"


def _past_end(line: int, total: int) -> str:
    if total == 0:
        return "[the file is empty]"
    return f"[offset {line} is past the end: the file has {total} line{'s' if total != 1 else ''}]"
