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

__all__ = ("FILE_TOOLS", "SIGNED", "growing_conversation", "odd_conversations", "signed_conversation", "user_message")

_PATH = {"path": {"type": "string", "description": "The path"}}

FILE_TOOLS = (
    ToolSpec("list_dir", "Lists a directory.", {"type": "object", "properties": _PATH}),
    ToolSpec("read_file", "Reads a file.", {"type": "object", "properties": _PATH, "required": ["path"]}),
)

#: A signature, redacted thinking and an opaque item, which nobody but their maker takes.
SIGNED = ("c2lnbmF0dXJl", "ZW5jcnlwdGVk", "b3BhcXVl")

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
        "another provider's thinking": signed_conversation("other"),
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
        "names and ids of other wires": [
            user_message("Look around."),
            _assistant(ToolUseBlock("call:1/\u00e4 " + "x" * 80, "server.list dir!" + "y" * 80, "{}"), wire="other"),
            _result("call:1/\u00e4 " + "x" * 80, "server.list dir!" + "y" * 80, "a"),
        ],
        "an answer that was cut": [
            user_message("Tell me."),
            Message("assistant", (TextBlock("It beg"),), id="a1", turn=1, step=2, stop_reason="cancelled"),
            user_message("Go on.", "u2"),
        ],
        "thought and not said": [
            user_message("Think."),
            _assistant(ThinkingBlock("hm")),
            user_message("And now?", "u2"),
        ],
        "blank all over": [
            user_message(" "),
            _assistant(TextBlock(" \n"), ToolUseBlock("c1", "list_dir", "")),
            _result("c1", "list_dir", " "),
        ],
        "halves of characters": [user_message("\ud83d"), _assistant(TextBlock("\ude00")), user_message("?", "u2")],
    }


def signed_conversation(wire: str, provider: str | None = None) -> list[Message]:
    """One with a reply of this wire and provider entry that holds each of :data:`SIGNED`."""
    signature, encrypted, opaque = SIGNED
    return [
        user_message("Think."),
        Message(
            "assistant",
            (ThinkingBlock("hm", signature), RedactedThinkingBlock(encrypted), TextBlock("Done.")),
            id="a1",
            turn=1,
            step=2,
            wire=wire,
            provider=provider,
            opaque={"items": [opaque]},
        ),
        user_message("And now?", "u2"),
    ]


def growing_conversation() -> list[Message]:
    """A conversation with tools, several calls at once, failures and an image, to be sent as it grows."""
    messages = [user_message("Look around.")]
    for round in range(1, 6):
        first, second = f"c{round}a", f"c{round}b"
        messages += (
            _assistant(
                TextBlock(f"Round {round}."),
                ToolUseBlock(first, "list_dir", '{"path": "."}'),
                ToolUseBlock(second, "read_file", f'{{"path": "{round}"}}'),
            ),
            _result(first, "list_dir", "a\nb/"),
            _result(second, "read_file", "no such file" if round % 2 else "\u00fcber", is_error=bool(round % 2)),
        )
    image = Message("user", (TextBlock("What is this?"), ImageBlock(_PNG, "image/png")), id="u2")
    return [
        *messages,
        _assistant(TextBlock("Done.")),
        image,
        _assistant(TextBlock("A dot.")),
        user_message("Ok.", "u3"),
    ]


def _assistant(*blocks: Block, wire: str | None = None) -> Message:
    return Message("assistant", blocks, id="a1", turn=1, step=2, wire=wire)


def _result(call: str, tool: str, content: str, *, is_error: bool = False) -> Message:
    return Message("tool", (ToolResultBlock(call, tool, content, is_error),), id=f"t-{call}", turn=1, step=3)
