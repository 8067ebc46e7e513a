"""Messages as items of the Responses wire.

A reply of this wire brings more than blocks of a message can hold: encrypted reasoning, ids, phases. What has to come
back is stored beside the blocks, in :attr:`~openheim.Message.opaque`, as ``{"items": [...]}`` in the order of the
reply. Items of text and of calls are stored there without their text, name and arguments, which the blocks hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim import (
    ImageBlock,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    wire_tool_name,
)
from openheim.jsontext import is_object, wire_bytes
from openheim_provider_openai.call_ids import CallIds
from openheim_provider_openai.chat_messages import NO_OUTPUT, NOTHING_SAID, calls_of, result_text
from openheim_provider_openai.dialect import RESPONSES
from openheim_provider_openai.images import SHOWN_BEFORE, data_url, in_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from openheim import Message
    from openheim_provider_openai.dialect import Dialect

__all__ = ("ItemEncoder", "stored_items")

_CALL_ID = r"[A-Za-z0-9_-]{1,64}"


class ItemEncoder:
    """Encodes messages.

    Args:
        dialect: how the service is spoken to.
        provider: the entry's name. Nobody else can read the reasoning that its service encrypted.
        replays: whether the model may get reasoning back; one that does not reason refuses it.
    """

    def __init__(self, dialect: Dialect, provider: str, *, replays: bool) -> None:
        self.replays = replays
        self._provider = provider
        self._id_pattern = dialect.tool_id_pattern or _CALL_ID

    def call_ids(self) -> CallIds:
        """Those of one conversation, in the form that the service takes."""
        return CallIds(self._id_pattern)

    def encode(self, message: Message, ids: CallIds) -> list[bytes]:
        """The items of a message; none if it has nothing to say on this wire.

        Args:
            ids: of the conversation up to this message at least.
        """
        match message.role:
            case "assistant":
                return self._replayed(message, ids) or list(map(wire_bytes, _plain(message, ids)))
            case "tool":
                results = [block for block in message.content if isinstance(block, ToolResultBlock)]
                return [wire_bytes(_output(block, ids.of(message, block.tool_call_id))) for block in results]
        return [wire_bytes({"role": message.role, "content": _input_content(message)})]

    # --- replies ---

    def _replayed(self, message: Message, ids: CallIds) -> list[bytes]:
        """The items of a reply of this wire as they came; none if it is not, if its blocks have been changed, or if
        JSON cannot say them again."""
        opaque = message.opaque or {}
        items = opaque.get("items")
        if not isinstance(items, list) or not message.is_from(RESPONSES, self._provider):
            return []
        texts = [block.text for block in message.content if isinstance(block, TextBlock)]
        calls = [_call(block, ids.of(message, block.id)) for block in message.tool_uses]
        if len({call["call_id"] for call in calls}) < len(calls):
            return []
        try:
            encoded = [wire_bytes(item) for item in self._in_order(items, texts, calls)]
        except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError):
            return []
        return [] if texts or calls else encoded

    def _in_order(
        self, items: Sequence[Mapping[str, Any]], texts: list[str], calls: list[dict[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        """Takes texts and calls out of the lists as their items come."""
        # Reasoning is refused without the item that it led to, which is not there if the reply was cut or is blank.
        waiting: list[dict[str, Any]] = []
        for item in items:
            match item["type"]:
                case "reasoning":
                    if self.replays:
                        waiting.append(dict(item))
                    continue
                case "message":
                    encoded = self._message(item, [(part, texts.pop(0)) for part in item["content"]])
                    if encoded is None:
                        continue
                case "function_call":
                    # Without its reasoning, an item's id would make the service ask for it.
                    encoded = calls.pop(0) | ({"id": item["id"]} if self.replays and "id" in item else {})
                case _:
                    if not self.replays:
                        continue
                    encoded = dict(item)
            yield from waiting
            waiting.clear()
            yield encoded

    def _message(self, item: Mapping[str, Any], parts: list[tuple[str, str]]) -> dict[str, Any] | None:
        said = [(kind, text) for kind, text in parts if text.strip()]
        if not said:
            return None
        content = [{"type": kind, "refusal": text} if kind == "refusal" else _output_text(text) for kind, text in said]
        encoded = _said(content) | ({"phase": item["phase"]} if "phase" in item else {})
        if self.replays and "id" in item:
            encoded |= {"id": item["id"], "status": item.get("status") or "completed"}
        return encoded


def stored_items(items: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """What has to be stored of a reply's items, or None if the blocks hold all of it.

    Args:
        items: as they came, in order. Those of text have their parts that say something as ``content``, by type.
    """
    reasoning = [item for item in items if item["type"] == "reasoning"]
    # Nothing is stored at the service, so that reasoning without its content could not be found there.
    readable = all(item.get("encrypted_content") or item.get("content") for item in reasoning)
    stored: list[dict[str, Any]] = []
    for item in items:
        match item["type"]:
            case "reasoning" if not readable:
                continue
            case "message":
                kept = ("id", "phase", "status") if readable else ("phase",)
                stored.append(
                    {"type": "message", "content": item["content"]}
                    | {key: item[key] for key in kept if item.get(key) is not None}
                )
            case "function_call":
                known = {"id": item["id"]} if readable and item.get("id") else {}
                stored.append({"type": "function_call"} | known)
            case _:
                # An explicit null is refused where a field may be left out.
                stored.append({key: value for key, value in item.items() if value is not None})
    plain = all(item["type"] in ("message", "function_call") and "phase" not in item for item in stored)
    return None if plain else {"items": stored}


def _plain(message: Message, ids: CallIds) -> Iterator[dict[str, Any]]:
    """A reply as its blocks hold it."""
    calls = calls_of(message)
    for block in message.content:
        if isinstance(block, TextBlock) and block.text.strip():
            yield _said([_output_text(block.text)])
        elif isinstance(block, ImageBlock):
            yield _said([_output_text(SHOWN_BEFORE)])
        elif isinstance(block, ToolUseBlock) and any(block is call for call in calls):
            yield _call(block, ids.of(message, block.id))


def _call(block: ToolUseBlock, call_id: str) -> dict[str, Any]:
    return {
        "type": "function_call",
        "call_id": call_id,
        "name": wire_tool_name(block.name),
        # A call that was cut or badly written would be refused for the rest of the session.
        "arguments": block.arguments if is_object(block.arguments) else "{}",
    }


def _output(block: ToolResultBlock, call_id: str) -> dict[str, Any]:
    text = result_text(block)
    images = [part for image in block.images if (part := _input_image(image))["type"] == "input_image"]
    output: str | list[dict[str, Any]] = text or NO_OUTPUT
    if images:
        output = [*([{"type": "input_text", "text": text}] if text else []), *images]
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def _said(content: list[dict[str, Any]]) -> dict[str, Any]:
    """What the assistant said. The type is left out by nobody: some servers go by it."""
    return {"type": "message", "role": "assistant", "content": content}


def _output_text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}


def _input_content(message: Message) -> str | list[dict[str, Any]]:
    parts = [
        _input_image(block) if isinstance(block, ImageBlock) else {"type": "input_text", "text": block.text}
        for block in message.content
        if isinstance(block, ImageBlock) or (isinstance(block, TextBlock) and block.text.strip())
    ]
    if any(part["type"] == "input_image" for part in parts):
        return parts
    return "\n\n".join(part["text"] for part in parts) or NOTHING_SAID


def _input_image(image: ImageBlock) -> dict[str, Any]:
    url = data_url(image)
    if url is None:
        return {"type": "input_text", "text": in_words(image)}
    return {"type": "input_image", "image_url": url, "detail": "auto"}
