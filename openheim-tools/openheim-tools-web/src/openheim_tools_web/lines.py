"""Text that is put together from inline pieces and breaks: blanks collapsed, at most one blank line between blocks."""

from __future__ import annotations

import re

__all__ = ("Lines",)

_BLANKS = re.compile(r"[ \t\n\r\f\v]+")


class Lines:
    """Text as it grows.

    Attributes:
        length: characters so far.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.length = 0
        self._at_start = True  # of a line
        self._breaks = 0  # that are due before the next text
        self._blank = False  # that is due before the next text
        self._prefix = ""  # of the next line
        self._joined = False  # whether the next text belongs right behind the last one

    def __len__(self) -> int:
        """The number of parts; what :meth:`since` counts from."""
        return len(self._parts)

    def since(self, first: int, last: int | None = None) -> str:
        return "".join(self._parts[first:last])

    @property
    def line_is_empty(self) -> bool:
        """Whether the next text begins a line."""
        return self._at_start or self._breaks > 0

    def write(self, text: str) -> None:
        """Adds inline text; runs of blanks become one, and none at the start of a line."""
        collapsed = _BLANKS.sub(" ", text)
        if collapsed.startswith(" "):
            self._blank = True
            collapsed = collapsed[1:]
        if not collapsed:
            return
        ends_blank = collapsed.endswith(" ")
        self._open_line()
        self._put((" " if self._blank and not self._at_start else "") + collapsed.removesuffix(" "))
        self._at_start, self._blank, self._joined = False, ends_blank, False

    def write_exactly(self, text: str) -> None:
        """Adds text whose blanks and line breaks count."""
        if not text:
            return
        if self._breaks or self._prefix:
            self._open_line()
        elif self._blank and not self._at_start:
            self._put(" ")
        self._put(text)
        self._at_start, self._blank, self._joined = text.endswith("\n"), False, False

    def break_line(self, count: int = 1) -> None:
        """Ends the line; 2 leaves a blank line too. Breaks in a row do not add up, nor count behind a prefix."""
        self._blank = False
        if self._joined or self._prefix:
            return
        self._breaks = max(self._breaks, count)

    def begin(self, prefix: str) -> None:
        """What comes in front of the next text, if any comes before the next one of these; ``""`` takes it back."""
        self._prefix = prefix

    def join(self, text: str) -> None:
        """Adds a separator in place of breaks that are due."""
        self._breaks, self._blank, self._prefix = 0, False, ""
        self._put(text)
        self._at_start = self._joined = True

    def end_row(self, text: str) -> None:
        """Adds what ends a row of a table, in place of breaks that are due, and ends the line."""
        self.join(text)
        self._joined = False
        self.break_line()

    def _open_line(self) -> None:
        if self._breaks:
            if self._parts:
                # A line that was ended already, by exact text, has one of them.
                self._put("\n" * (self._breaks - (1 if self._ends_line() else 0)))
            self._breaks, self._at_start = 0, True
        if self._prefix:
            if not self._at_start:
                self._put(" ")
            self._put(self._prefix)
            self._prefix, self._at_start = "", True

    def _ends_line(self) -> bool:
        return self._parts[-1].endswith("\n")

    def _put(self, text: str) -> None:
        if text:
            self._parts.append(text)
            self.length += len(text)
