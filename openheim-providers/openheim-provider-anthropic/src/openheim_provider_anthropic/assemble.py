"""Puts a reply together from the events of a Messages stream, and passes its pieces on as they come."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from openheim import CallPart, EventAssembler, RedactedThinkingBlock, UnknownBlock, Usage, any_count, token_count
from openheim.jsontext import is_deep, wire_bytes

if TYPE_CHECKING:
    from openheim import EmitDelta, Finish, ProviderSettings, ToolNames

__all__ = ("MessagesAssembler",)

_FINISHES: dict[str, Finish] = {
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "refusal": "refusal",
    "pause_turn": "paused",
}

#: Counts of usage, in the order of :class:`Usage`.
_COUNTERS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")

#: Fields of calls that have no place in ours and go back with them.
_CALL_FIELDS = ("caller", "toolset_name")


#: Levels of nesting that can be stored, less those of the place where a value is kept.
_LEVELS = 90


class _OpenBlock:
    """A block that has begun and not ended."""

    __slots__ = ("call", "citations", "input", "ordinal", "pieces", "raw")

    def __init__(self) -> None:
        self.call: CallPart | None = None
        #: What a call's input was at its start; only some servers send it then.
        self.input: Any = None
        #: A block of another kind, which is kept as it is, and the pieces of its input.
        self.raw: dict[str, Any] | None = None
        self.pieces: list[str] = []
        #: Of text: where it says what from, and its number among the texts of the reply once there is any of it.
        self.citations: list[Any] = []
        self.ordinal = -1


class MessagesAssembler(EventAssembler):
    """Reads one stream of the Messages wire.

    Args:
        names: of the tools that were offered.
    """

    def __init__(self, emit: EmitDelta, settings: ProviderSettings, names: ToolNames) -> None:
        super().__init__(emit, settings)
        self._names = names
        self._open: dict[Any, _OpenBlock] = {}
        self._writing: Any = None
        self._texts = 0
        self._extras: dict[str, dict[str, Any]] = {}

    def take(self, payload: dict[str, Any], event: str) -> None:
        kind = payload.get("type") or event
        if kind == "content_block_delta":
            self._take_delta(payload.get("index"), payload["delta"])
        elif kind == "content_block_start":
            self._begin(payload.get("index"), payload["content_block"])
        elif kind == "content_block_stop":
            self._end(payload.get("index"))
        elif kind == "message_start":
            self._take_message(payload["message"])
        elif kind == "message_delta":
            self._take_end(payload.get("delta") or {})
            self._count(payload.get("usage"))
        elif kind == "message_stop":
            self._end_all()
            self.done = True
        elif kind == "error":
            raise self.failure(payload)
        # Pings, and events of later versions, mean nothing here.

    def take_document(self, payload: Any) -> bool:
        if not (isinstance(payload, dict) and isinstance(payload.get("content"), list)):
            return False
        self._take_message(payload)
        for index, block in enumerate(payload["content"]):
            self._begin(index, block)
            self._end(index)
        self._take_end(payload)
        return True

    # --- blocks ---

    def _begin(self, index: Any, block: dict[str, Any]) -> None:
        self._end(index)
        self.parts.end_prose()
        opened = self._open[index] = _OpenBlock()
        self._writing = index
        kind = block["type"]
        if kind == "text":
            if isinstance(citations := block.get("citations"), list):
                opened.citations += filter(_is_storable, citations)
            if text := _text(block.get("text")):
                self._write(text, index)
        elif kind == "thinking":
            if thought := _text(block.get("thinking")):
                self.parts.write(thought, thinking=True)
            if signature := _text(block.get("signature")):
                self.parts.sign(signature)
        elif kind == "redacted_thinking":
            if data := _text(block["data"]):
                self.parts.put(RedactedThinkingBlock(data))
        elif kind == "tool_use":
            opened.call = call = CallPart()
            # A call without an id gets one, and one without a name is told of at the end.
            call.id = block["id"] if isinstance(block.get("id"), str) else ""
            call.name = self._names.original(block["name"]) if isinstance(block.get("name"), str) else ""
            opened.input = block.get("input")
            self.parts.begin_call(call)
            self.parts.call_piece(call, "")
            if fields := {key: block[key] for key in _CALL_FIELDS if _says_something(block.get(key))}:
                self._extras.setdefault("tool_use", {})[str(call.position)] = fields
        elif not _is_storable(block):
            self.skip("cannot be kept, and so not be sent back")
        else:
            opened.raw = dict(block)
            self.parts.put(UnknownBlock(opened.raw))

    def _take_delta(self, index: Any, delta: dict[str, Any]) -> None:
        kind = delta["type"]
        if kind == "text_delta":
            if text := _text(delta["text"]):
                self._write(text, index)
        elif kind == "thinking_delta":
            if thought := _text(delta["thinking"]):
                self._turn_to(index)
                self.parts.write(thought, thinking=True)
        elif kind == "signature_delta":
            signature = _text(delta["signature"])
            self._turn_to(index)
            if signature:
                self.parts.sign(signature)
        elif kind == "input_json_delta":
            self._take_input(self._open[index], _text(delta["partial_json"]))
        elif kind == "citations_delta":
            if _is_storable(delta["citation"]):
                self._open[index].citations.append(delta["citation"])

    def _take_input(self, block: _OpenBlock, piece: str) -> None:
        if not piece:
            return
        if block.call is not None:
            added = block.call.add_arguments(piece)
            self.parts.call_piece(block.call, added)
        elif block.raw is not None:
            block.pieces.append(piece)

    def _write(self, text: str, index: Any) -> None:
        self._turn_to(index)
        block = self._open.get(index)
        if block is None:
            block = self._open[index] = _OpenBlock()
        if block.ordinal < 0:
            block.ordinal = self._texts
            self._texts += 1
        self.parts.write(text)

    def _turn_to(self, index: Any) -> None:
        """Makes sure that text does not go on with that of another block."""
        if index != self._writing:
            self.parts.end_prose()
            self._writing = index

    def _end(self, index: Any) -> None:
        block = self._open.pop(index, None)
        if block is None:
            return
        if block.call is not None:
            if not block.call.size and block.input and isinstance(block.input, dict):
                arguments = block.call.add_arguments(json.dumps(block.input, ensure_ascii=False))
                self.parts.call_piece(block.call, arguments)
        elif block.raw is not None and block.pieces:
            try:
                given = json.loads("".join(block.pieces))
            except (ValueError, RecursionError):
                given = None
            if given is not None and _is_storable(given):
                block.raw["input"] = given
            else:
                self.skip("is the input of a tool of the service, and no JSON that can be kept")
        elif block.citations and block.ordinal >= 0:
            self._extras.setdefault("text", {})[str(block.ordinal)] = {"citations": block.citations}
        self.parts.end_prose()

    def _end_all(self) -> None:
        for index in list(self._open):
            self._end(index)

    # --- the message ---

    def _take_message(self, message: dict[str, Any]) -> None:
        if isinstance(message.get("model"), str):
            self.model = message["model"]
        self._take_container(message.get("container"))
        self._count(message.get("usage"))

    def _take_container(self, container: Any) -> None:
        """Notes the place where code was run for this reply; what goes on with it has to name it."""
        if isinstance(container, dict) and isinstance(container.get("id"), str):
            self._extras["container"] = {"id": container["id"]}

    def _take_end(self, delta: dict[str, Any]) -> None:
        self._take_container(delta.get("container"))
        reason = delta.get("stop_reason")
        if not reason:
            return
        self._end_all()
        self.finish = _FINISHES.get(str(reason), "other")
        details = delta.get("stop_details")
        if self.finish == "refusal" and not self.parts and isinstance(details, dict) and details.get("explanation"):
            self.parts.write(str(details["explanation"]))
        if self._extras:
            self.opaque = self._extras

    def _count(self, usage: Any) -> None:
        """Takes counts, which are totals each time; later events may leave some out, and some servers send 0 first."""
        if not isinstance(usage, dict) or not any_count(map(usage.get, _COUNTERS)):
            return
        before = self.usage or Usage()
        read, written, created, reused = (token_count(usage.get(name)) for name in _COUNTERS)
        self.usage = Usage(
            max(before.input_tokens, read),
            max(before.output_tokens, written),
            max(before.cache_creation_tokens, created),
            max(before.cache_read_tokens, reused),
        )


def _says_something(value: Any) -> bool:
    return bool(value) and value != {"type": "direct"} and _is_storable(value)


def _text(value: Any) -> str:
    """Text that a service sent, or ``""`` for null.

    Raises:
        TypeError: it is no text; joined with others later, it would spoil what has come.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _is_storable(value: Any) -> bool:
    """Whether a value can be stored and sent back: JSON has no form for some numbers that Python reads from it."""
    if is_deep(value, _LEVELS):
        return False
    try:
        wire_bytes(value)
    except (ValueError, TypeError, RecursionError):
        return False
    return True
