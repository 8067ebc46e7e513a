"""How the bytes of a file stand for text: found out from its beginning, and turned into UTF-8 for reading."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ("SAMPLE_BYTES", "UTF_8", "Encoding", "detect", "detect_in", "possible_utf16", "utf8_chunks")

#: How much of a file's beginning :func:`detect` wants to see.
SAMPLE_BYTES = 64 * 1024

# Control characters that text files do have: backspace, tab, line feed, vertical tab, form feed, return, escape.
_CONTROLS = bytes(code for code in range(32) if code not in (8, 9, 10, 11, 12, 13, 27))
# Those that Python does not call printable, though text of any script has them: line ends, wide and joining blanks.
_BLANKS = dict.fromkeys(map(ord, "\t\n\f\r\u00a0\u3000\u200b\u200c\u200d\u2009\ufeff"))


@dataclass(slots=True, frozen=True)
class Encoding:
    """An encoding.

    Args:
        codec: Python's name of it, which writes and expects no byte-order mark.
        label: its name for people.
        mark: the byte-order mark that the file begins with.
        unit: bytes of the smallest step from one character to the next.
    """

    codec: str
    label: str
    mark: bytes = b""
    unit: int = 1

    @property
    def is_utf8(self) -> bool:
        return self.codec == "utf-8"


UTF_8 = Encoding("utf-8", "UTF-8")

# The marks of UTF-32 come first: the little-endian one begins like that of UTF-16.
_MARKED = (
    Encoding("utf-8", "UTF-8", codecs.BOM_UTF8),
    Encoding("utf-32-le", "UTF-32", codecs.BOM_UTF32_LE, unit=4),
    Encoding("utf-32-be", "UTF-32", codecs.BOM_UTF32_BE, unit=4),
    Encoding("utf-16-le", "UTF-16", codecs.BOM_UTF16_LE, unit=2),
    Encoding("utf-16-be", "UTF-16", codecs.BOM_UTF16_BE, unit=2),
)


def detect(sample: bytes) -> Encoding | None:
    """The encoding of a file that begins with ``sample``; None if it is no text.

    A sample of less than :data:`SAMPLE_BYTES` is the whole file.

    Windows-1252 stands for every encoding with one byte a character: ASCII is right in all of them.
    """
    if sample.isascii() and b"\0" not in sample:
        return UTF_8
    for encoding in _MARKED:
        if sample.startswith(encoding.mark):
            return encoding
    if b"\0" in sample:
        return _unmarked_utf16(sample)
    try:
        # A character cut by the end of the sample is no fault, unless the file ends there too.
        codecs.utf_8_decode(sample, "strict", len(sample) < SAMPLE_BYTES)
    except UnicodeDecodeError:
        return _not_utf8(sample)
    return UTF_8


def detect_in(data: bytes) -> Encoding | None:
    """As :func:`detect`, of a whole file: one that begins in ASCII may go on in another encoding far below."""
    encoding = detect(data[:SAMPLE_BYTES])
    if encoding is not UTF_8 or data.isascii():
        return encoding
    try:
        codecs.utf_8_decode(data, "strict", True)
    except UnicodeDecodeError as err:
        start = max(0, err.start - SAMPLE_BYTES // 2)
        return _not_utf8(data[start : start + SAMPLE_BYTES]) or UTF_8
    return UTF_8


def _unmarked_utf16(sample: bytes) -> Encoding | None:
    """Text in a Latin script shows as a NUL in every other byte, and in no byte between."""
    for codec, high, low in (("utf-16-le", sample[1::2], sample[0::2]), ("utf-16-be", sample[0::2], sample[1::2])):
        likely = b"\0" not in low and high.count(0) * 2 > len(high) > 1
        if likely and not _is_binary(sample[: len(low) * 2].decode(codec, errors="replace").encode()):
            return Encoding(codec, "UTF-16", unit=2)
    # Of other scripts, whichever order gives nothing but characters that text has, if only one does, and blanks.
    orders = possible_utf16(sample)
    if len(orders) == 1 and not {"\n", " "}.isdisjoint(sample.decode(orders[0], errors="ignore")):
        return Encoding(orders[0], "UTF-16", unit=2)
    return None


def possible_utf16(data: bytes) -> list[str]:
    """The codecs of UTF-16 in which the bytes are characters that text has, and nothing else."""
    if len(data) % 2:
        return []
    decoded = (("utf-16-le", codecs.utf_16_le_decode), ("utf-16-be", codecs.utf_16_be_decode))
    return [codec for codec, decode in decoded if _is_plain(data, decode)]


def _is_plain(data: bytes, decode: Callable[[bytes, str, bool], tuple[str, int]]) -> bool:
    try:
        text, _ = decode(data, "strict", False)
    except UnicodeDecodeError:
        return False
    return text.translate(_BLANKS).isprintable()


def _is_binary(sample: bytes) -> bool:
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    return controls * 100 > len(sample)


def _not_utf8(sample: bytes) -> Encoding | None:
    if _is_binary(sample):
        return None
    text = sample.decode("utf-8", errors="replace")
    broken = text.count("\ufffd")
    if sum(character > "\x7f" for character in text) - broken > broken:
        return UTF_8  # Most of what is not ASCII is right: UTF-8 with damage.
    try:
        sample.decode("cp1252")
    except UnicodeDecodeError:
        return Encoding("latin-1", "Latin-1")
    return Encoding("cp1252", "Windows-1252")


def utf8_chunks(chunks: Iterable[bytes], encoding: Encoding) -> Iterator[bytes]:
    """The same text as UTF-8. What cannot be decoded becomes U+FFFD, except in UTF-8, which passes as it is."""
    if encoding.is_utf8:
        yield from chunks
        return
    decoder = codecs.getincrementaldecoder(encoding.codec)(errors="replace")
    for chunk in chunks:
        if text := decoder.decode(chunk):
            yield text.encode()
    if text := decoder.decode(b"", final=True):
        yield text.encode()
