"""Text that every match of a regular expression holds, found without understanding much of it.

It is ASCII, so it stands in a file as it is in all encodings but those with several bytes for each character.
"""

from __future__ import annotations

import re

__all__ = ("required_text",)

#: More than this of it tells no more, and costs time where the system's search for bytes is a plain one.
MAX_BYTES = 64

# Escapes that stand for one character or none. Others (an octal number, a class by name) have letters behind them that
# are no text; a pattern with one of them is not looked into.
_KNOWN_ESCAPES = frozenset("wWdDsSbBAz")
_REPEAT = re.compile(r"\{\d*,?\d*\}")
_OPTIONAL = ("*", "?", "{")


def required_text(pattern: str) -> bytes:
    """The longest such text that shows at once, or its beginning; empty if none does.

    The engines differ in what they allow, and agree in all that is looked at here: letters, sets, groups, repeats.
    """
    # Choices, flags and the like may make anything optional.
    if "|" in pattern or "(?" in pattern or "\n" in pattern:
        return b""
    found, run, depth, place = "", "", 0, 0
    while place < len(pattern):
        char = pattern[place]
        taken = ""
        if char == "\\":
            place += 1
            escaped = pattern[place : place + 1]
            if escaped.isalnum():
                if escaped not in _KNOWN_ESCAPES:
                    return b""
            else:
                taken = escaped
        elif char == "[":
            end = _end_of_set(pattern, place)
            if end is None:
                return b""
            place = end
        elif char == "{" and (repeat := _REPEAT.match(pattern, place)):
            place = repeat.end() - 1
        elif char in "()":
            depth += 1 if char == "(" else -1
        elif char not in ".^$*+?{}":
            taken = char
        place += 1
        # What is in a group may be optional as a whole.
        if not taken or not taken.isascii() or depth or pattern.startswith(_OPTIONAL, place):
            run = ""
            continue
        run += taken
        found = max(found, run, key=len)
        if pattern.startswith("+", place):
            run = ""
    return found.encode()[:MAX_BYTES]


def _end_of_set(pattern: str, begin: int) -> int | None:
    """Where the bracket that opens at ``begin`` closes; None if that is not plain to see."""
    place = begin + 1
    if pattern.startswith("^", place):
        place += 1
    if pattern.startswith("]", place):
        place += 1
    while place < len(pattern):
        if pattern[place] == "]":
            return place
        if pattern[place] == "[":
            return None  # Perhaps a class by name.
        place += 2 if pattern[place] == "\\" else 1
    return None
