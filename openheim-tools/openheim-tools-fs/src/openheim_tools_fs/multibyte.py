r"""Files in an encoding of East Asia, whose characters may end in the byte of an ASCII letter: what edits do not fit.

Such a file cannot be told for certain from one with a byte a character: ``e9 46`` is ``éF`` in Windows-1252 and one
character in GBK. So the question is not which encoding a file has, but whether an edit is right in each that it may
have: if it begins and ends between characters in all of them. Shapes of characters are those of the WHATWG Encoding
Standard; of Johab and EUC-TW, which are not in it, those of Python's codecs; of ISO-2022, those of ECMA-35.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ("Shape", "adds_characters", "likely_shape", "split_character")

#: A file in which more of the characters are broken is in another encoding. Damage is rarer.
MAX_BROKEN = 1 / 20
#: So many letters that stand as those of Western languages do are no coincidence.
MIN_WESTERN = 8

_ASCII = bytes(range(0x80))
# Other letters than those of ASCII stand within words there, and seldom side by side.
_WESTERN = re.compile(rb"(?<=[A-Za-z])[\xc0-\xff](?![\x80-\xff])")
_RUN = re.compile(rb"[\x80-\xff]+[\x00-\x7f]?")


@dataclass(slots=True, frozen=True)
class Shape:
    """What the characters of an encoding look like.

    Args:
        label: the encoding, for people.
        character: one character with a byte that is not ASCII, or where ASCII bytes stand for something else.
        within: the bytes that can stand in a character. Behind any other one it is safe to begin counting.
    """

    label: str
    character: re.Pattern[bytes]
    within: bytes = bytes(range(0x30, 0x100))

    def fits(self, data: bytes) -> bool:
        """Whether the file may be in this encoding."""
        rest, characters = self.character.subn(b"", data)
        return len(rest.translate(None, _ASCII)) <= characters * MAX_BROKEN

    def first_split(self, data: bytes, borders: Iterable[int]) -> int | None:
        """The first of the borders that is inside of a character."""
        position = 0
        for border in borders:
            position = self._begin(data, position, border)
            # No character reaches further behind a border than three bytes; nor does what ends a line of ISO-2022.
            for found in self.character.finditer(data, position, border + 3):
                if found.start() >= border:
                    break
                if found.end() > border:
                    return border
                position = found.end()
        return None

    def _begin(self, data: bytes, start: int, border: int) -> int:
        """Where the last stretch before a border begins that may hold a character."""
        size = 256
        while True:
            begin = max(start, border - size)
            rest = data[begin:border].rstrip(self.within)
            if rest or begin == start:
                return begin + len(rest)
            size *= 4


_SHAPES = (
    Shape("Shift_JIS", re.compile(rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]|[\xa1-\xdf]")),
    Shape(
        "GBK or GB 18030",
        re.compile(rb"[\x81-\xfe](?:[\x40-\x7e\x80-\xfe]|[\x30-\x39][\x81-\xfe][\x30-\x39])"),
    ),
    Shape("Big5", re.compile(rb"[\x81-\xfe][\x40-\x7e\xa1-\xfe]")),
    Shape("Windows-949", re.compile(rb"[\x81-\xfe][\x41-\x5a\x61-\x7a\x81-\xfe]")),
    Shape(
        "Johab",
        re.compile(rb"[\x84-\xd3][\x41-\x7e\x81-\xfe]|[\xd8-\xde\xe0-\xf9][\x31-\x7e\x91-\xfe]"),
    ),
    Shape("EUC-JP", re.compile(rb"\x8f[\xa1-\xfe]{2}|[\x8e\xa1-\xfe][\xa1-\xfe]")),
    Shape("EUC-TW", re.compile(rb"\x8e[\xa1-\xb0][\xa1-\xfe]{2}|[\xa1-\xfe]{2}")),
)
# From one escape sequence to another, or to the end of the line, ASCII bytes stand for halves of characters.
_SHIFTED = Shape("ISO-2022", re.compile(rb"\x1b\$(?:[^\n\x1b]|\x1b\$)*(?:\x1b\([^\n])?"), bytes(set(range(256)) - {10}))


def split_character(data: bytes, borders: Sequence[int]) -> tuple[Shape, int] | None:
    """A border that is inside of a character if the file has a certain shape, as it may; None if there is none.

    Args:
        data: the whole file, which is not UTF-8, or is all ASCII.
        borders: offsets in it, growing.
    """
    for shape in _candidates(data):
        place = shape.first_split(data, borders)
        # Whether the whole file fits takes longer, and is seldom asked.
        if place is not None and shape.fits(data):
            return shape, place
    return None


def likely_shape(data: bytes) -> Shape | None:
    """A shape that the file may have, if it does not look like one with a byte a character."""
    if not data.isascii() and _looks_western(data, least=1):
        return None
    return next((shape for shape in _candidates(data) if shape.fits(data)), None)


def _candidates(data: bytes) -> Sequence[Shape]:
    if data.isascii():
        return (_SHIFTED,) if b"\x1b$" in data else ()
    return () if _looks_western(data, least=MIN_WESTERN) else _SHAPES


def _looks_western(data: bytes, *, least: int) -> bool:
    """Whether three of four bytes that are not ASCII, and ``least`` of them, are letters within Western words."""
    letters = len(_WESTERN.findall(data))
    return letters >= least and letters * 4 >= len(data.translate(None, _ASCII)) * 3


def adds_characters(old: bytes, new: bytes) -> bool:
    """Whether the new content of a file has anything that is not ASCII and was not in the old one, as it was there."""
    return not set(_RUN.findall(old)).issuperset(_RUN.findall(new))
