"""Names of tools and ids of calls in the form that a service takes, and back.

The form of a name follows from the name alone: it is the same in every request, whatever other tools there are.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("ToolNames", "wire_call_id", "wire_tool_name")

#: What all services take.
_LONGEST = 64
_TAKEN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_REFUSED = re.compile(r"[^A-Za-z0-9_-]")
_DIGEST_CHARACTERS = 8

_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

#: Lengths that ids of services have, most usual first.
_ID_LENGTHS = (9, 24, 16, 12, 32, 8, 10, 20, 36, 40, 64, 6, 4, 2, 1)
_ID_PREFIXES = ("", "call_", "toolu_", "fc_", "tool_")


@lru_cache(maxsize=4096)
def wire_tool_name(name: str) -> str:
    """``name`` as every service takes it: letters, digits, ``_`` and ``-``, at most 64, not a digit or ``-`` first.

    A name that is changed gets a part of its hash, so that two names never meet.
    """
    if _TAKEN.fullmatch(name):
        return name
    cleaned = _REFUSED.sub("_", name)[: _LONGEST - _DIGEST_CHARACTERS - 2]
    if not cleaned or cleaned[0] in "0123456789-":
        cleaned = f"_{cleaned}"
    return f"{cleaned}_{_digest(name, _DIGEST_CHARACTERS).lower()}"


class ToolNames:
    """Finds tools by the names that the model knows them by.

    Args:
        names: of the tools that are offered.
    """

    __slots__ = ("_changed",)

    def __init__(self, names: Iterable[str]) -> None:
        self._changed = {wire: name for name in names if (wire := wire_tool_name(name)) != name}

    def original(self, wire_name: str) -> str:
        """The tool's own name. A name that no offered tool has comes back as it is."""
        return self._changed.get(wire_name, wire_name)


@lru_cache(maxsize=4096)
def wire_call_id(call_id: str, pattern: str) -> str:
    """``call_id`` if it matches ``pattern``, else another id that does, always the same one for this id.

    Args:
        pattern: a regular expression that the whole id has to match.

    Raises:
        ValueError: no id was found that matches.
    """
    compiled = re.compile(pattern)
    if compiled.fullmatch(call_id):
        return call_id
    for length in _ID_LENGTHS:
        for prefix in _ID_PREFIXES:
            for digest in (_digest(call_id, length), _digest(call_id, length).lower(), _digits(call_id, length)):
                if compiled.fullmatch(prefix + digest):
                    return prefix + digest
    raise ValueError(f"no id was found that matches {pattern!r}")


def _digest(text: str, length: int) -> str:
    """Letters and digits that follow from the text; the first is a letter."""
    import hashlib

    number = int.from_bytes(hashlib.sha512(text.encode("utf-8", "surrogatepass")).digest())
    number, first = divmod(number, 26)
    letters = [_LETTERS[10 + first]]
    while len(letters) < length:
        number, place = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[place])
    return "".join(letters)


def _digits(text: str, length: int) -> str:
    return "".join(str(ord(letter) % 10) for letter in _digest(text, length))
