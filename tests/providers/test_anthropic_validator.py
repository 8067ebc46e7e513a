"""The validator of requests refuses what the service refuses, each rule by itself."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.support.anthropic_validator import problems

GOOD: dict[str, Any] = {
    "model": "m",
    "max_tokens": 2000,
    "stream": True,
    "system": [{"type": "text", "text": "S", "cache_control": {"type": "ephemeral"}}],
    "tools": [{"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {"a": {}}}}],
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "x"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "tool_use", "id": "t1", "name": "look", "input": {}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]},
    ],
}
CALL = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
MARK = {"cache_control": {"type": "ephemeral"}}


def test_a_good_request() -> None:
    assert problems(GOOD) == []


def test_signatures_that_another_service_made() -> None:
    body = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "x"}]}
    body["messages"] += [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "a"},
                {"type": "redacted_thinking", "data": "b"},
                {"type": "text", "text": "y"},
            ],
        },
        {"role": "user", "content": "z"},
    ]
    assert problems(body) == problems(body, issued={"a", "b"}) == []
    assert [found.partition(":")[0] for found in problems(body, issued={"c"})] == [
        "messages.1.content.0",
        "messages.1.content.1",
    ]


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        (("max_token",), 5, "Extra inputs"),
        (("max_tokens",), 0, "max_tokens"),
        (("max_tokens",), 1024, "greater than"),
        (("model",), "", "model"),
        (("system", 0, "text"), " ", "non-whitespace"),
        (("thinking", "budget_tokens"), 100, "1024"),
        (("thinking",), {"type": "adaptive", "budget_tokens": 2000}, "Extra inputs"),
        (("thinking",), {"type": "always"}, "no type"),
        (("temperature",), 0.5, "temperature"),
        (("tools",), [], "must define tools"),
        (("tools", 0, "name"), "a.b", "pattern"),
        (("tools", 0, "input_schema"), {"properties": {}}, "object"),
        (("tools", 0, "input_schema", "anyOf"), [{}], "top level"),
        (("tools", 0, "input_schema", "properties"), {"ü": {}}, "pattern"),
        (("tools", 0, "input_schema", "properties", "a"), {"type": "any"}, "no type"),
        (("tools", 0, "input_schema", "properties", "a"), {"items": [{}]}, "no schema"),
        (("tools", 0, "input_schema", "properties", "a"), {"exclusiveMinimum": True}, "no number"),
        (("tools", 0, "input_schema", "required"), ["a", "a"], "unique"),
        (("tool_choice",), {"type": "perhaps"}, "tool_choice"),
        (("output_config",), {"effort": "huge"}, "effort"),
        (("output_config",), {"format": {"type": "json_schema", "schema": {"type": "object"}}}, "additionalProperties"),
        (("output_config",), {"format": {"type": "json_schema", "schema": {"type": "string", "minLength": 1}}}, "minL"),
        (("messages",), [], "at least one"),
        (("messages", 0, "content"), [], "non-empty"),
        (("messages", 0, "content", 0, "text"), "\n", "non-whitespace"),
        (("messages", 0, "content", 0), {"type": "hologram"}, "not permitted"),
        (("messages", 0, "content", 0), CALL, "not permitted"),
        (("messages", 0, "role"), "assistant", "first message"),
        (("messages", 0, "name"), "x", "nothing else"),
        (("messages", 1, "role"), "user", "alternate"),
        (("messages", 1, "content", 0), {"type": "thinking", "thinking": "hm"}, "signature"),
        (("messages", 1, "content", 0), {"type": "text", "text": "a"}, "Expected `thinking`"),
        (("messages", 1, "content", 0, "cache_control"), {"type": "ephemeral"}, "Extra inputs"),
        (("messages", 1, "content", 1), {"type": "redacted_thinking", "data": "x"}, "final block"),
        (("messages", 1, "content", 1, "id"), "t:1", "pattern"),
        (("messages", 1, "content", 1, "input"), "{}", "dictionary"),
        (("messages", 2, "content", 0, "tool_use_id"), "t2", "without `tool_result`"),
        (("messages", 2, "content", 0, "content"), "", "blank"),
        (("messages", 2, "content"), [{"type": "text", "text": "a"}, RESULT], "come first"),
        (("messages", 2, "content"), [RESULT, RESULT], "single result"),
        (("messages", 2, "content", 0, "content"), [{"type": "tool_use"}], "not permitted"),
        (
            ("messages", 2, "content", 0, "content"),
            [{"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": "eA=="}}],
            "source",
        ),
        (("messages", 2, "content"), [RESULT, *([{"type": "text", "text": "a", **MARK}] * 4)], "maximum of 4"),
        (("messages", 2, "content", 0, "cache_control"), {"type": "forever"}, "cache_control"),
        (("messages", 3), {"role": "assistant", "content": "Well"}, "prefill"),
        (("messages", 3), {"role": "assistant", "content": [CALL]}, "unique"),
    ],
)
def test_a_bad_request(path: tuple[Any, ...], value: Any, complaint: str) -> None:
    body = copy.deepcopy(GOOD)
    place: Any = body
    for key in path[:-1]:
        place = place[key]
    if isinstance(place, list) and path[-1] == len(place):
        place.append(value)
    else:
        place[path[-1]] = value
    assert complaint in "; ".join(problems(body))
