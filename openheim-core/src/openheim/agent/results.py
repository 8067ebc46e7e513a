"""Keeps tool results within their limit."""

from __future__ import annotations

__all__ = ("RESULT_LIMIT_BYTES", "cut_text")

#: Bytes of one tool result that the model is shown at most.
RESULT_LIMIT_BYTES = 128 * 1024


def cut_text(text: str, limit_bytes: int = RESULT_LIMIT_BYTES) -> str:
    """The text if it fits into ``limit_bytes`` of UTF-8, else its head and its tail with a note between them.

    The end of an output (a build's error, a test's summary) often matters more than its middle.
    """
    if len(text) * 4 <= limit_bytes:
        return text
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= limit_bytes:
        return text
    room = max(limit_bytes - 200, 0)
    head = _decoded(data[: room * 2 // 3])
    tail = _decoded(data[len(data) - room // 3 :])
    left_out = len(data) - len(head.encode("utf-8", "surrogatepass")) - len(tail.encode("utf-8", "surrogatepass"))
    note = (
        f"\n[... {left_out} of {len(data)} bytes left out here; "
        "ask for less at a time, or for a part, to see them ...]\n"
    )
    return head + note + tail


def _decoded(piece: bytes) -> str:
    # A cut may fall inside a character; the halves of it are dropped.
    return piece.decode("utf-8", "ignore")
