"""Wildcards of ignore files as regular expressions, by the rules of git (``gitignore(5)`` and ``wildmatch.c``).

A match takes time in proportion to the path times the stars: once the text between two stars is found, nothing looks
for it anywhere else (the groups are atomic), so a pattern from a repository cannot hang a search.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("MalformedError", "braces_expanded", "expression")

#: What a class such as ``[[:alpha:]]`` stands for; all of them are about ASCII.
_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r"\ \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    "space": r"\ \t\n\r\f\v",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}

_NOT_CLOSED = "a bracket is not closed"
_ESCAPES_NOTHING = "nothing stands behind the last backslash"

_STAR, _DEEP_STAR, _SLASH = "*", "**", "/"

#: How many patterns one with braces may stand for.
MAX_ALTERNATIVES = 1000


class MalformedError(ValueError):
    """The pattern has no meaning, and the text says why; to git it matches nothing."""


def expression(wildcard: str) -> str:
    """A regular expression that matches (``re.fullmatch``) the paths that the wildcard matches.

    Args:
        wildcard: one without the marks of an ignore file's line (``!``, a slash at either end).

    Both take time in proportion to the wildcard.

    Raises:
        MalformedError: a bracket is not closed, or a backslash has nothing behind it.
    """
    tokens = list(_tokens(wildcard))
    pieces: list[str] = []
    # What stands behind a star that is not the last of its kind is taken where it comes first, and that is settled.
    settling = deep_settling = False
    for index, (token, (star_follows, deep_star_follows)) in enumerate(zip(tokens, _following(tokens), strict=True)):
        if token == _DEEP_STAR:
            pieces.append(")" * (settling + deep_settling))
            settling, deep_settling = False, deep_star_follows
            is_last = index == len(tokens) - 1
            pieces.append(".*" if is_last else f"{'(?>' * deep_settling}(?:[^/]+/)*?")
        elif token == _STAR:
            pieces.append(")" * settling)
            settling = star_follows
            pieces.append("(?>[^/]*?" if settling else "[^/]*")
        elif token != _SLASH or not index or tokens[index - 1] != _DEEP_STAR:  # Else it went with the stars.
            pieces.append(token)
    return "".join(pieces)


def _following(tokens: list[str]) -> list[tuple[bool, bool]]:
    """For each token, whether one more star stands behind it in the same component, and whether a double one does."""
    following = []
    star = deep_star = False
    for token in reversed(tokens):
        following.append((star, deep_star))
        if token == _DEEP_STAR:
            star, deep_star = False, True
        elif token == _SLASH:
            star = False
        elif token == _STAR:
            star = True
    following.reverse()
    return following


def _tokens(wildcard: str) -> Iterator[str]:
    place = 0
    while place < len(wildcard):
        char = wildcard[place]
        if char == "*":
            begin = place
            while wildcard[place : place + 1] == "*":
                place += 1
            alone = (begin == 0 or wildcard[begin - 1] == "/") and (
                wildcard[place : place + 1] in ("", "/") or wildcard[place : place + 2] == "\\/"
            )
            yield _DEEP_STAR if alone and place - begin > 1 else _STAR
            continue
        if char == "?":
            yield "[^/]"
        elif char == "[":
            text, place = _bracket(wildcard, place)
            yield text
            continue
        elif char == "\\":
            place += 1
            if place == len(wildcard):
                raise MalformedError(_ESCAPES_NOTHING)
            yield _SLASH if wildcard[place] == "/" else re.escape(wildcard[place])
        else:
            yield _SLASH if char == "/" else re.escape(char)
        place += 1


def _bracket(wildcard: str, begin: int) -> tuple[str, int]:
    """A set of characters that begins at ``begin``, as an expression, and where it ends."""
    place = begin + 1
    negated = wildcard[place : place + 1] in ("!", "^")
    place += negated
    members: list[str] = []
    previous = ""
    first = True
    while True:
        char = wildcard[place : place + 1]
        if not char:
            raise MalformedError(_NOT_CLOSED)
        if char == "]" and not first:
            break
        first = False
        if char == "[" and wildcard[place + 1 : place + 2] == ":":
            end = wildcard.find("]", place + 2)
            if end < 0:
                raise MalformedError(_NOT_CLOSED)
            if wildcard[end - 1] == ":" and end - 1 >= place + 2:
                name = wildcard[place + 2 : end - 1]
                if name not in _CLASSES:
                    raise MalformedError(f"there is no class of characters named {name!r}")
                members.append(_CLASSES[name])
                previous, place = "", end + 1
                continue
        if char == "-" and previous and wildcard[place + 1 : place + 2] not in ("", "]"):
            place += 1
            last, place = _member(wildcard, place)
            if previous <= last:
                members.append(f"{re.escape(previous)}-{re.escape(last)}")
            previous = ""
            continue
        previous, place = _member(wildcard, place)
        members.append(re.escape(previous))
    inside = "".join(members)
    # No set, whatever is in it, matches a slash.
    if negated:
        return f"[^/{inside}]", place + 1
    return (f"(?!/)[{inside}]" if inside else "(?!)"), place + 1


def _member(wildcard: str, place: int) -> tuple[str, int]:
    if wildcard[place] == "\\":
        place += 1
        if place == len(wildcard):
            raise MalformedError(_ESCAPES_NOTHING)
    return wildcard[place], place + 1


def braces_expanded(glob: str) -> list[str]:
    """The patterns that one with ``{this,that}`` stands for; it alone if it has no braces.

    Raises:
        MalformedError: a brace is not closed, or it stands for too many.
    """
    patterns, waiting = [], [glob]
    while waiting:
        pattern = waiting.pop()
        found = _innermost_braces(pattern)
        if found is None:
            patterns.append(pattern)
            continue
        begin, end = found
        waiting += [f"{pattern[:begin]}{choice}{pattern[end + 1 :]}" for choice in pattern[begin + 1 : end].split(",")]
        if len(waiting) + len(patterns) > MAX_ALTERNATIVES:
            raise MalformedError(f"it stands for more than {MAX_ALTERNATIVES:,} patterns")
    return patterns


def _innermost_braces(pattern: str) -> tuple[int, int] | None:
    begin: int | None = None
    place = 0
    while place < len(pattern):
        if pattern[place] == "\\":
            place += 1
        elif pattern[place] == "{":
            begin = place
        elif pattern[place] == "}" and begin is not None:
            return begin, place
        place += 1
    if begin is not None:
        raise MalformedError("a brace is not closed")
    return None
