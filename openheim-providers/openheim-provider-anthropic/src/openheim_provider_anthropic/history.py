"""Stored messages as content blocks of the Messages wire."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from openheim import (
    ImageBlock,
    MessageParts,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
    wire_call_id,
    wire_tool_name,
)
from openheim.jsontext import parse, wire_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openheim import Block, Message

__all__ = ("WIRE", "MessageEncoder", "TurnBeginning", "container_of", "server_calls_settled")

WIRE = "anthropic-messages"

_CALL_ID = r"[A-Za-z0-9_-]{1,64}"
_IMAGE_TYPES = frozenset(("image/jpeg", "image/png", "image/gif", "image/webp"))
_STORED_TYPES = frozenset(("text", "thinking", "redacted_thinking", "image", "tool_use", "tool_result"))
#: Blocks of tools that the service runs itself. Of a message that does not say which wire made it, no others go back.
_SERVER_TYPE = re.compile(r"(?:server|mcp)_tool_use|\w+_tool_result|container_upload|compaction")
_NO_OUTPUT = "(no output)"


class MessageEncoder:
    """Turns messages into parts, in the order of the conversation.

    Ids of calls are unique in a request. One that an earlier message has used gets another form, which the results
    behind it share.

    Args:
        provider: the entry that is asked. What another one signed is not sent to it, though its wire be the same.

    Attributes:
        calls: whether there was any tool call.
    """

    def __init__(self, provider: str) -> None:
        self.calls = False
        self._provider = provider
        #: Of each id sent, the message that it belongs to: by its id, for it may be replaced by a shorter one.
        self._owners: dict[str, str | Message] = {}
        #: Of the calls met last: the stored id, and the one sent.
        self._sent_as: dict[str, str] = {}

    def __call__(self, message: Message) -> MessageParts:
        match message.role:
            case "assistant":
                return MessageParts("assistant", self._assistant(message))
            case "tool":
                results = [block for block in message.content if isinstance(block, ToolResultBlock)]
                return MessageParts("user", [self._result(block) for block in results])
            case "user":
                shown = (_shown(block) for block in message.content)
                return MessageParts("user", [wire_bytes(block) for block in shown if block is not None])
            case "system":  # The wire has one place for system text, before the conversation.
                return MessageParts("user", [wire_bytes(_text(message.text))] if message.text.strip() else [])

    def _assistant(self, message: Message) -> list[bytes]:
        own = message.is_from(WIRE, self._provider)
        extras: Mapping[str, Any] = message.opaque if own and message.opaque is not None else {}
        parts: list[tuple[bool, bytes]] = []
        seen: set[str] = set()
        texts = calls = -1
        for block in message.content:
            encoded: Mapping[str, Any] | None = None
            match block:
                case TextBlock():
                    texts += bool(block.text)
                    # The last message of a request must not end with blanks, and one that was paused may be that.
                    paused = message.stop_reason == "paused" and block is message.content[-1]
                    if block.text.strip():
                        text = block.text.rstrip() if paused else block.text
                        encoded = _text(text) | _extra(extras, "text", texts)
                case ToolUseBlock():
                    calls += 1
                    if block.id not in seen:  # A second one of this id could not be answered.
                        seen.add(block.id)
                        encoded = self._call(block, message) | _extra(extras, "tool_use", calls)
                case ThinkingBlock() if own and block.signature:
                    encoded = {"type": "thinking", "thinking": block.thinking, "signature": block.signature}
                case RedactedThinkingBlock() if own and block.data:
                    encoded = {"type": "redacted_thinking", "data": block.data}
                case UnknownBlock() if own and _is_sendable(block, message):
                    encoded = block.raw
                case ImageBlock():
                    encoded = _text("[An image was shown here.]")
            if encoded is not None and (part := _part(encoded)):
                parts.append((isinstance(block, ThinkingBlock | RedactedThinkingBlock), part))
        while parts and parts[-1][0]:
            parts.pop()  # The wire takes no message that ends with thinking.
        return [part for _, part in parts]

    def _call(self, block: ToolUseBlock, message: Message) -> dict[str, Any]:
        self.calls = True
        call_id = wire_call_id(block.id, _CALL_ID)
        owner = message.id or message
        place = 0
        while self._owners.setdefault(call_id, owner) != owner:
            place += 1
            call_id = wire_call_id(f"{block.id} {place}", _CALL_ID)
        self._sent_as[block.id] = call_id
        return {"type": "tool_use", "id": call_id, "name": wire_tool_name(block.name), "input": _input(block.arguments)}

    def _result(self, block: ToolResultBlock) -> bytes:
        text = block.content if block.content.strip() else ""
        shown = [image for image in map(_shown, block.images) if image is not None]
        content: str | list[dict[str, Any]] = text or _NO_OUTPUT
        if shown:
            content = [_text(text), *shown] if text else shown
        call_id = self._sent_as.get(block.tool_call_id) or wire_call_id(block.tool_call_id, _CALL_ID)
        encoded = {"type": "tool_result", "tool_use_id": call_id, "content": content}
        return wire_bytes(encoded | ({"is_error": True} if block.is_error else {}))


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _shown(block: Block) -> dict[str, Any] | None:
    """Text or an image as a block; None for what is blank, and for blocks that the user's messages do not have."""
    if isinstance(block, TextBlock):
        return _text(block.text) if block.text.strip() else None
    if not isinstance(block, ImageBlock):
        return None
    mime_type = "image/jpeg" if block.mime_type.lower() == "image/jpg" else block.mime_type.lower()
    if mime_type not in _IMAGE_TYPES or not block.data.strip():
        return _text(f"[An image of type {block.mime_type or 'unknown'} stood here, which cannot be shown.]")
    return {"type": "image", "source": {"type": "base64", "media_type": mime_type, "data": block.data}}


def _input(arguments: str) -> dict[str, Any]:
    # A call that was cut or badly written would be refused for the rest of the session.
    try:
        value = parse(arguments)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _part(encoded: Mapping[str, Any]) -> bytes:
    try:
        return wire_bytes(dict(encoded))
    except (ValueError, TypeError, RecursionError):
        return b""


def _extra(extras: Mapping[str, Any], kind: str, ordinal: int) -> dict[str, Any]:
    """Fields of a block that have no place in ours: kept in ``opaque`` by the kind of the block and its number."""
    of_kind = extras.get(kind)
    fields = of_kind.get(str(ordinal)) if isinstance(of_kind, dict) else None
    return fields if isinstance(fields, dict) else {}


def _is_sendable(block: UnknownBlock, message: Message) -> bool:
    kind = block.raw.get("type")
    if not isinstance(kind, str) or kind in _STORED_TYPES:
        return False
    return message.wire == WIRE or _SERVER_TYPE.fullmatch(kind) is not None


# --- what depends on the messages around ---


class TurnBeginning:
    """How the turn that goes on begins, told message by message; the latest may be told again.

    A turn with tools has to begin with its thinking, or a model that thinks within a budget refuses to think.

    Args:
        provider: the entry that is asked; see :class:`MessageEncoder`.
    """

    def __init__(self, provider: str) -> None:
        self._provider = provider
        #: Whether the turn has no thinking of this entry to begin with.
        self.lacks_thinking = False
        self._begun = False

    def add(self, message: Message) -> None:
        if message.role in ("user", "system"):
            self.lacks_thinking = self._begun = False
        elif message.role == "assistant":
            if not message.is_from(WIRE, self._provider):
                self.lacks_thinking = True
            elif not self._begun:
                self.lacks_thinking = not _begins_with_thinking(message)
            self._begun = True


def _begins_with_thinking(message: Message) -> bool:
    for block in message.content:
        if isinstance(block, RedactedThinkingBlock) or (isinstance(block, ThinkingBlock) and block.signature):
            return True
        if not isinstance(block, ThinkingBlock) and not (isinstance(block, TextBlock) and not block.text.strip()):
            return False
    return False


def container_of(messages: Sequence[Message], provider: str) -> str:
    """The container in which the service of this entry ran code for the turn that goes on, or ``""``."""
    for message in reversed(messages):
        if message.role == "assistant":
            own = message.is_from(WIRE, provider)
            container = message.opaque.get("container") if message.opaque is not None and own else None
            found = container.get("id") if isinstance(container, dict) else None
            return found if isinstance(found, str) else ""
        if message.role != "tool":
            break
    return ""


def server_calls_settled(message: Message, following: Message | None, provider: str) -> Message:
    """The message without calls of the service's own tools that can have no result any more.

    They have one in the same message or in the one behind it, or, after a pause, will have it in the reply to come.
    """
    calls = {id for block in message.content if (id := _server_call(block))}
    if not calls or (following is None and message.stop_reason == "paused"):
        return message
    answering = [message]
    if following is not None and following.role == "assistant" and following.is_from(WIRE, provider):
        answering.append(following)
    for block in (block for one in answering for block in one.content):
        if isinstance(block, UnknownBlock):
            calls.discard(str(block.raw.get("tool_use_id")))
    if not calls:
        return message
    return replace(message, content=tuple(block for block in message.content if _server_call(block) not in calls))


def _server_call(block: Block) -> str:
    """The id of a call of one of the service's own tools, or ``""`` for any other block."""
    if isinstance(block, UnknownBlock) and block.raw.get("type") in ("server_tool_use", "mcp_tool_use"):
        return str(block.raw.get("id"))
    return ""
