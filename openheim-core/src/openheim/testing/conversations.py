"""Conversations for tests of providers: what histories hold after other providers, crashes and foreign tools."""

from __future__ import annotations

from openheim.messages import (
    Block,
    ImageBlock,
    Message,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
)
from openheim.providers import ToolSpec

__all__ = ("FILE_TOOLS", "odd_conversations", "user_message")

_PATH = {"path": {"type": "string", "description": "The path"}}

FILE_TOOLS = (
    ToolSpec("list_dir", "Lists a directory.", {"type": "object", "properties": _PATH}),
    ToolSpec("read_file", "Reads a file.", {"type": "object", "properties": _PATH, "required": ["path"]}),
)

# One black pixel.
_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


def user_message(text: str, id: str = "u1") -> Message:
    return Message("user", (TextBlock(text),), id=id, created_at="2026-01-01T00:00:00.000Z", turn=1, step=1)


def odd_conversations() -> dict[str, list[Message]]:
    """By name; each ends with something to reply to."""
    return {
        "with tools": [
            user_message("Look around."),
            _assistant(
                TextBlock("I look."),
                ToolUseBlock("c1", "list_dir", "{}"),
                ToolUseBlock("c2", "read_file", '{"path": "a"}'),
            ),
            _result("c1", "list_dir", "a\nb/"),
            _result("c2", "read_file", "no such file", is_error=True),
        ],
        "malformed arguments": [
            user_message("Look around."),
            _assistant(ToolUseBlock("c1", "list_dir", '{"path": '), ToolUseBlock("c2", "list_dir", "[1]")),
            _result("c1", "list_dir", "the arguments are no JSON", is_error=True),
            _result("c2", "list_dir", "the arguments are no object", is_error=True),
        ],
        "another provider's thinking": [
            user_message("Think."),
            _assistant(
                ThinkingBlock("hm", "c2lnbmF0dXJl"), RedactedThinkingBlock("eA=="), TextBlock("Done."), wire="other"
            ),
            user_message("And now?", "u2"),
        ],
        "images": [
            Message("user", (TextBlock("What is this?"), ImageBlock(_PNG, "image/png")), id="u1"),
            _assistant(ToolUseBlock("c1", "read_file", '{"path": "a.png"}')),
            Message(
                "tool", (ToolResultBlock("c1", "read_file", "", images=(ImageBlock(_PNG, "image/png"),)),), id="t-c1"
            ),
        ],
        "blocks of a later version": [
            Message("user", (UnknownBlock({"type": "hologram", "data": 1}), TextBlock("What is this?")), id="u1"),
        ],
        "nothing said": [Message("user", (TextBlock(""),), id="u1")],
        "two users in a row": [user_message("One."), user_message("Two.", "u2")],
    }


def _assistant(*blocks: Block, wire: str | None = None) -> Message:
    return Message("assistant", blocks, id="a1", turn=1, step=2, wire=wire)


def _result(call: str, tool: str, content: str, *, is_error: bool = False) -> Message:
    return Message("tool", (ToolResultBlock(call, tool, content, is_error),), id=f"t-{call}", turn=1, step=3)
