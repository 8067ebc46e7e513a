"""JSON as this wire takes it: compact, UTF-8, finite numbers, and no halves of characters."""

from __future__ import annotations

import json
from typing import Any

__all__ = ("dump_bytes", "is_object")

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def dump_bytes(value: Any) -> bytes:
    """``value`` as JSON. A lone surrogate, which services refuse, becomes U+FFFD.

    Raises:
        ValueError: it holds a number that JSON cannot say, or itself.
        TypeError: it holds something that JSON has no form for.
    """
    text = _encode(value)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def is_object(text: str) -> bool:
    """Whether ``text`` is a JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
