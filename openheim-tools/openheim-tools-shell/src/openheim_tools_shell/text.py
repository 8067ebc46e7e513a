"""What a command wrote, as plain text: no bytes that are no UTF-8, no colours, no line that was overwritten."""

from __future__ import annotations

import codecs
import re

__all__ = ("PlainText", "plain")

#: Characters of a line that is not ended yet beyond which it is taken as it stands.
_MAX_LINE = 16 * 1024

#: What drives terminals, but for line ends and tabs.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")

# ECMA-48: control sequences, strings (titles, links, pictures) up to their end or that of the line, other escapes.
_ESCAPE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\\\|\x9c)?"
    "|\x1b[ -/]*[0-~]"
)


def plain(text: str) -> str:
    """Whole lines without control codes; of a line that was written anew (progress, say) its last state."""
    if _CONTROL.search(text) is None:
        return text
    text = _ESCAPE.sub("", text)
    if "\r" in text or "\b" in text:
        text = "\n".join(map(_settled, text.split("\n")))
    return _CONTROL.sub("", text)


def _settled(line: str) -> str:
    """A line as it is left on a terminal, near enough."""
    if "\r" in line:
        line = next((part for part in reversed(line.split("\r")) if part), "")
    if "\b" in line:
        kept: list[str] = []
        for char in line:
            if char != "\b":
                kept.append(char)
            elif kept:
                kept.pop()
        line = "".join(kept)
    return line


class PlainText:
    """Makes plain text of bytes that come in pieces, cut anywhere."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._open = ""

    def feed(self, data: bytes) -> str:
        """The lines that these bytes complete."""
        text = self._open + self._decoder.decode(data)
        end = text.rfind("\n") + 1
        self._open = text[end:]
        text = text[:end]
        if len(self._open) > _MAX_LINE:
            # Of an endless progress line only the last state counts, and anything else has to go on some time.
            self._open = self._open[self._open.rfind("\r", 0, -1) + 1 :]
            if len(self._open) > _MAX_LINE:
                text, self._open = text + self._open, ""
        return plain(text)

    @property
    def open_line(self) -> str:
        """The line that is not ended yet."""
        return plain(self._open)

    def flush(self, *, final: bool = False) -> str:
        """The line that is not ended yet, which is not given out again.

        Args:
            final: nothing comes any more, so that a character cut short is shown as such.
        """
        text = plain(self._open + self._decoder.decode(b"", final))
        self._open = ""
        return text
