"""What is wrong with the body of a Chat Completions request, in view of what OpenAI refuses.

Somewhat stricter than the service: text that is blank and calls that share an id are refused too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

__all__ = ("format_problems", "problems", "schema_problems", "text_problems")

_FIELDS = frozenset(
    (
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "model",
        "prompt_cache_key",
        "reasoning_effort",
        "response_format",
        "stop",
        "stream",
        "stream_options",
        "temperature",
        "tool_choice",
        "tools",
        "top_p",
    )
)
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_IMAGE = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*")


def problems(
    body: dict[str, Any],
    *,
    strict_roles: bool = False,
    id_pattern: str = r"[!-~]{1,40}",
    message_fields: frozenset[str] = frozenset(),
) -> list[str]:
    """One line for each thing that is wrong; none for a body that is taken.

    Args:
        strict_roles: user and assistant have to take turns.
        id_pattern: what ids of calls have to match.
        message_fields: further fields that the service takes in the assistant's messages.
    """
    return list(_problems(body, strict_roles, id_pattern, message_fields))


def _problems(body: dict[str, Any], strict: bool, id_pattern: str, message_fields: frozenset[str]) -> Iterator[str]:
    for field in sorted(body.keys() - _FIELDS):
        yield f"unknown field {field}"
    if not body.get("model"):
        yield "no model"
    if "max_tokens" in body and "max_completion_tokens" in body:
        yield "two caps on the reply"
    for field in ("max_tokens", "max_completion_tokens"):
        if field in body and not (type(body[field]) is int and body[field] > 0):
            yield f"{field} is no positive integer"
    if body.get("reasoning_effort", "low") not in _EFFORTS:
        yield "unknown effort"
    if "stream_options" in body and not body.get("stream"):
        yield "stream_options without stream"
    if len(body.get("prompt_cache_key", "")) > 64:
        yield "prompt_cache_key is too long"
    if "response_format" in body:
        chosen = body["response_format"]
        if chosen.get("type") == "json_schema":
            yield from format_problems(chosen.get("json_schema", {}))
        elif chosen.get("type") != "json_object":
            yield "unknown response_format"
        elif "json" not in json.dumps(body["messages"]).lower():
            yield "json_object without the word in any message"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "no messages"
        return
    for tool in body.get("tools", ()):
        if set(tool) != {"type", "function"} or tool["type"] != "function":
            yield f"no tool: {tool}"
        else:
            yield from schema_problems(tool["function"])
    names = [tool["function"]["name"] for tool in body.get("tools", ())]
    if len(set(names)) < len(names):
        yield "two tools have one name"
    if body.get("tools") == []:
        yield "an empty list of tools"
    yield from _message_problems(messages, strict, id_pattern, message_fields)


def _message_problems(
    messages: list[dict[str, Any]], strict: bool, id_pattern: str, message_fields: frozenset[str]
) -> Iterator[str]:
    waiting: set[str] = set()
    previous = ""
    for place, message in enumerate(messages):
        where = f"messages[{place}]"
        role = message.get("role")
        allowed = {
            "system": {"role", "content"},
            "user": {"role", "content"},
            "assistant": {"role", "content", "tool_calls"} | message_fields,
            "tool": {"role", "content", "tool_call_id"},
        }.get(str(role))
        if allowed is None:
            yield f"{where}: unknown role {role!r}"
            continue
        if extra := message.keys() - allowed:
            yield f"{where}: unknown fields {sorted(extra)}"
        if waiting and role != "tool":
            yield f"{where}: calls {sorted(waiting)} have no answer"
            waiting = set()
        calls = message.get("tool_calls")
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                yield f"{where}: answers a call that is not there"
            waiting.discard(message.get("tool_call_id", ""))
        if calls is not None:
            if not calls:
                yield f"{where}: an empty list of calls"
            ids = [call["id"] for call in calls]
            if len(set(ids)) < len(ids):
                yield f"{where}: two calls have one id"
            for call in calls:
                yield from _call_problems(call, where, id_pattern)
            waiting = set(ids)
        if message.get("content") is None:
            if not (role == "assistant" and calls):
                yield f"{where}: no content"
        else:
            yield from _content_problems(message["content"], role == "user", where)
        if strict:
            yield from _turn_problems(previous, str(role), where)
        previous = str(role)
    if waiting:
        yield f"calls {sorted(waiting)} have no answer"
    if previous not in ("user", "tool"):
        yield f"the last message is the {previous}'s"


def _turn_problems(previous: str, role: str, where: str) -> Iterator[str]:
    first = previous in ("", "system")
    if role == "system" and previous:
        yield f"{where}: a system message in the middle"
    if first and role not in ("system", "user"):
        yield f"{where}: the first is not the user's"
    if role == previous and role != "tool":
        yield f"{where}: two of {role} in a row"
    if previous == "tool" and role == "user":
        yield f"{where}: a user's right behind a result"


def _call_problems(call: dict[str, Any], where: str, id_pattern: str) -> Iterator[str]:
    if set(call) != {"id", "type", "function"} or call["type"] != "function":
        yield f"{where}: no call: {call}"
        return
    if not re.fullmatch(id_pattern, call["id"]):
        yield f"{where}: id {call['id']!r}"
    if not _NAME.fullmatch(call["function"]["name"]):
        yield f"{where}: name {call['function']['name']!r}"
    try:
        is_object = isinstance(json.loads(call["function"]["arguments"]), dict)
    except ValueError:
        is_object = False
    if not is_object:
        yield f"{where}: arguments are no object"


def _content_problems(content: Any, images: bool, where: str) -> Iterator[str]:
    if isinstance(content, str):
        yield from text_problems(content, where)
        return
    if not content:
        yield f"{where}: no parts"
    for part in content:
        if part.get("type") == "text":
            yield from text_problems(part["text"], where)
        elif part.get("type") != "image_url" or not images:
            yield f"{where}: unknown part {part.get('type')!r}"
        elif not _IMAGE.fullmatch(part["image_url"]["url"]):
            yield f"{where}: no image"


def text_problems(text: Any, where: str) -> Iterator[str]:
    if not isinstance(text, str) or not text.strip():
        yield f"{where}: blank text"


def schema_problems(function: dict[str, Any]) -> Iterator[str]:
    """Of a function's name, description and parameters."""
    name = function.get("name", "")
    if not _NAME.fullmatch(name):
        yield f"tool name {name!r}"
    if not isinstance(function.get("description"), str):
        yield f"{name}: no description"
    parameters = function.get("parameters")
    if not isinstance(parameters, dict) or parameters.get("type") != "object":
        yield f"{name}: parameters are no object"
    elif not isinstance(parameters.get("properties"), dict):
        yield f"{name}: no properties"
    else:
        yield from _top_problems(parameters, name)
        yield from _inner_problems(parameters, name)


def _top_problems(schema: dict[str, Any], where: str) -> Iterator[str]:
    if combined := schema.keys() & {"$ref", "anyOf", "oneOf", "allOf", "not", "enum"}:
        yield f"{where}: {sorted(combined)} at the top"


def _inner_problems(schema: Any, where: str) -> Iterator[str]:
    """Of a schema and all within it."""
    if not isinstance(schema, dict):
        if not isinstance(schema, bool):
            yield f"{where} is no schema"
        return
    types = schema.get("type", [])
    if "array" in (types if isinstance(types, list) else [types]) and "items" not in schema:
        yield f"{where}: an array without items"
    for word in ("items", "additionalProperties", "not", "contains"):
        if word in schema:
            yield from _inner_problems(schema[word], f"{where}.{word}")
    for word in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for inner in schema.get(word, ()):
            yield from _inner_problems(inner, f"{where}.{word}")
    for word in ("properties", "patternProperties", "$defs", "definitions"):
        for name, inner in schema.get(word, {}).items():
            yield from _inner_problems(inner, f"{where}.{name}")


def format_problems(chosen: dict[str, Any]) -> Iterator[str]:
    """Of a schema that a reply has to match."""
    if not _NAME.fullmatch(chosen.get("name", "")):
        yield "the format has no name"
    if not isinstance(chosen.get("schema"), dict):
        yield "the format has no schema"
        return
    if chosen["schema"].get("type") != "object":
        yield "the format's schema is no object at the top"
    yield from _top_problems(chosen["schema"], "schema")
    yield from _inner_problems(chosen["schema"], "schema")
    if chosen.get("strict"):
        yield from _strict_problems(chosen["schema"], "schema")


def _strict_problems(schema: Any, where: str) -> Iterator[str]:
    if not isinstance(schema, dict):
        yield f"{where} is no object"
        return
    types = schema.get("type", [])
    if "object" in (types if isinstance(types, list) else [types]):
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False:
            yield f"{where} takes other properties"
        if set(schema.get("required", ())) != set(properties):
            yield f"{where} does not require all of its properties"
        for name, inner in properties.items():
            yield from _strict_problems(inner, f"{where}.{name}")
    if "items" in schema:
        yield from _strict_problems(schema["items"], f"{where}[]")
    for inner in schema.get("anyOf", ()):
        yield from _strict_problems(inner, where)
    for word in sorted(schema.keys() & {"oneOf", "allOf", "not", "if", "patternProperties"}):
        yield f"{where} holds {word}"
