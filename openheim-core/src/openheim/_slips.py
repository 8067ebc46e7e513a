"""Which known name somebody may have meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("closest",)


def closest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name that ``name`` is most likely a slip for, or None.

    Args:
        cutoff: how alike they have to be at least, from 0 to 1.
    """
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), 1, cutoff)
    return near[0] if near else None
