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
from openheim_provider_gemini.signatures import signed_spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from openheim import Message
    from openheim_provider_gemini.signatures import SignedSpan

__all__ = ("FRAMES", "PART", "WIRE", "ContentEncoder")

WIRE = "gemini"

FRAMES = {
    "user": (b'{"role":"user","parts":[', b"]}"),
    "model": (b'{"role":"model","parts":[', b"]}"),
}

#: Type of the blocks that hold a part which is of this wire only, such as code that the service itself has run.
PART = "gemini_part"

#: The service's own word for: this call was not made by a model of ours, so do not ask for its signature.
_STAND_IN = "skip_thought_signature_validator"

#: Stand for what was blank: a message that says nothing, and a tool that printed nothing.
_NO_TEXT = "(no text)"
_NO_OUTPUT = "(no output)"


class ContentEncoder:
    """Turns messages into parts.

    Args:
        newest: whether the model is of generation 3 or later. Such a model refuses a turn whose first call has no
            signature, whoever made it, and takes images inside a result; to others they stand beside it.
        provider: the entry that is asked, which gets back what its own service signed.
    """

    __slots__ = ("_newest", "_provider")

    def __init__(self, newest: bool, provider: str) -> None:
        self._newest = newest
        self._provider = provider

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
        for position, block in enumerate(message.content):
            signed = spans.get(position, ())
            if isinstance(block, TextBlock):
                yield from _text_parts(block.text, signed)
                continue
            yield from (_signed({"text": ""}, span.signature) for span in signed if span.end == 0)
            if isinstance(block, ToolUseBlock):
                signature = block.signature if may_be_own else None
                if signature is None and needs_stand_in:
                    signature = _STAND_IN
                needs_stand_in = False
                yield _signed(_call_part(block), signature)
            elif isinstance(block, ThinkingBlock):
                # Exactly: a history that says nothing of its wire may have thoughts that another one signed.
                if is_own and block.signature:
                    yield _signed({"text": block.thinking, "thought": True}, block.signature)
            elif isinstance(block, ImageBlock) and block.data:
                whole = next((span.signature for span in signed if span.end is None), None)
                yield _signed(_image_part(block), whole)
            elif isinstance(block, UnknownBlock) and is_own:
                part = block.raw.get("part")
                if block.raw.get("type") == PART and isinstance(part, dict) and part:
                    yield part
        yield from (_signed({"text": ""}, span.signature) for span in spans.get(len(message.content), ()))

    def _result_parts(self, message: Message) -> Iterator[dict[str, Any]]:
        for block in message.content:
            if isinstance(block, ToolResultBlock):
                response = _response(block)
                images = [_image_part(image) for image in block.images if image.data]
                if images and self._newest:
                    response["parts"] = images
                    images = []
                yield {"functionResponse": response}
                yield from images


def _user_parts(message: Message) -> Sequence[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for block in message.content:
        if isinstance(block, TextBlock) and block.text.strip():
            parts.append({"text": block.text})
        elif isinstance(block, ImageBlock) and block.data:
            parts.append(_image_part(block))
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


def _call_part(block: ToolUseBlock) -> dict[str, Any]:
    call = {"name": wire_tool_name(block.name), "args": _arguments(block.arguments)}
    return {"functionCall": {"id": block.id, **call} if block.id.strip() else call}


def _arguments(text: str) -> Mapping[str, Any]:
    """Arguments as an object. A call that was cut or badly written would be refused for the rest of the session."""
    try:
        arguments = json.loads(text)
        wire_bytes(arguments)  # It may hold NaN, or be nested too deeply to be written again.
    except (ValueError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _response(block: ToolResultBlock) -> dict[str, Any]:
    said = block.content if block.content.strip() else "" if block.images else _NO_OUTPUT
    response = {"name": wire_tool_name(block.tool_name), "response": {"error" if block.is_error else "result": said}}
    return {"id": block.tool_call_id, **response} if block.tool_call_id.strip() else response


def _image_part(image: ImageBlock) -> dict[str, Any]:
    return {"inlineData": {"mimeType": image.mime_type, "data": image.data}}
