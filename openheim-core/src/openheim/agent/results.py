"""Keeps tool results within their limits: when they are made, and when a request has to become shorter."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from openheim.messages import ToolResultBlock

if TYPE_CHECKING:
    from openheim.messages import Block, Message

__all__ = (
    "MIN_RESULT_LIMIT_BYTES",
    "RESULT_LIMIT_BYTES",
    "cut_text",
    "old_result_bytes",
    "result_limit_bytes",
    "shortened_results",
)

#: Bytes of one tool result that the model is shown at most, and where its window is small, at least.
RESULT_LIMIT_BYTES = 128 * 1024
MIN_RESULT_LIMIT_BYTES = 8 * 1024

#: Bytes that are left of an old result that had to be shortened, in small windows and in others.
_OLD_RESULT_BYTES = (400, 2048)

_ASK_AGAIN = "ask for less at a time, or for a part, to see them"
_MADE_ROOM = "this is an old result, shortened to fit the context window"


def result_limit_bytes(context_window: int | None) -> int:
    """The limit for one result: a quarter of the model's window, counted as 4 bytes a token, within the bounds above.

    Args:
        context_window: tokens, or None if it is not known.
    """
    if context_window is None:
        return RESULT_LIMIT_BYTES
    return max(MIN_RESULT_LIMIT_BYTES, min(RESULT_LIMIT_BYTES, context_window * 4 // 4))


def old_result_bytes(context_window: int | None) -> int:
    """How long an old result may still be once room is needed: so short that a window has place for some sixty."""
    least, most = _OLD_RESULT_BYTES
    return most if context_window is None else max(least, min(most, context_window * 4 // 64))


def cut_text(text: str, limit_bytes: int = RESULT_LIMIT_BYTES, *, advice: str = _ASK_AGAIN) -> str:
    """The text if it fits into ``limit_bytes`` of UTF-8, else its head and its tail with a note between them.

    The end of an output (a build's error, a test's summary) often matters more than its middle.

    Args:
        advice: what the note says beside how much was left out.
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
    return f"{head}\n[... {left_out} of {len(data)} bytes left out here; {advice} ...]\n{tail}"


def shortened_results(message: Message, limit_bytes: int) -> Message:
    """A tool message with its long results cut and their images left out; the same object if it is short already.

    The copy has an id of its own, since it is not the same on any wire.
    """
    content = tuple(_shortened(block, limit_bytes) for block in message.content)
    return message if content == message.content else replace(message, content=content, id=f"{message.id}:shortened")


def _shortened(block: Block, limit_bytes: int) -> Block:
    if not isinstance(block, ToolResultBlock):
        return block
    text = block.content
    # One that is not half as long again is not worth it.
    if cut_text(text, limit_bytes * 3 // 2) != text:
        text = cut_text(text, limit_bytes, advice=_MADE_ROOM)
    if block.images:
        images = "an image" if len(block.images) == 1 else f"{len(block.images)} images"
        text += f"\n[{images} of this old result left out to fit the context window]"
    return replace(block, content=text, images=())


def _decoded(piece: bytes) -> str:
    # A cut may fall inside a character; the halves of it are dropped.
    return piece.decode("utf-8", "ignore")
