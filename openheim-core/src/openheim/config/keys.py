"""Names of settings as people write them: ``permissions.mode``, ``providers."my.model".kind``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from openheim.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("parse_key", "shown_key", "unquoted")

_PART = re.compile(r"""\s*("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s."'=]+)\s*(\.|$)""")
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")


def parse_key(text: str) -> tuple[str, ...]:
    """The parts of a dotted key; a part that holds a dot stands in quotes.

    Raises:
        UsageError: it is no such key.
    """
    parts: list[str] = []
    position, dot = 0, "."
    while dot:
        found = _PART.match(text, position)
        if found is None:
            raise UsageError(f"{text!r} names no setting", hint="write section.key, such as permissions.mode")
        parts.append(unquoted(found[1]))
        position, dot = found.end(), found[2]
    return tuple(parts)


def unquoted(part: str) -> str:
    """A part of a TOML key without its quotes."""
    if part.startswith("'"):
        return part[1:-1]
    if not part.startswith('"'):
        return part
    import tomllib

    try:
        return str(tomllib.loads(f"part = {part}")["part"])
    except tomllib.TOMLDecodeError:
        return part[1:-1]


def shown_key(path: Sequence[str | int]) -> str:
    """``("providers", "my.model", "models", 0)`` as ``providers."my.model".models[0]``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        shown = part
        if not _PLAIN.fullmatch(part):
            import json

            shown = json.dumps(part, ensure_ascii=False)
        text += f".{shown}" if text else shown
    return text
