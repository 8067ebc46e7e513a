"""Signatures of parts that are no calls, as they are kept in ``opaque`` of a message.

The service signs parts of a reply: calls, thoughts, and texts too, even empty ones. A signed part has to go back as it
came, so it may not be joined with its neighbours. Calls and thoughts are blocks of their own, with a place for their
signature. Texts that came in many pieces are one block, so ``opaque`` says which span of it was signed::

    {"signatures": [{"block": 0, "start": 0, "end": 5, "signature": "…"}]}

``block`` counts the blocks of the message from 0. An empty part that was signed is a span without length; it stands in
front of a block that is no text, or behind the last one. A signed image has no span.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeGuard

__all__ = ("SignedSpan", "is_base64", "opaque_from", "signed_spans")

_KEY = "signatures"


class SignedSpan(NamedTuple):
    """A signed part: characters ``start`` to ``end`` of a block of text, or all of another block (``end`` is None)."""

    block: int
    start: int
    end: int | None
    signature: str


def opaque_from(spans: list[SignedSpan]) -> dict[str, Any] | None:
    """What a reply keeps of these; None if there are none."""
    if not spans:
        return None
    return {
        _KEY: [
            {"block": span.block, "signature": span.signature}
            | ({} if span.end is None else {"start": span.start, "end": span.end})
            for span in spans
        ]
    }


def signed_spans(opaque: Mapping[str, Any] | None) -> dict[int, list[SignedSpan]]:
    """The spans of each block, in order. What is not of this form, as after an edit of the history, is left out."""
    entries = opaque.get(_KEY) if opaque is not None else None
    found: dict[int, list[SignedSpan]] = {}
    for entry in entries if isinstance(entries, list | tuple) else ():
        if not isinstance(entry, Mapping):
            continue
        block, signature = entry.get("block"), entry.get("signature")
        start, end = entry.get("start", 0), entry.get("end")
        if type(block) is not int or type(start) is not int or not is_base64(signature):
            continue
        if end is None or type(end) is int:
            found.setdefault(block, []).append(SignedSpan(block, start, end, signature))
    return found


def is_base64(value: Any) -> TypeGuard[str]:
    """Whether the value is bytes in base64 of either alphabet, and not empty: the service refuses anything else."""
    try:
        return isinstance(value, str) and bool(base64.b64decode(value, altchars=b"-_", validate=True))
    except ValueError:
        return False
