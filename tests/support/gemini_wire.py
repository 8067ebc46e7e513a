"""Replies on the wire of Gemini, as a scripted server sends them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.support.replies import Reply, raw

__all__ = ("MODEL", "embeddings", "error", "event", "events", "models", "text", "tool_calls")

MODEL = "gemini-3-test"

#: Prompt and candidate tokens that replies report.
USAGE = (11, 5)


def text(
    *pieces: str,
    thinking: str = "",
    signature: str = "",
    finish: str = "STOP",
    usage: tuple[int, int] | None = USAGE,
) -> Reply:
    """A reply of text, streamed in these pieces; the last one is signed if there is a signature."""
    parts = [*_thinking(thinking), *({"text": piece} for piece in pieces)]
    if signature:
        parts[-1] = parts[-1] | {"thoughtSignature": signature}
    return _reply(parts, finish, usage)


def tool_calls(
    *calls: tuple[str, Any] | tuple[str, Any, str],
    text: str = "",
    thinking: str = "",
    signature: str = "c2lnbmF0dXJl",
    finish: str = "STOP",
    usage: tuple[int, int] | None = USAGE,
) -> Reply:
    """A reply that asks for tools: ``(name, arguments)`` or ``(name, arguments, id)`` each, all in one event.

    The first one is signed, as the service does it. Ids are ``call_1``, ``call_2`` and so on; an empty one is left out.
    """
    parts: list[dict[str, Any]] = []
    for index, call in enumerate(calls):
        name, arguments, *given = call
        function = {"name": name, "args": arguments, "id": given[0] if given else f"call_{index + 1}"}
        part: dict[str, Any] = {"functionCall": {key: value for key, value in function.items() if value != ""}}
        if signature and index == 0:
            part["thoughtSignature"] = signature
        parts.append(part)
    before = [*_thinking(thinking), *([{"text": text}] if text else [])]
    payloads = [*(event([part]) for part in before), event(parts, finish)]
    return events(*payloads[:-1], payloads[-1] | _usage(usage))


def error(
    status: int, message: str = "it failed", *, word: str = "INVALID_ARGUMENT", details: Sequence[Any] = ()
) -> Reply:
    """A refusal in Google's form."""
    body = {"error": {"code": status, "message": message, "status": word, "details": list(details)}}
    return raw(json.dumps(body), status=status, content_type="application/json; charset=UTF-8")


def events(*payloads: Mapping[str, Any] | str) -> Reply:
    """A stream of these events, objects or text, each a piece."""
    return raw([_frame(payload) for payload in payloads])


def event(parts: Iterable[Mapping[str, Any]] | None = None, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """An event with one candidate; without ``parts`` it has no content."""
    candidate: dict[str, Any] = {"index": 0}
    if parts is not None:
        candidate["content"] = {"role": "model", "parts": list(parts)}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": MODEL, "responseId": "r-1", **fields}


def models(*names: str, next_page: str = "") -> Reply:
    """A page of the list of models; those with ``embedding`` in their name generate nothing."""
    entries = [
        {
            "name": f"models/{name}",
            "inputTokenLimit": 1_048_576,
            "outputTokenLimit": 65_536,
            "supportedGenerationMethods": ["embedContent"] if "embedding" in name else ["generateContent"],
        }
        for name in names
    ]
    page = {"models": entries} | ({"nextPageToken": next_page} if next_page else {})
    return raw(json.dumps(page), content_type="application/json; charset=UTF-8")


def embeddings(*vectors: Sequence[Any]) -> Reply:
    """The answer to a batch of texts."""
    body = {"embeddings": [{"values": list(vector)} for vector in vectors]}
    return raw(json.dumps(body), content_type="application/json; charset=UTF-8")


def _thinking(thought: str) -> list[dict[str, Any]]:
    return [{"text": thought, "thought": True}] if thought else []


def _reply(parts: Sequence[Mapping[str, Any]], finish: str, usage: tuple[int, int] | None) -> Reply:
    payloads = [event([part]) for part in parts] or [event()]
    payloads[-1]["candidates"][0]["finishReason"] = finish
    return events(*payloads[:-1], payloads[-1] | _usage(usage))


def _usage(usage: tuple[int, int] | None) -> dict[str, Any]:
    if usage is None:
        return {}
    prompt, candidates = usage
    counts = {"promptTokenCount": prompt, "candidatesTokenCount": candidates, "totalTokenCount": prompt + candidates}
    return {"usageMetadata": counts}


def _frame(payload: Mapping[str, Any] | str) -> bytes:
    data = payload if isinstance(payload, str) else json.dumps(payload, separators=(",", ":"))
    return f"data: {data}\r\n\r\n".encode()
