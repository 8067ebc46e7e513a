"""A file as blocks of whole lines in UTF-8, for searching."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from openheim_tools_fs.encoding import SAMPLE_BYTES, detect, utf8_chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ("BinaryFileError", "text_blocks")

#: Files are read in blocks of about this size, cut at line ends; most files are one block.
BLOCK_BYTES = 2 * 1024 * 1024
#: A line longer than this is cut, and a match across the cut is not found.
MAX_LINE_BYTES = 8 * 1024 * 1024


class BinaryFileError(Exception):
    """The file is no text."""


def text_blocks(file: BinaryIO, check: Callable[[], None]) -> Iterator[bytes]:
    """The lines of a text file, joined to blocks, with line feeds as line ends.

    Args:
        file: open at its beginning.
        check: called for each piece read; what it raises ends the reading.

    Raises:
        BinaryFileError: it is no text; found out late, some blocks may have come before.
    """
    first = file.read(BLOCK_BYTES)
    encoding = detect(first[:SAMPLE_BYTES])
    if encoding is None:
        raise BinaryFileError

    def pieces() -> Iterator[bytes]:
        piece = first[len(encoding.mark) :]
        while piece:
            check()
            yield piece
            piece = file.read(BLOCK_BYTES)

    block = b""
    for piece in utf8_chunks(pieces(), encoding):
        if encoding.is_utf8 and b"\0" in piece:
            raise BinaryFileError
        if len(block) >= BLOCK_BYTES:
            end = block.rfind(b"\n") + 1
            if end or len(block) >= MAX_LINE_BYTES:
                end = end or len(block)
                yield _feeds_only(block[:end])
                block = block[end:]
        block += piece
    if block:
        yield _feeds_only(block)


def _feeds_only(block: bytes) -> bytes:
    return block.replace(b"\r\n", b"\n") if b"\r\n" in block else block
