"""Puts a reply together from the events of a Responses stream, and passes its pieces on as they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim import CallPart, EventAssembler, ServerError, Usage, any_count, token_count
from openheim.jsontext import MAX_DEPTH, is_deep, wire_bytes
from openheim_provider_openai.response_items import stored_items
from openheim_provider_openai.tool_calls import text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from openheim import EmitDelta, Finish, ProviderSettings

__all__ = ("ResponsesAssembler",)

_INCOMPLETE: dict[str, Finish] = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}


#: More items than that are no reply but a flood, and so are more parts of text, and more bytes of what has to be sent
#: back as it came.
_MAX_ITEMS = 1000
_MAX_TEXTS = 10_000
_MAX_KEPT = 16 * 1024 * 1024

#: What has to be known of an item whose text or arguments the reply's blocks hold.
_KEPT_FIELDS = ("type", "id", "phase", "status")


class _Text:
    """One part of an item's text: how much of it was written, and of which type it is."""

    __slots__ = ("kind", "place", "size")

    def __init__(self, kind: str, place: tuple[int, str, int]) -> None:
        self.kind = kind
        self.place = place
        self.size = 0


class _Item:
    """One item of the reply, as far as it has come. ``whole`` is what has to be kept of what the service says of it."""

    __slots__ = ("call", "has_text", "is_done", "is_kept", "texts", "whole")

    def __init__(self) -> None:
        self.is_done = False
        #: False for one that cannot be stored, and so is not sent back.
        self.is_kept = True
        self.whole: dict[str, Any] = {}
        self.texts: dict[tuple[str, int], _Text] = {}
        self.has_text = False
        self.call: CallPart | None = None


class ResponsesAssembler(EventAssembler):
    """Reads one stream of the Responses wire."""

    def __init__(self, emit: EmitDelta, settings: ProviderSettings | None = None) -> None:
        super().__init__(emit, settings)
        self._refused = False
        self._items: dict[int, _Item] = {}
        self._places: dict[str, int] = {}
        self._next_place = 0
        self._texts = 0
        self._kept = 0
        self._text: _Text | None = None
        self._handlers: dict[str, Callable[[dict[str, Any]], None]] = {
            "response.output_item.added": self._item_added,
            "response.output_item.done": self._item_done,
            "response.refusal.delta": self._refusal_delta,
            "response.reasoning_summary_text.delta": self._summary_delta,
            "response.reasoning_text.delta": self._reasoning_delta,
            "response.function_call_arguments.delta": self._arguments_delta,
            "response.created": self._response,
            "response.in_progress": self._response,
            "response.completed": self._ended,
            "response.incomplete": self._ended,
            "response.failed": self._ended,
            "response.cancelled": self._ended,
        }

    def take(self, payload: dict[str, Any], event: str) -> None:
        kind = payload.get("type") or event
        if kind == "response.output_text.delta":
            self._write("output_text", self._index(payload), payload.get("content_index", 0), payload["delta"])
            return
        handler = self._handlers.get(kind)
        if handler is not None:
            handler(payload)
        elif kind == "error" or (not kind and payload.get("object") == "error"):
            raise self.failure(payload)

    def take_document(self, payload: Any) -> bool:
        if not (isinstance(payload, dict) and isinstance(payload.get("output"), list)):
            return False
        self._ended({"response": payload})
        return True

    def normal_finish(self) -> Finish:
        return "refusal" if self._refused else super().normal_finish()

    # --- items ---

    def _index(self, payload: dict[str, Any]) -> int:
        """The place of the item that an event is about. Some servers tell its id only, some of them now and then."""
        index = payload.get("output_index")
        known = text_of(payload.get("item_id")) or text_of(payload.get("item", {}).get("id"))
        if isinstance(index, int):
            if known and len(self._places) < _MAX_ITEMS:
                self._places.setdefault(known, index)
            if index >= self._next_place:
                self._next_place = index + 1
            return index
        place = self._places.get(known)
        if place is None:
            if len(self._places) >= _MAX_ITEMS:
                raise _too_many("items", _MAX_ITEMS)
            place = self._places[known] = self._next_place
            self._next_place += 1
        return place

    def _item_added(self, payload: dict[str, Any]) -> None:
        self._begin(self._index(payload), payload["item"])

    def _begin(self, index: int, whole: dict[str, Any]) -> _Item:
        kind = whole["type"]
        item = self._items.get(index)
        if item is None:
            if len(self._items) >= _MAX_ITEMS:
                raise _too_many("items", _MAX_ITEMS)
            item = self._items[index] = _Item()
            self._next_place = max(self._next_place, index + 1)
            self._text = None
            self.parts.end_prose()
        if kind in ("message", "function_call"):
            item.whole = {key: whole[key] for key in _KEPT_FIELDS if isinstance(whole.get(key), str)}
        else:
            item.is_kept = self._keep(whole)
            item.whole = whole
        if kind == "function_call" and item.call is None:
            call = item.call = CallPart()
            call.id, call.name = text_of(whole.get("call_id")) or text_of(whole.get("id")), text_of(whole.get("name"))
            self.parts.begin_call(call)
            self.parts.call_piece(call, "")
        return item

    def _keep(self, whole: dict[str, Any]) -> bool:
        """Counts an item that has to be sent back as it came. False if that is not possible."""
        try:
            if is_deep(whole, MAX_DEPTH - 2):  # Stored, it is within two more levels.
                raise ValueError
            self._kept += len(wire_bytes(whole))
        except (ValueError, RecursionError):
            self.skip("cannot be stored")
            return False
        if self._kept > _MAX_KEPT:
            raise ServerError(f"the reply's reasoning is longer than {_MAX_KEPT // 2**20} MiB", retryable=False)
        return True

    def _item_done(self, payload: dict[str, Any]) -> None:
        self._finish_item(self._index(payload), payload["item"])

    def _finish_item(self, index: int, whole: dict[str, Any]) -> None:
        """Takes an item as it is in the end. What of it did not come in pieces is made up for."""
        item = self._begin(index, whole)
        item.is_done = True
        match whole["type"]:
            case "message":
                for place, part in enumerate(whole.get("content") or ()):
                    kind = "refusal" if part.get("type") == "refusal" else "output_text"
                    self._make_up(item, kind, index, place, part.get(kind) or part.get("text") or "")
            case "reasoning":
                for place, part in enumerate(whole.get("summary") or ()):
                    self._make_up(item, "summary", index, place, part["text"])
                if not item.texts:
                    for place, part in enumerate(whole.get("content") or ()):
                        self._make_up(item, "reasoning", index, place, part["text"])
            case "function_call" if item.call is not None:
                if not item.call.size:
                    self._call_piece(item.call, text_of(whole.get("arguments")))

    def _make_up(self, item: _Item, kind: str, index: int, place: int, text: str) -> None:
        known = item.texts.get((kind, place))
        if text and (known is None or not known.size):
            self._write(kind, index, place, text)

    # --- pieces ---

    def _write(self, kind: str, index: int, place: int, piece: str) -> None:
        text = self._text
        if text is None or text.place != (index, kind, place):
            text = self._text = self._find_text(kind, index, place)
        if not piece or not isinstance(piece, str):
            return
        is_thought = kind in ("summary", "reasoning")
        if not text.size:
            if is_thought:
                piece = f"\n\n{piece}" if self._items[index].has_text else piece
            else:
                # Each part is a block of its own, so that the parts can be told apart when they are sent back.
                self.parts.end_prose()
            self._items[index].has_text = True
        text.size += len(piece)
        self.parts.write(piece, thinking=is_thought)
        if kind == "refusal":
            self._refused = True

    def _find_text(self, kind: str, index: int, place: int) -> _Text:
        item = self._items.get(index)
        if item is None:
            types = {"output_text": "message", "refusal": "message"}
            item = self._begin(index, {"type": types.get(kind, "reasoning")})
        text = item.texts.get((kind, place))
        if text is None:
            self._texts += 1
            if self._texts > _MAX_TEXTS:
                raise _too_many("parts", _MAX_TEXTS)
            text = item.texts[kind, place] = _Text(kind, (index, kind, place))
        return text

    def _refusal_delta(self, payload: dict[str, Any]) -> None:
        self._write("refusal", self._index(payload), payload.get("content_index", 0), payload["delta"])

    def _summary_delta(self, payload: dict[str, Any]) -> None:
        self._write("summary", self._index(payload), payload.get("summary_index", 0), payload["delta"])

    def _reasoning_delta(self, payload: dict[str, Any]) -> None:
        self._write("reasoning", self._index(payload), payload.get("content_index", 0), payload["delta"])

    def _arguments_delta(self, payload: dict[str, Any]) -> None:
        item = self._items[self._index(payload)]
        if item.call is not None:
            self._call_piece(item.call, text_of(payload["delta"]))

    def _call_piece(self, call: CallPart, piece: str) -> None:
        added = call.add_arguments(piece)
        if added:
            self.parts.call_piece(call, added)

    # --- the response as a whole ---

    def _response(self, payload: dict[str, Any]) -> None:
        model = payload["response"].get("model")
        if isinstance(model, str):
            self.model = model

    def _ended(self, payload: dict[str, Any]) -> None:
        response = payload["response"]
        self._response(payload)
        usage = response.get("usage")
        if isinstance(usage, dict):
            self._count(usage)
        status = response.get("status") or str(payload.get("type", "")).rpartition(".")[2]
        if response.get("error") or status in ("failed", "cancelled"):
            raise self.failure({"error": response.get("error") or {"message": f"the response was {status}"}})
        reason = (response.get("incomplete_details") or {}).get("reason")
        self.finish = _INCOMPLETE.get(str(reason), "other") if status == "incomplete" else "end_turn"
        self.done = True
        for position, whole in enumerate(response.get("output") or ()):
            index = self._places.get(text_of(whole.get("id")), position)
            item = self._items.get(index)
            if item is None or not item.is_done:
                self._finish_item(index, whole)
        self.opaque = stored_items([_as_said(item) for _, item in sorted(self._items.items()) if item.is_kept])

    def _count(self, usage: dict[str, Any]) -> None:
        if not any_count((usage.get("input_tokens"), usage.get("output_tokens"))):
            return
        details = usage.get("input_tokens_details")
        details = details if isinstance(details, dict) else {}
        read, written = token_count(details.get("cached_tokens")), token_count(details.get("cache_write_tokens"))
        self.usage = Usage(
            input_tokens=max(0, token_count(usage.get("input_tokens")) - read - written),
            output_tokens=token_count(usage.get("output_tokens")),
            cache_creation_tokens=written,
            cache_read_tokens=read,
        )


def _as_said(item: _Item) -> dict[str, Any]:
    """An item with the types of its parts of text that say something in place of its content."""
    if item.whole["type"] != "message":
        return item.whole
    return item.whole | {"content": [text.kind for text in item.texts.values() if text.size]}


def _too_many(what: str, limit: int) -> ServerError:
    return ServerError(f"the reply has more than {limit} {what}", hint="that is no answer of a model", retryable=False)
