"""Answers of the mock server in the form of each wire: a text of so many deltas, or a call of the one tool."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

TOOL = "note"

_MODEL = "mock"


class Wire(NamedTuple):
    """How a wire answers.

    Args:
        kind: the provider entry's kind, and further keys of the entry.
        text: the parts of an answer of one word a delta, before, for each, and behind.
        call: an answer that calls the tool; given the number of the call.
    """

    kind: dict[str, Any]
    text: tuple[list[bytes], bytes, list[bytes]]
    call: Callable[[int], list[bytes]]


def _data(payload: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(payload, separators=(",", ":")).encode() + b"\n\n"


def _named(payload: dict[str, Any]) -> bytes:
    return f"event: {payload['type']}\n".encode() + _data(payload)


# --- Chat Completions ---


def _choice(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _data({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": _MODEL, "choices": [choice]})


def _chat_end(finish: str) -> list[bytes]:
    usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
    last = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": _MODEL, "choices": [], "usage": usage}
    return [_choice({}, finish), _data(last), b"data: [DONE]\n\n"]


def _chat_call(number: int) -> list[bytes]:
    call = {"index": 0, "id": f"call_{number}", "type": "function", "function": {"name": TOOL, "arguments": "{}"}}
    return [_choice({"role": "assistant", "tool_calls": [call]}), *_chat_end("tool_calls")]


# --- Messages ---


def _messages_start() -> bytes:
    usage = {"input_tokens": 9, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": _MODEL, "content": [], "usage": usage}
    return _named({"type": "message_start", "message": message | {"stop_reason": None, "stop_sequence": None}})


def _block(block: dict[str, Any], deltas: list[dict[str, Any]]) -> tuple[list[bytes], list[bytes], list[bytes]]:
    start = _named({"type": "content_block_start", "index": 0, "content_block": block})
    middle = [_named({"type": "content_block_delta", "index": 0, "delta": delta}) for delta in deltas]
    return [start], middle, [_named({"type": "content_block_stop", "index": 0})]


def _messages_end(reason: str) -> list[bytes]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [
        _named({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}}),
        _named({"type": "message_stop"}),
    ]


def _messages_call(number: int) -> list[bytes]:
    block = {"type": "tool_use", "id": f"toolu_{number}", "name": TOOL, "input": {}}
    start, middle, end = _block(block, [{"type": "input_json_delta", "partial_json": "{}"}])
    return [_messages_start(), *start, *middle, *end, *_messages_end("tool_use")]


def _messages() -> Wire:
    start, (word,), end = _block({"type": "text", "text": ""}, [{"type": "text_delta", "text": "word "}])
    parts = [_messages_start(), *start], word, [*end, *_messages_end("end_turn")]
    return Wire({"kind": "anthropic"}, parts, _messages_call)


# --- Responses ---


def _response(status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
    usage = {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 18,
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": status,
        "model": _MODEL,
        "output": output,
        "usage": usage if status == "completed" else None,
        "error": None,
        "incomplete_details": None,
    }


def _item(item: dict[str, Any], deltas: list[dict[str, Any]]) -> tuple[list[bytes], list[bytes], list[bytes]]:
    added = {"type": "response.output_item.added", "output_index": 0, "item": item | {"status": "in_progress"}}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item | {"status": "completed"}}
    created = {"type": "response.created", "response": _response("in_progress", [])}
    place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    completed = {"type": "response.completed", "response": _response("completed", [item])}
    return (
        [_named(created), _named(added)],
        [_named(delta | place) for delta in deltas],
        [_named(done), _named(completed)],
    )


def _responses_call(number: int) -> list[bytes]:
    item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": TOOL, "arguments": "{}"}
    start, middle, end = _item(item, [{"type": "response.function_call_arguments.delta", "delta": "{}"}])
    return [*start, *middle, *end]


def _responses() -> Wire:
    content = [{"type": "output_text", "text": "word ", "annotations": []}]
    item = {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
    start, (word,), end = _item(item, [{"type": "response.output_text.delta", "delta": "word "}])
    return Wire({"kind": "openai", "wire": "responses"}, (start, word, end), _responses_call)


# --- Gemini ---


def _candidate(parts: list[dict[str, Any]], finish: str | None = None) -> bytes:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 9, "totalTokenCount": 18}
    return _data({"candidates": [candidate], "usageMetadata": usage, "modelVersion": _MODEL})


def _gemini_call(number: int) -> list[bytes]:
    return [_candidate([{"functionCall": {"id": f"call_{number}", "name": TOOL, "args": {}}}], "STOP")]


WIRES: dict[str, Wire] = {
    "chat": Wire(
        {"kind": "openai_compatible"},
        ([_choice({"role": "assistant", "content": ""})], _choice({"content": "word "}), _chat_end("stop")),
        _chat_call,
    ),
    "anthropic": _messages(),
    "responses": _responses(),
    "gemini": Wire(
        {"kind": "gemini"}, ([], _candidate([{"text": "word "}]), [_candidate([{"text": ""}], "STOP")]), _gemini_call
    ),
}


def wire_of(path: bytes) -> str:
    """The wire of a request by its path."""
    if path.endswith(b"/messages"):
        return "anthropic"
    if path.endswith(b"/responses"):
        return "responses"
    return "gemini" if b":streamGenerateContent" in path else "chat"
