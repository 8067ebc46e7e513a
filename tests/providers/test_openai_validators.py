"""The validators of requests on OpenAI's wires refuse what the service refuses, each rule by itself."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.support import openai_validator, responses_validator

TOOL = {"name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
CHAT: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "S"},
        {"role": "user", "content": [{"type": "text", "text": "x"}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
    ],
    "tools": [{"type": "function", "function": TOOL}],
    "stream": True,
    "max_tokens": 5,
}

THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
ASKED = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}
RESPONSES: dict[str, Any] = {
    "model": "m",
    "input": [{"role": "user", "content": "x"}, THOUGHT, ASKED, OUTPUT],
    "tools": [{"type": "function", "strict": False, **TOOL}],
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
}


def changed(good: dict[str, Any], *path: Any, to: Any) -> dict[str, Any]:
    body = copy.deepcopy(good)
    inner: Any = body
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = to
    return body


def test_good_requests() -> None:
    assert openai_validator.problems(CHAT) == []
    assert openai_validator.problems(CHAT, strict_roles=True) == []
    assert responses_validator.problems(RESPONSES) == []
    assert responses_validator.problems(RESPONSES, issued={"rs_1": THOUGHT, "fc_1": ASKED}) == []


@pytest.mark.parametrize(
    "body",
    [
        changed(CHAT, "messages", to=[]),
        changed(CHAT, "messages", to=CHAT["messages"][:3]),
        changed(CHAT, "messages", 3, to={"role": "user", "content": "x"}),
        changed(CHAT, "messages", 3, "tool_call_id", to="c2"),
        changed(CHAT, "messages", 3, "content", to=" "),
        changed(CHAT, "messages", 2, "tool_calls", to=[CALL, CALL]),
        changed(CHAT, "messages", 2, "tool_calls", to=[]),
        changed(CHAT, "messages", 2, "tool_calls", 0, "id", to="c" * 41),
        changed(CHAT, "messages", 2, "tool_calls", 0, "function", "name", to="a.b"),
        changed(CHAT, "messages", 2, "tool_calls", 0, "function", "arguments", to=""),
        changed(CHAT, "messages", 2, "reasoning_content", to="hm"),
        changed(CHAT, "messages", 1, "content", to=""),
        changed(CHAT, "messages", 1, "content", to=[]),
        changed(CHAT, "messages", 1, "content", 0, "text", to="\n"),
        changed(CHAT, "messages", 1, "role", to="human"),
        changed(CHAT, "messages", to=[*CHAT["messages"], {"role": "assistant", "content": "a"}]),
        changed(CHAT, "tools", to=[]),
        changed(CHAT, "tools", 0, "function", "name", to="x" * 65),
        changed(CHAT, "tools", 0, "function", "parameters", to={"type": "object"}),
        changed(CHAT, "tools", 0, "function", "parameters", "anyOf", to=[]),
        changed(CHAT, "tools", 0, "function", "parameters", "$ref", to="#/$defs/A"),
        changed(CHAT, "tools", 0, "function", "parameters", "properties", "a", to={"type": "array"}),
        changed(
            CHAT, "tools", 0, "function", "parameters", "$defs", to={"A": {"anyOf": [{"type": ["array", "null"]}]}}
        ),
        changed(CHAT, "tools", 0, "function", "parameters", "properties", "a", to={"type": "array", "items": []}),
        changed(CHAT, "max_tokens", to=0),
        changed(CHAT, "max_completion_tokens", to=5),
        changed(CHAT, "reasoning_effort", to="much"),
        changed(CHAT, "store", to=True),
        changed(CHAT, "response_format", to={"type": "json_schema", "json_schema": {"schema": {}}}),
        changed(CHAT, "response_format", to={"type": "json_object"}),
        changed(CHAT, "prompt_cache_key", to="x" * 65),
        changed(changed(CHAT, "stream", to=False), "stream_options", to={}),
    ],
)
def test_chat(body: dict[str, Any]) -> None:
    assert openai_validator.problems(body)


USER = {"role": "user", "content": "x"}
ANSWER = {"role": "assistant", "content": "a"}


@pytest.mark.parametrize(
    "messages",
    [
        [ANSWER, USER],
        [USER, USER],
        [USER, ANSWER, ANSWER, USER],
        [*CHAT["messages"], USER],
        [USER, {"role": "system", "content": "S"}, USER],
    ],
)
def test_strict_roles(messages: list[Any]) -> None:
    assert openai_validator.problems(changed(CHAT, "messages", to=messages), strict_roles=True)


@pytest.mark.parametrize(
    "body",
    [
        changed(RESPONSES, "input", to=[]),
        changed(RESPONSES, "input", to=RESPONSES["input"][:2]),
        changed(RESPONSES, "input", to=RESPONSES["input"][:3]),
        changed(RESPONSES, "input", to=[USER, THOUGHT, USER]),
        changed(RESPONSES, "input", to=[USER, ASKED, THOUGHT, OUTPUT]),
        changed(RESPONSES, "input", to=[USER, OUTPUT]),
        changed(RESPONSES, "input", to=[USER, ASKED, OUTPUT, OUTPUT]),
        changed(RESPONSES, "input", to=[USER, ASKED, ASKED, OUTPUT]),
        changed(RESPONSES, "input", to=[USER, SAID]),
        changed(RESPONSES, "input", to=[USER, {"type": "odd", "id": "x"}, USER]),
        changed(RESPONSES, "input", 1, "encrypted_content", to=""),
        changed(RESPONSES, "input", 1, "status", to=None),
        changed(RESPONSES, "input", 2, "arguments", to="[]"),
        changed(RESPONSES, "input", 2, "call_id", to="c:1"),
        changed(RESPONSES, "input", 2, "id", to="call_1"),
        changed(RESPONSES, "input", 2, "extra", to=1),
        changed(RESPONSES, "input", 3, "output", to=" "),
        changed(RESPONSES, "input", 3, "output", to=[]),
        changed(RESPONSES, "input", 0, "content", to=[{"type": "text", "text": "x"}]),
        changed(RESPONSES, "input", 0, "content", to=[{"type": "input_image", "image_url": "x"}]),
        changed(RESPONSES, "input", 0, "id", to="msg_1"),
        changed(RESPONSES, "include", to=[]),
        changed(RESPONSES, "store", to=True),
        changed(RESPONSES, "instructions", to=""),
        changed(RESPONSES, "max_output_tokens", to=1),
        changed(RESPONSES, "messages", to=[]),
        changed(RESPONSES, "reasoning", to={"effort": "much"}),
        changed(RESPONSES, "text", to={"format": {"type": "json_schema", "schema": {}}}),
        changed(RESPONSES, "tools", 0, "function", to={}),
        changed(RESPONSES, "tools", 0, "parameters", "properties", "a", to={"type": "array"}),
    ],
)
def test_responses(body: dict[str, Any]) -> None:
    assert responses_validator.problems(body)


@pytest.mark.parametrize(
    "issued", [{}, {"fc_1": ASKED}, {"rs_1": THOUGHT}, {"fc_1": ASKED, "rs_1": {**THOUGHT, "encrypted_content": "y"}}]
)
def test_items_that_the_service_does_not_know(issued: dict[str, Any]) -> None:
    assert responses_validator.problems(RESPONSES, issued=issued)


STRICT = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


@pytest.mark.parametrize(
    "change",
    [
        lambda schema: schema.pop("additionalProperties"),
        lambda schema: schema.update(required=[]),
        lambda schema: schema.update(type=["object", "null"]),
        lambda schema: schema.update(anyOf=[]),
        lambda schema: schema["properties"].update(a={"type": ["object", "null"]}),
        lambda schema: schema["properties"].update(a={"type": "array"}),
        lambda schema: schema["properties"].update(a={"oneOf": []}),
        lambda schema: schema["properties"].update(a={"type": "array", "items": {"type": "object"}}),
    ],
)
def test_strict_schemas(change: Callable[[dict[str, Any]], Any]) -> None:
    schema: dict[str, Any] = copy.deepcopy(STRICT)
    told = {"name": "reply", "schema": schema, "strict": True}
    assert list(openai_validator.format_problems(told)) == []
    change(schema)
    assert list(openai_validator.format_problems(told))


@pytest.mark.parametrize("schema", [{"type": "string"}, {"anyOf": []}, {"type": "object", "$ref": "#/$defs/A"}])
def test_a_format_is_an_object_at_the_top(schema: dict[str, Any]) -> None:
    assert list(openai_validator.format_problems({"name": "reply", "schema": schema, "strict": False}))
