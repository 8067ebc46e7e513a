"""What the Messages service refuses in a request, for tests of whatever makes one.

The rules are those of the service's reference and of its own messages; names of fields were checked against the types
of the ``anthropic`` package 2.14.0.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection, Iterator
from typing import Any

__all__ = ("problems",)

_FIELDS = {
    *("model", "max_tokens", "messages", "system", "tools", "tool_choice", "stream", "thinking", "output_config"),
    *("temperature", "top_p", "top_k", "stop_sequences", "metadata", "service_tier", "container", "cache_control"),
    *("inference_geo", "speed", "diagnostics"),
}
_BLOCK_FIELDS: dict[str, set[str]] = {
    "text": {"type", "text", "cache_control", "citations"},
    "image": {"type", "source", "cache_control"},
    "tool_use": {"type", "id", "name", "input", "cache_control", "caller", "toolset_name"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
    "server_tool_use": {"type", "id", "name", "input", "cache_control", "caller"},
    "web_search_tool_result": {"type", "tool_use_id", "content", "cache_control", "caller"},
    "web_fetch_tool_result": {"type", "tool_use_id", "content", "cache_control", "caller"},
    "code_execution_tool_result": {"type", "tool_use_id", "content", "cache_control"},
    "bash_code_execution_tool_result": {"type", "tool_use_id", "content", "cache_control"},
    "container_upload": {"type", "file_id", "cache_control"},
}
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")
_THINKING_TYPES = {
    "enabled": {"type", "budget_tokens", "display"},
    "adaptive": {"type", "display"},
    "disabled": {"type"},
    "between_tools": {"type"},
}
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_MARKS = 4


def problems(body: dict[str, Any], *, issued: Collection[str] | None = None) -> list[str]:
    """Why the service would refuse the request; nothing if it would not.

    Args:
        issued: the signatures, and data of redacted thinking, that this service has made; it refuses those of others.
            If left out, any will do.
    """
    found = [*_shape(body), *_thinking(body), *_tools(body), *_output(body), *_messages(body), *_marks(body)]
    return found if issued is None else [*found, *_foreign(body, issued)]


def _foreign(body: dict[str, Any], issued: Collection[str]) -> Iterator[str]:
    for place, message in enumerate(body.get("messages", [])):
        for number, block in enumerate(_blocks(message)):
            kind = block.get("type")
            if kind == "thinking" and block.get("signature") not in issued:
                yield f"messages.{place}.content.{number}: Invalid `signature` in `thinking` block"
            if kind == "redacted_thinking" and block.get("data") not in issued:
                yield f"messages.{place}.content.{number}: Invalid `data` in `redacted_thinking` block"


def _shape(body: dict[str, Any]) -> Iterator[str]:
    for name in sorted(body.keys() - _FIELDS):
        yield f"{name}: Extra inputs are not permitted"
    for name in ("model", "max_tokens", "messages"):
        if name not in body:
            yield f"{name}: Field required"
    if not isinstance(body.get("model"), str) or not body.get("model"):
        yield "model: has to be a name"
    if type(body.get("max_tokens")) is not int or body["max_tokens"] < 1:
        yield "max_tokens: has to be a whole number of at least 1"
    system = body.get("system", "x")
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
    for place, block in enumerate(blocks):
        if block.get("type") != "text":
            yield f"system.{place}: has to be text"
        yield from _block(block, f"system.{place}", "system")


def _thinking(body: dict[str, Any]) -> Iterator[str]:
    thinking = body.get("thinking")
    if thinking is None:
        return
    fields = _THINKING_TYPES.get(thinking.get("type"))
    if fields is None:
        yield f"thinking.type: {thinking.get('type')!r} is no type"
        return
    for name in sorted(thinking.keys() - fields):
        yield f"thinking.{name}: Extra inputs are not permitted"
    if thinking.get("display", "summarized") not in ("summarized", "omitted"):
        yield "thinking.display: unknown"
    if thinking["type"] == "enabled":
        budget = thinking.get("budget_tokens")
        if type(budget) is not int or budget < 1024:
            yield "thinking.budget_tokens: has to be at least 1024"
        elif budget >= body.get("max_tokens", 0):
            yield "`max_tokens` must be greater than `thinking.budget_tokens`"
        yield from _turn_begins_with_thinking(body.get("messages", []))
    if thinking["type"] in ("enabled", "adaptive") and (
        body.get("temperature", 1) != 1 or "top_k" in body or body.get("tool_choice", {}).get("type") in ("any", "tool")
    ):
        yield "thinking does not go with temperature, top_k or a forced tool"


def _turn_begins_with_thinking(messages: list[dict[str, Any]]) -> Iterator[str]:
    """A turn that goes on after results of tools has to begin with thinking when thinking has a budget."""
    first = None
    for place in reversed(range(len(messages))):
        message = messages[place]
        if message["role"] == "assistant":
            first = place
        elif any(block.get("type") != "tool_result" for block in _blocks(message)):
            break
    if first is not None:
        kind = _blocks(messages[first])[0].get("type")
        if kind not in ("thinking", "redacted_thinking"):
            yield f"messages.{first}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{kind}`"


def _tools(body: dict[str, Any]) -> Iterator[str]:
    names = set()
    for place, tool in enumerate(body.get("tools", [])):
        name = tool.get("name")
        if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
            yield f"tools.{place}.name: {name!r} does not match the pattern"
        if name in names:
            yield "tools: Tool names must be unique"
        names.add(name)
        if tool.get("type", "custom") != "custom":
            continue
        known = {"name", "description", "input_schema", "cache_control", "type", "strict", "defer_loading"}
        for field in sorted(tool.keys() - known):
            yield f"tools.{place}.{field}: Extra inputs are not permitted"
        schema = tool.get("input_schema")
        where = f"tools.{place}.input_schema"
        if not isinstance(schema, dict) or schema.get("type") != "object":
            yield f"{where}.type: has to be object"
            continue
        for keyword in ("oneOf", "anyOf", "allOf"):
            if keyword in schema:
                yield f"{where}: does not support {keyword} at the top level"
        for key in schema.get("properties", {}):
            if not _PROPERTY.fullmatch(key):
                yield f"{where}.properties: {key!r} does not match the pattern"
        yield from _schema(schema, where)
    choice = body.get("tool_choice")
    if choice is not None and not body.get("tools"):
        yield "tool_choice: may only be given with tools"
    if choice is not None and choice.get("type") not in ("auto", "any", "tool", "none"):
        yield "tool_choice.type: unknown"


def _schema(schema: Any, where: str) -> Iterator[str]:
    """What makes it no schema of draft 2020-12."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        yield f"{where}: is no schema"
        return
    kinds = schema.get("type", [])
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if kind not in _TYPES:
            yield f"{where}.type: {kind!r} is no type"
    if "type" in schema and kinds == []:
        yield f"{where}.type: is empty"
    for bound in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        if bound in schema and (isinstance(schema[bound], bool) or not isinstance(schema[bound], int | float)):
            yield f"{where}.{bound}: is no number"
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        yield f"{where}.required: is no list of names"
    elif len(set(required)) < len(required):
        yield f"{where}.required: is not unique"
    if not isinstance(schema.get("enum", []), list):
        yield f"{where}.enum: is no list"
    for keyword in ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"):
        if keyword in schema:
            yield from _schema(schema[keyword], f"{where}.{keyword}")
    for keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
        if keyword not in schema:
            continue
        members = schema[keyword]
        if not isinstance(members, list) or not members:
            yield f"{where}.{keyword}: is no list of schemas"
            continue
        for member in members:
            yield from _schema(member, f"{where}.{keyword}")
    for keyword in ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas"):
        named = schema.get(keyword, {})
        if not isinstance(named, dict):
            yield f"{where}.{keyword}: is no mapping"
            continue
        for name, member in named.items():
            yield from _schema(member, f"{where}.{keyword}.{name}")


def _output(body: dict[str, Any]) -> Iterator[str]:
    config = body.get("output_config")
    if config is None:
        return
    for name in sorted(config.keys() - {"effort", "format"}):
        yield f"output_config.{name}: Extra inputs are not permitted"
    if "effort" in config and config["effort"] not in _EFFORTS:
        yield f"output_config.effort: {config['effort']!r} is unknown"
    if "format" in config:
        if config["format"].keys() != {"type", "schema"} or config["format"]["type"] != "json_schema":
            yield "output_config.format: has to be a json_schema"
        else:
            yield from _output_schema(config["format"]["schema"], "output_config.format.schema")


_OUTPUT_KEYWORDS = {
    *("type", "properties", "required", "additionalProperties", "items", "minItems", "format", "enum", "const"),
    *("anyOf", "allOf", "$ref", "$defs", "description", "title", "default"),
}


def _output_schema(schema: Any, where: str) -> Iterator[str]:
    if not isinstance(schema, dict):
        yield f"{where}: is no object"
        return
    for name in sorted(schema.keys() - _OUTPUT_KEYWORDS):
        yield f"{where}: property {name!r} is not supported"
    if not schema.keys() & {"type", "anyOf", "allOf", "$ref", "enum", "const"}:
        yield f"{where}: has no type"
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        yield f"{where}: For 'object' type, 'additionalProperties' must be explicitly set to false"
    if schema.get("minItems", 0) not in (0, 1):
        yield f"{where}: For 'array' type, 'minItems' values other than 0 or 1 are not supported"
    for name, member in schema.get("properties", {}).items():
        yield from _output_schema(member, f"{where}.{name}")
    for member in (*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())):
        yield from _output_schema(member, where)


def _messages(body: dict[str, Any]) -> Iterator[str]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "messages: at least one message is required"
        return
    if messages[0].get("role") != "user":
        yield "messages: first message must use the user role"
    offered = bool(body.get("tools"))
    used: set[str] = set()
    open_calls: list[str] = []
    for place, message in enumerate(messages):
        where = f"messages.{place}"
        role = message.get("role")
        if message.keys() != {"role", "content"} or role not in ("user", "assistant"):
            yield f"{where}: has to have a role, user or assistant, and content, and nothing else"
            continue
        if place and messages[place - 1].get("role") == role:
            yield f"{where}: roles must alternate"
        blocks = _blocks(message)
        if not blocks:
            yield f"{where}: all messages must have non-empty content"
            continue
        for number, block in enumerate(blocks):
            yield from _block(block, f"{where}.content.{number}", role)
        results = [str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]
        if open_calls or results:
            yield from _answers(open_calls, results, blocks, where)
        open_calls = []
        if role == "assistant":
            open_calls = [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]
            for call in open_calls:
                if call in used:
                    yield f"{where}: `tool_use` ids must be unique: {call}"
                used.add(call)
            yield from _assistant(blocks, where, is_last=place == len(messages) - 1)
    if open_calls:
        yield f"messages: `tool_use` ids were found without `tool_result` blocks at the end: {open_calls}"
    if used and not offered:
        yield "tools: requests with `tool_use` blocks must define tools"


def _answers(calls: list[str], results: list[str], blocks: list[dict[str, Any]], where: str) -> Iterator[str]:
    if missing := [call for call in calls if call not in results]:
        yield f"{where}: `tool_use` ids were found without `tool_result` blocks immediately after: {missing}"
    if unknown := [result for result in results if result not in calls]:
        yield f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {unknown}"
    if len(set(results)) < len(results):
        yield f"{where}: each tool_use must have a single result"
    if any(block.get("type") != "tool_result" for block in blocks[: len(results)]):
        yield f"{where}: results have to come first"


def _assistant(blocks: list[dict[str, Any]], where: str, *, is_last: bool) -> Iterator[str]:
    last = blocks[-1]
    if last.get("type") in ("thinking", "redacted_thinking"):
        yield f"{where}: The final block in an assistant message cannot be `{last['type']}`"
    if is_last:
        if last.get("type") == "text":
            yield f"{where}: This model does not support assistant message prefill"
        if last.get("type") == "text" and last["text"] != last["text"].rstrip():
            yield f"{where}: final assistant content cannot end with trailing whitespace"
        return
    calls = {block.get("id") for block in blocks if block.get("type") == "server_tool_use"}
    calls -= {block.get("tool_use_id") for block in blocks}
    if calls:
        yield f"{where}: `server_tool_use` ids were found without a result block: {sorted(map(str, calls))}"


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def _block(block: dict[str, Any], where: str, role: str) -> Iterator[str]:
    kind = block.get("type")
    fields = _BLOCK_FIELDS.get(str(kind))
    allowed = {"user": ("text", "image", "tool_result"), "system": ("text",)}.get(role)
    if fields is None or (allowed is not None and kind not in allowed) or (role == "assistant" and kind == "image"):
        yield f"{where}: {kind!r} is not permitted in a message of the {role}"
        return
    if role == "assistant" and kind == "tool_result":
        yield f"{where}: tool_result belongs to the user"
    for name in sorted(block.keys() - fields):
        yield f"{where}.{name}: Extra inputs are not permitted"
    if kind == "text" and (not isinstance(block.get("text"), str) or not block["text"].strip()):
        yield f"{where}: text content blocks must contain non-whitespace text"
    elif kind == "image":
        yield from _image(block, where)
    elif kind == "tool_use":
        if not _ID.fullmatch(str(block.get("id"))):
            yield f"{where}.id: {block.get('id')!r} does not match the pattern"
        if not _TOOL_NAME.fullmatch(str(block.get("name"))):
            yield f"{where}.name: {block.get('name')!r} does not match the pattern"
        if not isinstance(block.get("input"), dict):
            yield f"{where}.input: Input should be a valid dictionary"
    elif kind == "thinking":
        if not isinstance(block.get("thinking"), str) or not block.get("signature"):
            yield f"{where}.signature: Field required"
    elif kind == "redacted_thinking":
        if not block.get("data"):
            yield f"{where}.data: Field required"
    elif kind == "tool_result":
        yield from _result(block, where)


def _image(block: dict[str, Any], where: str) -> Iterator[str]:
    source = block.get("source", {})
    if source.get("type") != "base64" or source.get("media_type") not in _IMAGE_TYPES:
        yield f"{where}.source: has to be base64 of one of {_IMAGE_TYPES}"
    try:
        if not base64.b64decode(source.get("data", ""), validate=True):
            yield f"{where}.source: image cannot be empty"
    except (binascii.Error, ValueError, TypeError):
        yield f"{where}.source.data: is no base64"


def _result(block: dict[str, Any], where: str) -> Iterator[str]:
    content = block.get("content", "")
    if isinstance(content, str):
        if not content.strip():
            yield f"{where}.content: is blank"
        return
    if not content:
        yield f"{where}.content: is empty"
    for number, inner in enumerate(content):
        if inner.get("type") not in ("text", "image"):
            yield f"{where}.content.{number}: {inner.get('type')!r} is not permitted"
        yield from _block(inner, f"{where}.content.{number}", "user")


def _marks(body: dict[str, Any]) -> Iterator[str]:
    system = body.get("system")
    blocks = [*body.get("tools", []), *(system if isinstance(system, list) else [])]
    for message in body.get("messages", []):
        blocks += _blocks(message)
    marks = [block["cache_control"] for block in blocks if "cache_control" in block]
    if len(marks) > _MARKS:
        yield f"A maximum of {_MARKS} blocks with cache_control may be provided. Found {len(marks)}."
    for mark in marks:
        if mark.get("type") != "ephemeral" or mark.get("ttl", "5m") not in ("5m", "1h"):
            yield f"cache_control: {mark} is unknown"
