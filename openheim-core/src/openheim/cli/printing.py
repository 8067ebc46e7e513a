"""Prints what others wrote: a model, a file, a plugin, whoever gave a session its title.

On a terminal it must not speak to the terminal. A pipe or a file gets every character as it is.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

__all__ = ("harmless", "one_line", "print_text")

#: Control characters but for line break and tab, and what turns the direction of the text around it.
_SPEAKING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def harmless(text: str) -> str:
    """The text without what a terminal would obey, or by which it could look like another text."""
    return _SPEAKING.sub("", text)


def one_line(text: str) -> str:
    """The text without line breaks and control characters, so that one message is one line whatever it quotes."""
    return "".join(character if character.isprintable() else " " for character in " ".join(text.split()))


def print_text(text: str, *, end: str = "\n", file: TextIO | None = None) -> None:
    """Prints a text of several lines, on standard output if no file is named."""
    file = file or sys.stdout
    print(harmless(text) if file.isatty() else text, end=end, file=file)
