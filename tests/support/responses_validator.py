"""What is wrong with the body of a Responses request, in view of what OpenAI refuses from a client that stores nothing.

Somewhat stricter than the service: blank text is refused, and so is reasoning that is not what was sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.openai_validator import format_problems, schema_problems, text_problems

__all__ = ("problems",)

_FIELDS = frozenset(
    (
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "model",
        "parallel_tool_calls",
        "prompt_cache_key",
        "reasoning",
        "store",
        "stream",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_p",
        "truncation",
    )
)
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_IMAGE = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*")

_ITEM_FIELDS = {
    "function_call": ({"type", "call_id", "name", "arguments"}, {"id", "status"}),
    "function_call_output": ({"type", "call_id", "output"}, {"id", "status"}),
    "reasoning": ({"type", "id", "summary"}, {"encrypted_content", "content", "status"}),
}


def problems(body: dict[str, Any], *, issued: Mapping[str, Mapping[str, Any]] | None = None) -> list[str]:
    """One line for each thing that is wrong; none for a body that is taken.

    Args:
        issued: the items that the service has sent so far, by id. Reasoning has to come back as it was, and only this.
    """
    return list(_problems(body, issued))


def _problems(body: dict[str, Any], issued: Mapping[str, Mapping[str, Any]] | None) -> Iterator[str]:
    for field in sorted(body.keys() - _FIELDS):
        yield f"unknown field {field}"
    if not body.get("model"):
        yield "no model"
    if body.get("store") is not False:
        yield "the service would store it"
    if "instructions" in body:
        yield from text_problems(body["instructions"], "instructions")
    if body.get("max_output_tokens", 16) < 16:
        yield "max_output_tokens is below 16"
    if len(body.get("prompt_cache_key", "")) > 64:
        yield "prompt_cache_key is too long"
    chosen = body.get("reasoning", {})
    if chosen.keys() - {"effort", "summary"}:
        yield "unknown fields of reasoning"
    if chosen.get("effort", "low") not in _EFFORTS:
        yield "unknown effort"
    if chosen.get("summary", "auto") not in ("auto", "concise", "detailed"):
        yield "unknown summary"
    if "text" in body:
        if body["text"].get("format", {}).get("type") != "json_schema":
            yield "unknown format of text"
        else:
            yield from format_problems(body["text"]["format"])
    names = []
    for tool in body.get("tools", ()):
        if set(tool) != {"type", "name", "description", "parameters", "strict"} or tool["type"] != "function":
            yield f"no tool: {tool}"
        else:
            names.append(tool["name"])
            yield from schema_problems(tool)
    if len(set(names)) < len(names):
        yield "two tools have one name"
    items = body.get("input")
    if not isinstance(items, list) or not items:
        yield "no input"
        return
    yield from _item_problems(items, issued)
    if "reasoning.encrypted_content" not in body.get("include", ()) and any(
        item.get("type") == "reasoning" for item in items
    ):
        yield "reasoning for a model that has none"


def _item_problems(items: list[dict[str, Any]], issued: Mapping[str, Mapping[str, Any]] | None) -> Iterator[str]:
    calls: dict[str, str] = {}
    answered: set[str] = set()
    thought = ""
    ids: list[str] = [item["id"] for item in items if "id" in item]
    if len(set(ids)) < len(ids):
        yield "two items have one id"
    for place, item in enumerate(items):
        where = f"input[{place}]"
        kind = item.get("type", "message")
        if any(value is None for value in item.values()):
            yield f"{where}: a null"
        if kind in _ITEM_FIELDS:
            needed, optional = _ITEM_FIELDS[kind]
            if not needed <= item.keys() <= needed | optional:
                yield f"{where}: fields {sorted(item)}"
                continue
        if thought and kind not in ("message", "function_call", "reasoning"):
            yield f"{where}: {thought} is without what follows it"
        if issued is not None and "id" in item and item["id"] not in issued:
            yield f"{where}: item {item['id']} is not known here"
        match kind:
            case "reasoning":
                if not item.get("encrypted_content"):
                    yield f"{where}: reasoning that is stored nowhere"
                if issued is not None and item != issued.get(item["id"]):
                    yield f"{where}: reasoning is not what it was"
                thought = item["id"]
                continue
            case "function_call":
                yield from _call_problems(item, where)
                if item["call_id"] in calls:
                    yield f"{where}: two calls have one id"
                calls[item["call_id"]] = where
            case "function_call_output":
                if item["call_id"] not in calls or item["call_id"] in answered:
                    yield f"{where}: answers a call that is not there"
                answered.add(item["call_id"])
                yield from _content_problems(item["output"], ("input_text", "input_image"), where)
            case "message":
                yield from _message_problems(item, where)
                if thought and item.get("role") != "assistant":
                    yield f"{where}: {thought} is without what follows it"
            case _:
                if issued is None or item != issued.get(item.get("id", "")):
                    yield f"{where}: unknown item {kind}"
        thought = ""
    if thought:
        yield f"{thought} is without what follows it"
    for call_id in calls.keys() - answered:
        yield f"{calls[call_id]}: call {call_id} has no answer"
    last = items[-1]
    if last.get("role") == "assistant":
        yield "the last item is the assistant's"


def _call_problems(item: dict[str, Any], where: str) -> Iterator[str]:
    if not _CALL_ID.fullmatch(item["call_id"]):
        yield f"{where}: call id {item['call_id']!r}"
    if not _NAME.fullmatch(item["name"]):
        yield f"{where}: name {item['name']!r}"
    if "id" in item and not item["id"].startswith("fc"):
        yield f"{where}: id {item['id']!r}"
    try:
        is_object = isinstance(json.loads(item["arguments"]), dict)
    except ValueError:
        is_object = False
    if not is_object:
        yield f"{where}: arguments are no object"


def _message_problems(item: dict[str, Any], where: str) -> Iterator[str]:
    role = item.get("role")
    if role not in ("user", "assistant", "system", "developer"):
        yield f"{where}: unknown role {role!r}"
    known = {"role", "content", "type", "phase"} if role == "assistant" else {"role", "content", "type"}
    if "id" in item:
        known |= {"id", "status"}
        if not (item["id"].startswith("msg") and role == "assistant" and item.get("status")):
            yield f"{where}: id {item['id']!r}"
    if extra := item.keys() - known:
        yield f"{where}: unknown fields {sorted(extra)}"
    kinds = ("output_text", "refusal") if role == "assistant" else ("input_text", "input_image")
    yield from _content_problems(item.get("content"), kinds, where)


def _content_problems(content: Any, kinds: tuple[str, ...], where: str) -> Iterator[str]:
    if isinstance(content, str):
        yield from text_problems(content, where)
        return
    if not content:
        yield f"{where}: no content"
        return
    for part in content:
        kind = part.get("type")
        if kind not in kinds:
            yield f"{where}: part of type {kind!r}"
        elif kind == "input_image":
            if not _IMAGE.fullmatch(part["image_url"]):
                yield f"{where}: no image"
        else:
            yield from text_problems(part.get("refusal" if kind == "refusal" else "text"), where)
