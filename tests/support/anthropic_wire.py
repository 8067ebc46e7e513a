"""Replies on the Messages wire, as a scripted server sends them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tests.support.replies import Reply, raw

__all__ = ("MODEL", "block", "error", "events", "message", "models", "text", "tool_calls")

MODEL = "m-test"

#: Input and output tokens that replies report.
USAGE = (11, 5)

Block = Mapping[str, Any]


def text(*pieces: str, thinking: str = "", finish: str = "end_turn", usage: tuple[int, int] = USAGE) -> Reply:
    """A reply of text, streamed in these pieces, behind signed thinking if there is any."""
    return message(*_thinking(thinking), *([block("text", *pieces)] if pieces else []), finish=finish, usage=usage)


def tool_calls(
    *calls: tuple[str, Any] | tuple[str, Any, str],
    text: str = "",
    thinking: str = "",
    finish: str = "tool_use",
    usage: tuple[int, int] = USAGE,
) -> Reply:
    """A reply that asks for tools: ``(name, arguments)`` or ``(name, arguments, id)`` each.

    Arguments are an object, or the text to send in place of one. Ids are ``toolu_1``, ``toolu_2`` and so on unless
    given.
    """
    blocks = [*_thinking(thinking), *([block("text", text)] if text else [])]
    for number, call in enumerate(calls, 1):
        name, arguments, *given = call
        written = arguments if isinstance(arguments, str) else json.dumps(arguments)
        middle = len(written) // 2
        # In two pieces behind an empty one, as the service does.
        pieces = ("", *(piece for piece in (written[:middle], written[middle:]) if piece))
        blocks.append(block("tool_use", *pieces, id=given[0] if given else f"toolu_{number}", name=name))
    return message(*blocks, finish=finish, usage=usage)


def block(kind: str, *pieces: str, **fields: Any) -> list[dict[str, Any]]:
    """The events of one block without their index: of text, thinking, a call or any other kind."""
    start: dict[str, Any] = {"type": kind}
    deltas: list[dict[str, Any]] = []
    if kind == "text":
        start |= {"text": ""}
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
    elif kind == "thinking":
        start |= {"thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces]
        deltas.append({"type": "signature_delta", "signature": fields.pop("signature", "c2lnbmVk")})
    elif kind.endswith("tool_use"):
        start |= {"input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    start |= fields
    return [
        {"type": "content_block_start", "content_block": start},
        *({"type": "content_block_delta", "delta": delta} for delta in deltas),
        {"type": "content_block_stop"},
    ]


def message(
    *blocks: Iterable[Mapping[str, Any]],
    finish: str | None = "end_turn",
    usage: tuple[int, int] = USAGE,
    counts: Mapping[str, Any] | None = None,
    end: Mapping[str, Any] | None = None,
) -> Reply:
    """A reply of these blocks, each as :func:`block` gives it.

    Args:
        counts: more counts of the usage at the start.
        end: more fields of the end.
    """
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "content": []}
    start |= {"stop_reason": None, "stop_sequence": None}
    start["usage"] = {"input_tokens": usage[0], "output_tokens": 1, **(counts or {})}
    payloads: list[Mapping[str, Any]] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, of_block in enumerate(blocks):
        payloads += ({**event, "index": index} for event in of_block)
    if finish is not None:
        delta = {"stop_reason": finish, "stop_sequence": None, **(end or {})}
        payloads.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage[1]}})
    payloads.append({"type": "message_stop"})
    return events(*payloads)


def error(
    status: int,
    message: str = "it failed",
    *,
    type: str = "invalid_request_error",
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """A refusal in Anthropic's form."""
    body = {"type": "error", "error": {"type": type, "message": message}, "request_id": "req_1"}
    return raw(json.dumps(body), status=status, content_type="application/json", headers=headers)


def events(*payloads: Mapping[str, Any]) -> Reply:
    """A stream of these events, each a piece."""
    return raw([_frame(payload) for payload in payloads])


def models(*entries: str | Mapping[str, Any], has_more: bool = False) -> Reply:
    """The list of these models: names, or whole entries."""
    data = [_model(entry) if isinstance(entry, str) else {**_model(""), **entry} for entry in entries]
    page = {"data": data, "has_more": has_more, "first_id": None, "last_id": None}
    if data:
        page |= {"first_id": data[0]["id"], "last_id": data[-1]["id"]}
    return raw(json.dumps(page), content_type="application/json")


def _model(name: str) -> dict[str, Any]:
    return {"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"}


def _thinking(thought: str) -> list[list[dict[str, Any]]]:
    return [block("thinking", thought)] if thought else []


def _frame(payload: Mapping[str, Any]) -> bytes:
    return f"event: {payload['type']}\ndata: {json.dumps(payload, separators=(',', ':'))}\n\n".encode()
