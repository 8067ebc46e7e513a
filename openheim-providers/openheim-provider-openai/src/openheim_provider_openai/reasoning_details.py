"""What OpenRouter tells of a model's reasoning in one form for all models: kept as it came, to be sent back.

``reasoning_details`` is a list of blocks: text with a signature, a summary, or encrypted data. In a stream, each chunk
has pieces of it, and the whole is their sequence; a block of text or of a summary comes in several pieces. A model that
goes on after its tool calls needs the sequence as it was, with nothing changed, left out or moved.
https://openrouter.ai/docs/guides/best-practices/reasoning-tokens
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim.jsontext import MAX_DEPTH, is_deep, wire_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from openheim import Message

__all__ = ("FIELD", "ReasoningDetails", "details_of")

#: The field of deltas and messages, and where the list is in :attr:`~openheim.Message.opaque`.
FIELD = "reasoning_details"

#: What comes in pieces, by the type of the block.
_PIECEWISE = {"reasoning.text": "text", "reasoning.summary": "summary"}

#: Claude's thinking is refused without its signature, which comes last and is missing where the reply was cut.
_SIGNED_FORMAT = "anthropic-claude-v1"


class ReasoningDetails:
    """Joins the pieces of a reply."""

    def __init__(self) -> None:
        self._details: list[dict[str, Any]] = []
        #: The pieces of the latest block, if it is one of those that come so.
        self._pieces: list[str] = []

    def add(self, details: Iterable[Any]) -> None:
        """Takes what one chunk has of it."""
        for detail in details:
            if isinstance(detail, dict):
                self._add(detail)

    def opaque(self) -> dict[str, Any] | None:
        """What is to be stored; None if there is nothing, or nothing that can be."""
        self._join()
        return {FIELD: self._details} if self._details and _is_writable(self._details) else None

    def _add(self, detail: Mapping[str, Any]) -> None:
        field = _PIECEWISE.get(str(detail.get("type")))
        piece = detail.get(field) if field is not None else None
        last = self._details[-1] if self._details else None
        if field is None or last is None or not _goes_on(last, detail):
            self._join()
            self._details.append(dict(detail))
        else:
            last |= {key: value for key, value in detail.items() if key != field and value is not None}
        if isinstance(piece, str):
            self._pieces.append(piece)

    def _join(self) -> None:
        if self._pieces:
            last = self._details[-1]
            last[_PIECEWISE[last["type"]]] = "".join(self._pieces)
            self._pieces = []


def details_of(message: Message) -> list[Any]:
    """What goes back with a message that came from this service; empty if that is nothing."""
    details = (message.opaque or {}).get(FIELD)
    if not isinstance(details, list) or not _is_writable(details):
        return []
    return [detail for detail in details if not _lacks_signature(detail)]


def _goes_on(last: Mapping[str, Any], detail: Mapping[str, Any]) -> bool:
    """Whether a piece belongs to the block before it: nothing that both of them name tells them apart."""
    if last.get("signature") and detail.get("index") is None and not detail.get("signature"):
        return False  # A signature ends a block.
    names = ("type", "index", "id")
    return all(last[name] == detail[name] for name in names if None not in (last.get(name), detail.get(name)))


def _lacks_signature(detail: Any) -> bool:
    return (
        isinstance(detail, dict)
        and detail.get("type") == "reasoning.text"
        and detail.get("format") == _SIGNED_FORMAT
        and not detail.get("signature")
    )


def _is_writable(details: list[Any]) -> bool:
    # Stored, it is within two more levels.
    if is_deep(details, MAX_DEPTH - 2):
        return False
    try:
        wire_bytes(details)
    except (ValueError, TypeError, RecursionError):
        return False
    return True
