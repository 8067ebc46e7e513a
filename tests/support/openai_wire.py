"""Replies on the Chat Completions wire, as a scripted server sends them."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.support.replies import Reply, raw

__all__ = ("MODEL", "chunk", "embeddings", "error", "events", "models", "text", "tool_calls")

MODEL = "m-test"

#: Prompt and completion tokens that replies report.
USAGE = (11, 5)


def text(
    *pieces: str,
    thinking: str = "",
    finish: str = "stop",
    usage: tuple[int, int] | None = USAGE,
) -> Reply:
    """A reply of text, streamed in these pieces."""
    return _reply([*_thinking(thinking), *({"content": piece} for piece in pieces)], finish, usage)


def tool_calls(
    *calls: tuple[str, Any] | tuple[str, Any, str],
    text: str = "",
    thinking: str = "",
    finish: str = "tool_calls",
    usage: tuple[int, int] | None = USAGE,
) -> Reply:
    """A reply that asks for tools: ``(name, arguments)`` or ``(name, arguments, id)`` each.

    Arguments are an object, or the text to send in place of one. Ids are ``call_1``, ``call_2`` and so on unless given.
    """
    deltas: list[dict[str, Any]] = [*_thinking(thinking), *([{"content": text}] if text else [])]
    for index, call in enumerate(calls):
        name, arguments, *given = call
        written = arguments if isinstance(arguments, str) else json.dumps(arguments)
        call_id = given[0] if given else f"call_{index + 1}"
        head = {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
        deltas.append({"tool_calls": [head]})
        # In two pieces, as services do.
        middle = len(written) // 2
        deltas += (
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in (written[:middle], written[middle:])
            if piece
        )
    return _reply(deltas, finish, usage)


def error(
    status: int,
    message: str = "it failed",
    *,
    type: str | None = None,
    code: str | int | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """A refusal in OpenAI's form."""
    body = {"error": {"message": message, "type": type, "param": None, "code": code}}
    return raw(json.dumps(body), status=status, content_type="application/json", headers=headers)


def events(*payloads: Mapping[str, Any] | str, done: bool = True) -> Reply:
    """A stream of these events, objects or text, each a piece; with the end marker unless ``done`` is False."""
    return raw([*map(_frame, payloads), *([b"data: [DONE]\n\n"] if done else [])])


def models(*names: str) -> Reply:
    """The list of these models."""
    entries = [{"id": name, "object": "model", "created": 1750000000, "owned_by": "tests"} for name in names]
    return raw(json.dumps({"object": "list", "data": entries}), content_type="application/json")


def embeddings(*vectors: Sequence[float], as_text: bool = False) -> Reply:
    """These vectors, as numbers or as base64 of 32-bit ones."""
    entries = [
        {"object": "embedding", "index": place, "embedding": _base64(vector) if as_text else list(vector)}
        for place, vector in enumerate(vectors)
    ]
    document = {"object": "list", "data": entries, "model": MODEL, "usage": {"prompt_tokens": 3, "total_tokens": 3}}
    return raw(json.dumps(document), content_type="application/json")


def chunk(delta: Mapping[str, Any], finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chunk of a stream with one choice."""
    choice = {"index": 0, "delta": dict(delta), "finish_reason": finish}
    return {**_envelope(), "choices": [choice], **fields}


def _base64(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _envelope() -> dict[str, Any]:
    return {"id": "cc-1", "object": "chat.completion.chunk", "created": 1750000000, "model": MODEL}


def _thinking(thought: str) -> Iterable[dict[str, Any]]:
    return [{"reasoning_content": thought}] if thought else []


def _reply(deltas: Iterable[Mapping[str, Any]], finish: str, usage: tuple[int, int] | None) -> Reply:
    payloads = [chunk({"role": "assistant", "content": ""}), *map(chunk, deltas), chunk({}, finish)]
    if usage is not None:
        prompt, completion = usage
        counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        payloads.append({**_envelope(), "choices": [], "usage": counts})
    return events(*payloads)


def _frame(payload: Mapping[str, Any] | str) -> bytes:
    data = payload if isinstance(payload, str) else json.dumps(payload, separators=(",", ":"))
    return f"data: {data}\n\n".encode()
