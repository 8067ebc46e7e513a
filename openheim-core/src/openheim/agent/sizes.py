"""How long a request is in bytes, as far as the model's window is concerned.

It is not the length on the wire: an image costs the window about the same however long its base64 is, and what JSON
adds to a message is taken as a constant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openheim.jsontext import dump_text
from openheim.messages import (
    ImageBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)

if TYPE_CHECKING:
    from typing import Any

    from openheim.messages import Block, Message
    from openheim.providers import ToolSpec

__all__ = ("IMAGE_BYTES", "MESSAGE_BYTES", "message_size", "text_size", "tools_size")

#: What a message takes beside its content.
MESSAGE_BYTES = 16
IMAGE_BYTES = 6000

_KNOWN_TOOLS = 64
_tool_sizes: dict[int, tuple[tuple[ToolSpec, ...], int]] = {}


def message_size(message: Message) -> int:
    size = MESSAGE_BYTES + sum(map(_block_size, message.content))
    return size if message.opaque is None else size + _json_size(message.opaque)


def tools_size(tools: tuple[ToolSpec, ...]) -> int:
    """The length of the definitions as JSON."""
    # Sessions share their tools, and encoding them would cost more than the rest of a new session.
    known = _tool_sizes.get(id(tools))
    if known is not None and known[0] is tools:
        return known[1]
    size = sum(
        _json_size({"name": tool.name, "description": tool.description, "parameters": tool.parameters})
        for tool in tools
    )
    if len(_tool_sizes) >= _KNOWN_TOOLS:
        _tool_sizes.clear()
    _tool_sizes[id(tools)] = (tools, size)
    return size


def text_size(text: str) -> int:
    """The length in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _block_size(block: Block) -> int:
    match block:
        case TextBlock():
            return text_size(block.text)
        case ToolResultBlock():
            names = text_size(block.tool_call_id) + text_size(block.tool_name)
            return names + text_size(block.content) + IMAGE_BYTES * len(block.images)
        case ToolUseBlock():
            names = text_size(block.id) + text_size(block.name)
            return names + text_size(block.arguments) + text_size(block.signature or "")
        case ThinkingBlock():
            return text_size(block.thinking) + text_size(block.signature or "")
        case RedactedThinkingBlock():
            return text_size(block.data)
        case ImageBlock():
            return IMAGE_BYTES
        case _:
            return 0  # Of a type that is not known, so it is not sent.


def _json_size(value: Any) -> int:
    try:
        return text_size(dump_text(value))
    except (ValueError, TypeError, RecursionError):
        return 0  # The provider says what is wrong with it.
