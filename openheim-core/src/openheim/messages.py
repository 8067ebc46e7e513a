"""Messages and their blocks, as they are stored and handed to providers.

Messages are immutable and carry a stable id, so that whatever is derived from one (its bytes on a provider's wire, for
instance) can be kept and found again. The stored form is one JSON object a line: ``role`` and ``content`` as every
reader of the format knows them, and optional keys that older readers ignore.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")

__all__ = (
    "GIVEN_PROVIDER",
    "Block",
    "Finish",
    "ImageBlock",
    "Message",
    "RedactedThinkingBlock",
    "Role",
    "StopReason",
    "TextBlock",
    "ThinkingBlock",
    "ToolResultBlock",
    "ToolUseBlock",
    "UnknownBlock",
    "Usage",
    "block_from_stored",
    "block_to_stored",
    "image_type",
    "message_from_stored",
    "message_to_stored",
)

#: What stands for the name of a provider that the program gave as an object.
GIVEN_PROVIDER = "(given)"

Role: TypeAlias = Literal["user", "assistant", "tool", "system"]

#: How one model reply ended, in words common to all providers. ``paused`` asks for another call with the same history.
Finish: TypeAlias = Literal["end_turn", "tool_use", "max_tokens", "refusal", "paused", "other"]

#: How a turn ended: the values of the Agent Client Protocol's ``stopReason``.
StopReason: TypeAlias = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]


#: Beyond any count, and within what every reader of JSON takes for an integer.
_MAX_COUNT = 2**53


@dataclass(slots=True, frozen=True)
class Usage:
    """Token counts of one model call. ``input_tokens`` are newly processed ones; tokens read from a cache are apart."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_tokens: int = 0
    cache_read_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_creation_tokens + other.cache_creation_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
        )

    def to_dict(self) -> dict[str, int]:
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cache_creation_tokens": self.cache_creation_tokens,
            "cache_read_tokens": self.cache_read_tokens,
        }

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Usage:
        """Reads what :meth:`to_dict` wrote; a count that is missing, or that none can be, is 0."""
        return cls(
            _count(raw, "input_tokens"),
            _count(raw, "output_tokens"),
            _count(raw, "cache_creation_tokens"),
            _count(raw, "cache_read_tokens"),
        )


def _count(raw: Mapping[str, Any], key: str) -> int:
    value = raw.get(key)
    return value if type(value) is int and 0 <= value < _MAX_COUNT else 0


@dataclass(slots=True, frozen=True)
class TextBlock:
    text: str
    type: ClassVar[str] = "text"


@dataclass(slots=True, frozen=True)
class ThinkingBlock:
    """What a model thought aloud. ``signature`` is the provider's own and goes back only to the wire that made it."""

    thinking: str
    signature: str | None = None
    type: ClassVar[str] = "thinking"


@dataclass(slots=True, frozen=True)
class RedactedThinkingBlock:
    data: str
    type: ClassVar[str] = "redacted_thinking"


@dataclass(slots=True, frozen=True)
class ImageBlock:
    """``data`` is base64."""

    data: str
    mime_type: str
    type: ClassVar[str] = "image"


def image_type(data: bytes) -> str | None:
    """The media type of what begins like an image that models take: PNG, JPEG, GIF or WebP."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if data.startswith(b"RIFF") and data.startswith(b"WEBP", 8) else None


@dataclass(slots=True, frozen=True)
class ToolUseBlock:
    """A call that the model asks for. ``arguments`` is JSON text as the model wrote it, so it may be malformed."""

    id: str
    name: str
    arguments: str
    signature: str | None = None
    type: ClassVar[str] = "tool_use"


@dataclass(slots=True, frozen=True)
class ToolResultBlock:
    tool_call_id: str
    tool_name: str
    content: str
    is_error: bool = False
    images: tuple[ImageBlock, ...] = ()
    type: ClassVar[str] = "tool_result"


@dataclass(slots=True, frozen=True)
class UnknownBlock:
    """A block of a type that this version does not know; kept as it was read, and written back unchanged."""

    raw: Mapping[str, Any]
    type: ClassVar[str] = "unknown"


Block: TypeAlias = (
    TextBlock | ThinkingBlock | RedactedThinkingBlock | ImageBlock | ToolUseBlock | ToolResultBlock | UnknownBlock
)


@dataclass(slots=True, frozen=True, eq=False)
class Message:
    """One message of a session.

    Args:
        role: who speaks. A ``tool`` message holds exactly one :class:`ToolResultBlock`.
        content: blocks in order.
        id: stable and unique within the session.
        created_at: RFC 3339 with milliseconds.
        turn: number of the turn in the session, from 1.
        step: number of the message within its turn, from 1.
        provider, model, wire: who made an assistant message; signatures and opaque items go back only there.
        usage: what the call that made it cost.
        stop_reason: how the reply ended (a :data:`Finish`), or ``cancelled`` or ``error`` for one that was cut.
        opaque: items of a wire that must be replayed as they came.
        extra: keys of a stored line that this version does not know.
    """

    role: Role
    content: tuple[Block, ...]
    id: str = ""
    created_at: str = ""
    turn: int = 0
    step: int = 0
    provider: str | None = None
    model: str | None = None
    wire: str | None = None
    usage: Usage | None = None
    stop_reason: str | None = None
    opaque: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The text blocks joined."""
        return "".join(block.text for block in self.content if isinstance(block, TextBlock))

    def is_from(self, wire: str, provider: str) -> bool:
        """Whether this reply may have come over this wire from this provider entry, so that signatures and opaque items
        in it may go back there: a service refuses those that another one made, whatever its wire."""
        return self.wire in (None, wire) and self.provider in (None, GIVEN_PROVIDER, provider)

    @property
    def tool_uses(self) -> tuple[ToolUseBlock, ...]:
        return tuple(block for block in self.content if isinstance(block, ToolUseBlock))


def block_to_stored(block: Block) -> dict[str, Any]:
    """The stored form of a block: a dictionary with ``type`` first.

    Raises:
        TypeError: it is no block.
    """
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ToolUseBlock():
            stored: dict[str, Any] = {
                "type": "tool_use",
                "id": block.id,
                "name": block.name,
                "arguments": block.arguments,
            }
            if block.signature is not None:
                stored["signature"] = block.signature
            return stored
        case ToolResultBlock():
            stored = {
                "type": "tool_result",
                "tool_call_id": block.tool_call_id,
                "tool_name": block.tool_name,
                "content": block.content,
            }
            if block.is_error:
                stored["is_error"] = True
            if block.images:
                stored["images"] = [block_to_stored(image) for image in block.images]
            return stored
        case ThinkingBlock():
            stored = {"type": "thinking", "thinking": block.thinking}
            if block.signature is not None:
                stored["signature"] = block.signature
            return stored
        case RedactedThinkingBlock():
            return {"type": "redacted_thinking", "data": block.data}
        case ImageBlock():
            return {"type": "image", "data": block.data, "mime_type": block.mime_type}
        case UnknownBlock():
            return dict(block.raw)
    raise TypeError(f"{type(block).__name__} is no block of a message")


def block_from_stored(raw: Any) -> Block:
    """Reads a stored block. One of an unknown type, or with wrong fields, becomes an :class:`UnknownBlock`.

    Raises:
        ValueError: ``raw`` is no JSON object, or one of an unknown type that is nested too deeply.
    """
    if not isinstance(raw, dict):
        raise ValueError("a content block is not an object")
    kind = raw.get("type")
    try:
        # In the order of how often they occur: a long history has tens of thousands of them.
        if kind == "text":
            return TextBlock(_text(raw, "text"))
        if kind == "tool_use":
            return ToolUseBlock(
                _text(raw, "id"), _text(raw, "name"), _text(raw, "arguments"), _optional(raw, "signature")
            )
        if kind == "tool_result":
            return _tool_result(raw)
        if kind == "thinking":
            return ThinkingBlock(_text(raw, "thinking"), _optional(raw, "signature"))
        if kind == "redacted_thinking":
            return RedactedThinkingBlock(_text(raw, "data"))
        if kind == "image":
            return ImageBlock(_text(raw, "data"), _text(raw, "mime_type"))
    except (KeyError, TypeError):
        pass
    return UnknownBlock(_shallow(raw))


def _tool_result(raw: Mapping[str, Any]) -> ToolResultBlock:
    images = raw.get("images") or ()
    return ToolResultBlock(
        _text(raw, "tool_call_id"),
        _text(raw, "tool_name"),
        _text(raw, "content"),
        raw.get("is_error") is True,
        tuple(block for block in map(block_from_stored, images) if isinstance(block, ImageBlock)),
    )


def _text(raw: Mapping[str, Any], key: str) -> str:
    value = raw[key]
    if not isinstance(value, str):
        raise TypeError(key)
    return value


def _optional(raw: Mapping[str, Any], key: str) -> str | None:
    value = raw.get(key)
    if value is not None and not isinstance(value, str):
        raise TypeError(key)
    return value


_OPTIONAL_KEYS = ("provider", "model", "wire", "stop_reason", "opaque")
_KNOWN_KEYS = frozenset(("role", "content", "id", "created_at", "turn", "step", "usage", *_OPTIONAL_KEYS))


def message_to_stored(message: Message) -> dict[str, Any]:
    """The stored form of a message: what one line of a history file holds."""
    stored: dict[str, Any] = {
        "role": message.role,
        "content": [block_to_stored(block) for block in message.content],
        "id": message.id,
        "created_at": message.created_at,
        "turn": message.turn,
        "step": message.step,
    }
    for key in _OPTIONAL_KEYS:
        value = getattr(message, key)
        if value is not None:
            stored[key] = value
    if message.usage is not None:
        stored["usage"] = message.usage.to_dict()
    stored.update(message.extra)
    return stored


def message_from_stored(raw: Any) -> Message:
    """Reads a stored message; keys that are missing get their defaults, unknown ones are kept in ``extra``.

    Raises:
        ValueError: it is no message (not an object, no known role, or content that is no list of objects), or what it
            keeps unread is nested too deeply.
    """
    if not isinstance(raw, dict):
        raise ValueError("a message is not an object")
    role = raw.get("role")
    if role not in ("user", "assistant", "tool", "system"):
        raise ValueError("a message has no known role")
    content = raw.get("content")
    if not isinstance(content, list):
        raise ValueError("a message's content is not a list")

    def typed(key: str, kind: type) -> Any:
        value = raw.get(key)
        return value if type(value) is kind else None

    usage = typed("usage", dict)
    return Message(
        role,
        tuple(map(block_from_stored, content)),
        typed("id", str) or "",
        typed("created_at", str) or "",
        _count(raw, "turn"),
        _count(raw, "step"),
        typed("provider", str),
        typed("model", str),
        typed("wire", str),
        Usage.from_dict(usage) if usage is not None else None,
        typed("stop_reason", str),
        _shallow(typed("opaque", dict)),
        {} if raw.keys() <= _KNOWN_KEYS else _shallow({key: raw[key] for key in raw if key not in _KNOWN_KEYS}),
    )


def _shallow(kept: T) -> T:
    """What is kept as it was read, and written again, as long as it can be."""
    if not kept:
        return kept
    # Few messages have anything of the kind, and whoever only makes messages needs no JSON.
    from openheim.jsontext import is_deep

    if is_deep(kept):
        raise ValueError("a message is nested too deeply")
    return kept
