"""Whether the blocks that a plugin made are what they claim to be. Nothing else makes sure of it at run time."""

from __future__ import annotations

from collections.abc import Mapping

from openheim.jsontext import MAX_DEPTH, is_deep
from openheim.messages import ImageBlock, RedactedThinkingBlock, TextBlock, ThinkingBlock, ToolUseBlock, UnknownBlock

__all__ = ("block_problem",)

#: The members of each kind of block that have to be text, and those that may be None instead.
_TEXTS: dict[type, tuple[str, ...]] = {
    TextBlock: ("text",),
    ToolUseBlock: ("id", "name", "arguments"),
    ThinkingBlock: ("thinking",),
    RedactedThinkingBlock: ("data",),
    ImageBlock: ("data", "mime_type"),
    UnknownBlock: (),
}
_OPTIONAL = {ToolUseBlock: "signature", ThinkingBlock: "signature"}


def block_problem(block: object, allowed: tuple[type, ...]) -> str:
    """Why a block cannot be stored and sent, as the end of a sentence about who made it; ``""`` if it can.

    Args:
        allowed: the kinds of blocks that may stand where this one stands.
    """
    kind = next((kind for kind in allowed if isinstance(block, kind)), None)
    if kind is None:
        return f"{type(block).__name__}, where only {', '.join(one.__name__ for one in allowed)} may stand"
    for member in _TEXTS[kind]:
        value = getattr(block, member)
        if not isinstance(value, str):
            return f"{kind.__name__} whose {member} is {type(value).__name__} and not text"
    optional = _OPTIONAL.get(kind)
    if optional is not None:
        value = getattr(block, optional)
        if value is not None and not isinstance(value, str):
            return f"{kind.__name__} whose {optional} is {type(value).__name__} and not text"
    if isinstance(block, UnknownBlock) and not isinstance(block.raw, Mapping):
        return f"UnknownBlock whose raw is {type(block.raw).__name__} and not a mapping"
    if isinstance(block, UnknownBlock) and is_deep(block.raw):
        return f"UnknownBlock whose raw has more than {MAX_DEPTH} levels"
    return ""
