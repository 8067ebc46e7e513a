"""A file as blocks of whole lines in UTF-8, for searching."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from openheim_tools_fs.encoding import SAMPLE_BYTES, detect, utf8_chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ("SAMPLE_BYTES", "BinaryFileError", "text_blocks")

#: Files are read in blocks of about this size, cut at line ends; most files are one block.
BLOCK_BYTES = 2 * 1024 * 1024
#: A line longer than this is cut, and a match across the cut is not found.
MAX_LINE_BYTES = 8 * 1024 * 1024


class BinaryFileError(Exception):
    """The file is no text."""


def text_blocks(first: bytes, file: BinaryIO | None, check: Callable[[], None]) -> Iterator[tuple[bytes, int]]:
    """The lines of a text file, joined to blocks, with line feeds as line ends.

    Args:
        first: the file's beginning, of :data:`SAMPLE_BYTES` or more where there is that much.
        file: open behind that; None if there is no more.
        check: called for each piece read; what it raises ends the reading.

    Yields:
        A block, and how many lines the block before it had.

    Raises:
        BinaryFileError: it is no text; found out late, some blocks may have come before.
    """
    encoding = detect(first[:SAMPLE_BYTES])
    if encoding is None:
        raise BinaryFileError

    def pieces() -> Iterator[bytes]:
        piece = first[len(encoding.mark) :]
        while piece:
            yield piece
            check()
            piece = file.read(BLOCK_BYTES) if file is not None else b""

    block = b""
    lines_before = 0
    for piece in utf8_chunks(pieces(), encoding):
        if encoding.is_utf8 and b"\0" in piece:
            raise BinaryFileError
        if len(block) >= BLOCK_BYTES:
            end = block.rfind(b"\n") + 1
            if end or len(block) >= MAX_LINE_BYTES:
                end = end or len(block)
                yield _feeds_only(block[:end]), lines_before
                lines_before = block.count(b"\n", 0, end)
                block = block[end:]
        block += piece
    if block:
        yield _feeds_only(block), lines_before


def _feeds_only(block: bytes) -> bytes:
    # One character is looked for much faster than two.
    return block.replace(b"\r\n", b"\n") if b"\r" in block else block
