"""Replies on OpenAI's Responses wire, as a scripted server sends them: items, and the events that bring them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.openai_wire import MODEL
from tests.support.replies import Reply, raw

__all__ = ("call", "events", "failed", "item_events", "message", "reasoning", "reply", "response", "text", "tool_calls")

#: Input and output tokens that replies report, and those that a cache had.
USAGE = (11, 5, 0)


def message(
    *pieces: str, id: str = "msg_1", phase: str | None = None, refusal: bool = False, status: str = "completed"
) -> dict[str, Any]:
    """An item of text that is streamed in these pieces."""
    kind, field = ("refusal", "refusal") if refusal else ("output_text", "text")
    part: dict[str, Any] = {"type": kind, field: "".join(pieces)}
    if not refusal:
        part |= {"annotations": [], "logprobs": []}
    item = {"type": "message", "id": id, "status": status, "role": "assistant", "content": [part], "pieces": pieces}
    return item | ({"phase": phase} if phase else {})


def reasoning(*summaries: str, id: str = "rs_1", encrypted: str | None = "ZW5jcnlwdGVk") -> dict[str, Any]:
    """An item of reasoning; each summary is a part of its own."""
    summary = [{"type": "summary_text", "text": text} for text in summaries]
    return {"type": "reasoning", "id": id, "summary": summary, "encrypted_content": encrypted}


def call(name: str, arguments: Any, call_id: str = "call_1", *, id: str = "fc_1") -> dict[str, Any]:
    """An item that calls a function; arguments as text are sent as they are."""
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {
        "type": "function_call",
        "id": id,
        "call_id": call_id,
        "name": name,
        "arguments": written,
        "status": "completed",
    }


def text(*pieces: str, thinking: str = "", **options: Any) -> Reply:
    """A reply of text, streamed in these pieces."""
    return reply(*([reasoning(thinking)] if thinking else []), message(*pieces), **options)


def tool_calls(*calls: tuple[str, Any] | tuple[str, Any, str], text: str = "", **options: Any) -> Reply:
    """A reply that asks for tools: ``(name, arguments)`` or ``(name, arguments, id)`` each."""
    asked = [
        call(found[0], found[1], found[2] if len(found) > 2 else f"call_{number}", id=f"fc_{number}")
        for number, found in enumerate(calls, 1)
    ]
    return reply(*([message(text)] if text else []), *asked, **options)


def reply(
    *items: Mapping[str, Any],
    status: str = "completed",
    reason: str | None = None,
    usage: tuple[int, int, int] | None = USAGE,
    finish: bool = True,
) -> Reply:
    """A whole stream of these items; without its last event unless ``finish``."""
    output = [_whole(item) for item in items]
    payloads: list[dict[str, Any]] = [
        {"type": f"response.{kind}", "response": response("in_progress", [])} for kind in ("created", "in_progress")
    ]
    for index, item in enumerate(items):
        payloads += item_events(index, item)
    if finish:
        details = {"incomplete_details": {"reason": reason}} if reason else {}
        last = response(status, output, usage=usage) | details
        payloads.append({"type": f"response.{status}", "response": last})
    return events(*payloads)


def failed(code: str, text: str = "it failed") -> Reply:
    """A stream that ends in a failure."""
    last = response("failed", []) | {"error": {"code": code, "message": text}}
    return events(
        {"type": "response.created", "response": response("in_progress", [])},
        {"type": "response.failed", "response": last},
    )


def events(*payloads: Mapping[str, Any]) -> Reply:
    """A stream of these events, each a piece, numbered as the service does."""
    return raw(
        [
            f"event: {payload['type']}\ndata: {json.dumps({**payload, 'sequence_number': number})}\n\n".encode()
            for number, payload in enumerate(payloads)
        ]
    )


def response(status: str, output: list[dict[str, Any]], *, usage: tuple[int, int, int] | None = None) -> dict[str, Any]:
    """The response as a whole, at some moment."""
    counts = None
    if usage is not None:
        taken, made, cached = usage
        counts = {
            "input_tokens": taken,
            "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
            "output_tokens": made,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": taken + made,
        }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1750000000,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "model": MODEL,
        "output": output,
        "parallel_tool_calls": True,
        "store": False,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": counts,
        "metadata": {},
    }


def item_events(index: int, item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The events that bring one item."""
    whole = _whole(item)
    place = {"item_id": item["id"], "output_index": index}
    started = whole | {"status": "in_progress"}
    match item["type"]:
        case "message":
            (part,) = whole["content"]
            field = "refusal" if part["type"] == "refusal" else "text"
            yield {"type": "response.output_item.added", "output_index": index, "item": started | {"content": []}}
            place["content_index"] = 0
            yield {"type": "response.content_part.added", "part": part | {field: ""}} | place
            kind = "response.refusal" if field == "refusal" else "response.output_text"
            for piece in item["pieces"]:
                yield {"type": f"{kind}.delta", "delta": piece, "logprobs": []} | place
            yield {"type": f"{kind}.done", field: part[field], "logprobs": []} | place
            yield {"type": "response.content_part.done", "part": part} | place
        case "reasoning":
            empty = {"summary": [], "encrypted_content": "unfinished"}
            yield {"type": "response.output_item.added", "output_index": index, "item": whole | empty}
            for number, part in enumerate(whole["summary"]):
                here = place | {"summary_index": number}
                yield {"type": "response.reasoning_summary_part.added", "part": part | {"text": ""}} | here
                yield {"type": "response.reasoning_summary_text.delta", "delta": part["text"]} | here
                yield {"type": "response.reasoning_summary_text.done", "text": part["text"]} | here
                yield {"type": "response.reasoning_summary_part.done", "part": part} | here
        case "function_call":
            arguments = whole["arguments"]
            yield {"type": "response.output_item.added", "output_index": index, "item": started | {"arguments": ""}}
            middle = len(arguments) // 2
            for piece in (arguments[:middle], arguments[middle:]):
                if piece:
                    yield {"type": "response.function_call_arguments.delta", "delta": piece} | place
            yield {
                "type": "response.function_call_arguments.done",
                "arguments": arguments,
                "name": item["name"],
            } | place
        case _:
            yield {"type": "response.output_item.added", "output_index": index, "item": whole}
    yield {"type": "response.output_item.done", "output_index": index, "item": whole}


def _whole(item: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key != "pieces"}
