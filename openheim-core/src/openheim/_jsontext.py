"""JSON as it is written to files and wires: compact, UTF-8, and safe for text that is no valid Unicode."""

from __future__ import annotations

import json
from typing import Any

__all__ = ("dump_bytes", "dump_text")

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode
_encode_ascii = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), check_circular=False).encode


def dump_text(value: Any) -> str:
    """``value`` as one line of JSON. Lone surrogates (halves of a character) stay as escapes."""
    text = _encode(value)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _encode_ascii(value)
    return text


def dump_bytes(value: Any) -> bytes:
    """``value`` as one line of JSON in UTF-8."""
    text = _encode(value)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _encode_ascii(value).encode()
