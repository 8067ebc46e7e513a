"""JSON as it is written to files and streams: one line, compact, UTF-8, and safe for text that is no valid Unicode.

What some readers take for a line break (U+0085, U+2028, U+2029) is escaped, so that a line is a line to all of them.
"""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ("dump_bytes", "dump_text")

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode

# Line breaks, and halves of characters, which UTF-8 has no form for.
_ESCAPED = re.compile("[\u0085\u2028\u2029\ud800-\udfff]")


def dump_text(value: Any) -> str:
    """``value`` as one line of JSON."""
    text = _encode(value)
    return text if text.isascii() else _ESCAPED.sub(_escape, text)


def dump_bytes(value: Any) -> bytes:
    """``value`` as one line of JSON in UTF-8."""
    return dump_text(value).encode()


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
