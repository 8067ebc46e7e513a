"""Replacing text in the bytes of a file so that all other bytes stay as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from openheim import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openheim_tools_fs.encoding import Encoding

__all__ = ("Edit", "find_edit")


@dataclass(slots=True, frozen=True)
class Edit:
    """Where the old text stands and what takes its place.

    Args:
        places: offsets of the occurrences, growing, not overlapping.
        old: the bytes that are replaced at each of them.
        new: what each place gets, in the same order.
        ambiguous: whether the old text stands in more than one place, overlapping ones counted too.
    """

    places: tuple[int, ...]
    old: bytes
    new: tuple[bytes, ...]
    ambiguous: bool

    def applied(self, data: bytes) -> bytes:
        pieces: list[bytes] = []
        end = 0
        for place, new in zip(self.places, self.new, strict=True):
            pieces += (data[end:place], new)
            end = place + len(self.old)
        return b"".join((*pieces, data[end:]))


def find_edit(data: bytes, encoding: Encoding, old: str, new: str) -> Edit | None:
    """Finds the old text exactly, or else with the other kind of line ends; None if it is nowhere.

    Line ends are never guessed where they were given: ``new`` follows the file only where ``old`` does not tell.

    Raises:
        ToolError: ``new`` has characters that the file's encoding has not.
    """
    for sought, ends in _spellings(old):
        try:
            needle = sought.encode(encoding.codec)
        except UnicodeEncodeError:
            return None
        places = tuple(_occurrences(data, needle, encoding.unit))
        if not places:
            continue
        ambiguous = len(places) > 1 or _find(data, needle, places[0] + encoding.unit, encoding.unit) >= 0
        if ends is not None:
            replacements = (_encoded(_with_ends(new, ends), encoding),) * len(places)
        elif "\n" in old or "\n" not in new:
            replacements = (_encoded(new, encoding),) * len(places)
        else:
            spelled = {end: _encoded(_with_ends(new, end), encoding) for end in ("\n", "\r\n")}
            replacements = tuple(spelled[_line_end_at(data, place, encoding)] for place in places)
        return Edit(places, needle, replacements, ambiguous)
    return None


def _spellings(old: str) -> Iterator[tuple[str, str | None]]:
    """The old text as given, then with other line ends; and the line ends that the new text must then have."""
    yield old, None
    if "\n" in old:
        for end in ("\r\n", "\n"):
            other = _with_ends(old, end)
            if other != old:
                yield other, end


def _with_ends(text: str, end: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", end)


def _encoded(text: str, encoding: Encoding) -> bytes:
    try:
        return text.encode(encoding.codec)
    except UnicodeEncodeError as err:
        character = text[err.start]
        raise ToolError(
            f"the file is {encoding.label}, which has no character {character!r}",
            hint="use other characters, or write the whole file with write_file, which makes it UTF-8",
        ) from err


def _line_end_at(data: bytes, place: int, encoding: Encoding) -> str:
    """The line end of the line at ``place``, or of the one before if that is the last."""
    feed = "\n".encode(encoding.codec)
    pair = "\r\n".encode(encoding.codec)
    end = _find(data, feed, place, encoding.unit)
    if end < 0:
        end = data.rfind(feed, 0, place)
    start = end + len(feed) - len(pair)
    return "\r\n" if end >= 0 and start >= 0 and data[start : end + len(feed)] == pair else "\n"


def _occurrences(data: bytes, needle: bytes, unit: int) -> Iterator[int]:
    place = _find(data, needle, 0, unit)
    while place >= 0:
        yield place
        place = _find(data, needle, place + len(needle), unit)


def _find(data: bytes, needle: bytes, start: int, unit: int) -> int:
    """As ``bytes.find``, at whole characters only."""
    place = data.find(needle, start)
    while place >= 0 and place % unit:
        place = data.find(needle, place + 1)
    return place
