"""Messages as contents of the wire: roles ``user`` and ``model``, and parts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from openheim import (
    ImageBlock,
    MessageParts,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
    wire_tool_name,
)
from openheim.jsontext import wire_bytes
from openheim_provider_gemini.signatures import is_base64, signed_spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from openheim import Message
    from openheim_provider_gemini.signatures import SignedSpan

__all__ = ("FRAMES", "PART", "WIRE", "ContentEncoder", "is_writable")

WIRE = "gemini"

FRAMES = {
    "user": (b'{"role":"user","parts":[', b"]}"),
    "model": (b'{"role":"model","parts":[', b"]}"),
}

#: Type of the blocks that hold a part which is of this wire only, such as code that the service itself has run.
PART = "gemini_part"

#: The service's own word for: this call was not made by a model of ours, so do not ask for its signature.
_STAND_IN = "skip_thought_signature_validator"

_IMAGE_TYPES = frozenset(("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"))

#: Stand for what was blank: a message that says nothing, and a tool that printed nothing.
_NO_TEXT = "(no text)"
_NO_OUTPUT = "(no output)"


class ContentEncoder:
    """Turns messages into parts, in the order of the conversation, each once.

    Ids of calls are unique in a request: one that an earlier message has used gets a number behind it, in the call and
    in its result.

    Args:
        newest: whether the model is of generation 3 or later. Such a model refuses a turn whose first call has no
            signature, whoever made it, and takes images inside a result; to others they stand beside it.
        provider: the entry that is asked, which gets back what its own service signed.
    """

    __slots__ = ("_newest", "_open", "_provider", "_sent_ids", "_uses")

    def __init__(self, newest: bool, provider: str) -> None:
        self._newest = newest
        self._provider = provider
        self._sent_ids: set[str] = set()
        #: How often each stored id was used.
        self._uses: dict[str, int] = {}
        #: Calls of the latest reply that have no result yet, by their stored ids: what their results have to repeat.
        self._open: dict[str, dict[str, str]] = {}

    def __call__(self, message: Message) -> MessageParts:
        match message.role:
            case "assistant":
                return MessageParts("model", list(map(wire_bytes, self._model_parts(message))))
            case "tool":
                return MessageParts("user", list(map(wire_bytes, self._result_parts(message))))
            case _:
                return MessageParts("user", list(map(wire_bytes, _user_parts(message))))

    def _model_parts(self, message: Message) -> Iterator[dict[str, Any]]:
        may_be_own = message.is_from(WIRE, self._provider)
        is_own = may_be_own and message.wire == WIRE
        spans = signed_spans(message.opaque) if may_be_own else {}
        needs_stand_in = self._newest or not is_own
        self._open.clear()
        for position, block in enumerate(message.content):
            signed = spans.get(position, ())
            if isinstance(block, TextBlock):
                yield from _text_parts(block.text, signed)
                continue
            yield from (_signed({"text": ""}, span.signature) for span in signed if span.end == 0)
            if isinstance(block, ToolUseBlock):
                if block.id in self._open:
                    continue  # A second one of this id could not be answered.
                signature = block.signature if may_be_own and is_base64(block.signature) else None
                if signature is None and needs_stand_in:
                    signature = _STAND_IN
                needs_stand_in = False
                called = self._open[block.id] = self._identity(block)
                yield _signed({"functionCall": called | {"args": _arguments(block.arguments)}}, signature)
            elif isinstance(block, ThinkingBlock):
                # Exactly: a history that says nothing of its wire may have thoughts that another one signed.
                if is_own and is_base64(block.signature):
                    yield _signed({"text": block.thinking, "thought": True}, block.signature)
            elif isinstance(block, ImageBlock):
                whole = next((span.signature for span in signed if span.end is None), None)
                picture = _picture(block)
                yield {"text": _unseen(block)} if picture is None else _signed(picture, whole)
            elif isinstance(block, UnknownBlock) and is_own:
                part = block.raw.get("part")
                if block.raw.get("type") == PART and isinstance(part, dict) and part and is_writable(part):
                    yield part
        yield from (_signed({"text": ""}, span.signature) for span in spans.get(len(message.content), ()))

    def _result_parts(self, message: Message) -> Iterator[dict[str, Any]]:
        for block in message.content:
            called = self._open.pop(block.tool_call_id, None) if isinstance(block, ToolResultBlock) else None
            if called is None or not isinstance(block, ToolResultBlock):
                continue  # Nothing may be answered that was not asked for.
            shown = [(image, _picture(image)) for image in block.images]
            pictures = [picture for _, picture in shown if picture is not None]
            lines = [block.content] if block.content.strip() else []
            lines += [_unseen(image) for image, picture in shown if picture is None]
            said = "\n".join(lines) or ("" if pictures else _NO_OUTPUT)
            response: dict[str, Any] = {**called, "response": {"error" if block.is_error else "result": said}}
            if pictures and self._newest:
                response["parts"] = pictures
                pictures = []
            yield {"functionResponse": response}
            yield from pictures

    def _identity(self, block: ToolUseBlock) -> dict[str, str]:
        """What a call and its result have in common."""
        name = {"name": wire_tool_name(block.name)}
        if not block.id.strip():
            return name
        call_id = block.id
        while call_id in self._sent_ids:
            self._uses[block.id] = use = self._uses.get(block.id, 1) + 1
            call_id = f"{block.id}-{use}"
        self._sent_ids.add(call_id)
        return {"id": call_id, **name}


def _user_parts(message: Message) -> Sequence[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for block in message.content:
        if isinstance(block, TextBlock) and block.text.strip():
            parts.append({"text": block.text})
        elif isinstance(block, ImageBlock):
            parts.append(_picture(block) or {"text": _unseen(block)})
    # Without it the conversation might begin with the model, which is refused.
    return parts or [{"text": _NO_TEXT}]


def _text_parts(text: str, spans: Sequence[SignedSpan]) -> Iterator[dict[str, Any]]:
    """A block of text, cut where signed parts of it begin and end."""
    done = 0
    for span in spans:
        if span.end is None or not done <= span.start <= span.end <= len(text):
            continue  # The text is not the one that was signed.
        if (before := text[done : span.start]).strip():
            yield {"text": before}
        yield _signed({"text": text[span.start : span.end]}, span.signature)
        done = span.end
    if (rest := text[done:]).strip():
        yield {"text": rest}


def _signed(part: dict[str, Any], signature: str | None) -> dict[str, Any]:
    return part if signature is None else part | {"thoughtSignature": signature}


def _arguments(text: str) -> Mapping[str, Any]:
    """Arguments as an object. A call that was cut or badly written would be refused for the rest of the session."""
    try:
        arguments = json.loads(text)
        wire_bytes(arguments)  # It may hold NaN, or be nested too deeply to be written again.
    except (ValueError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


def is_writable(part: Mapping[str, Any]) -> bool:
    """Whether a part that the service made can be sent back: JSON has no form for some numbers that Python reads."""
    try:
        wire_bytes(part)
    except (ValueError, TypeError, RecursionError):
        return False
    return True


def _picture(image: ImageBlock) -> dict[str, Any] | None:
    """An image as a part; None for what the service does not take."""
    mime_type = image.mime_type.strip().lower()
    if mime_type == "image/jpg":
        mime_type = "image/jpeg"
    if mime_type not in _IMAGE_TYPES or not is_base64(image.data):
        return None
    return {"inlineData": {"mimeType": mime_type, "data": image.data}}


def _unseen(image: ImageBlock) -> str:
    return f"[An image of type {image.mime_type.strip() or 'unknown'} cannot be shown to this model.]"
