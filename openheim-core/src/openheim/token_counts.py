"""Counts of tokens as services send them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("any_count", "token_count")

#: A larger count is no count of tokens.
_MAX_COUNT = 2**53


def token_count(value: Any) -> int:
    """A count that a service sent; 0 for what is none."""
    return int(value) if _is_count(value) else 0


def any_count(values: Iterable[Any]) -> bool:
    """Whether one of the values is a count. If none is, the service has not said what a reply costs."""
    return any(map(_is_count, values))


def _is_count(value: Any) -> bool:
    # Some servers count in floats. A bool is no number here.
    return (type(value) is int or (type(value) is float and value.is_integer())) and 0 <= value < _MAX_COUNT
