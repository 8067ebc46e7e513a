"""Arguments of calls against the schema of their tool, whatever either of them holds."""

from __future__ import annotations

from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openheim import ToolError
from openheim.agent.arguments import checked_arguments, parse_arguments
from openheim.testing import reply_tool_calls
from tests.agent.sessions import scripted_session


def told(arguments: dict[str, Any], schema: dict[str, Any]) -> str:
    """What is wrong with the arguments, or nothing."""
    try:
        checked_arguments(arguments, {"type": "object", **schema})
    except ToolError as err:
        return str(err).removeprefix("invalid arguments: ")
    return ""


# --- reading ---


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": [Infinity]}', '{"a": -Infinity}', '{"a": 1e999}', "NaN", "[1]"])
def test_what_is_no_json_object_is_none(text: str) -> None:
    assert parse_arguments(text) is None


def test_what_is_one() -> None:
    assert parse_arguments(' {"a": [1, 1.5e3, null]} ') == {"a": [1, 1500.0, None]}
    assert parse_arguments(" ") == {}


# --- schemas that are true or false ---


@pytest.mark.parametrize(
    ("schema", "arguments", "problem"),
    [
        ({"properties": {"a": True}}, {"a": [{"b": 1}]}, ""),
        ({"properties": {"a": False}}, {"a": 1}, "a is not allowed"),
        ({"properties": {"a": False}}, {}, ""),
        ({"properties": {"a": False}}, {"a": None}, ""),
        ({"properties": {"a": True, "b": {}}}, {"a": 1.0, "c": 1}, "c is no argument of this tool"),
        ({"properties": {"a": True}, "additionalProperties": True}, {"b": 1}, ""),
        ({"properties": {"a": True}, "additionalProperties": False}, {"b": 1}, "b is no argument of this tool"),
        ({"additionalProperties": False}, {"b": 1}, "b is not allowed"),
        ({"properties": {"a": True}, "additionalProperties": {"type": "string"}}, {"b": 1}, "b must be string"),
        ({"properties": {"a": {"items": False}}}, {"a": [1]}, "a[0] is not allowed"),
        ({"properties": {"a": {"items": False}}}, {"a": []}, ""),
        ({"properties": {"a": {"items": True}}}, {"a": [1]}, ""),
        ({"properties": {"a": {"prefixItems": [{}, {}], "items": False}}}, {"a": [1, 2]}, ""),
        ({"properties": {"a": {"prefixItems": [{}, {}], "items": False}}}, {"a": [1, 2, 3]}, "a[2] is not allowed"),
        ({"properties": {"a": {"anyOf": [False, {"type": "string"}]}}}, {"a": "x"}, ""),
        ({"properties": {"a": {"anyOf": [False, {"type": "string"}]}}}, {"a": 1}, "a is not allowed"),
        ({"properties": {"a": {"anyOf": [True, {"type": "string"}]}}}, {"a": 1}, ""),
        ({"properties": {"a": {"properties": {"b": True}, "additionalProperties": False}}}, {"a": {"b": 1}}, ""),
        (
            {"properties": {"a": {"properties": {"b": True}, "additionalProperties": False}}},
            {"a": {"c": 1}},
            "a.c is not allowed",
        ),
        ({"patternProperties": {"^x-": {}}, "additionalProperties": False}, {"x-a": 1}, ""),
        ({"properties": {"a": True}, "patternProperties": {"^x-": {}}}, {"x-a": 1}, ""),
    ],
)
def test_true_allows_and_false_refuses(schema: dict[str, Any], arguments: dict[str, Any], problem: str) -> None:
    assert told(arguments, schema).startswith(problem)
    assert bool(told(arguments, schema)) is bool(problem)


@pytest.mark.parametrize("odd", [None, 5, "string", [], [{"type": "string"}]])
@pytest.mark.parametrize(
    "schema",
    [
        lambda odd: {"properties": {"a": odd}},
        lambda odd: {"properties": {"a": {"items": odd}}},
        lambda odd: {"properties": {"a": {"properties": odd, "required": odd and None}}},
        lambda odd: {"properties": {"a": {"anyOf": [odd]}}},
        lambda odd: {"properties": {"a": {}}, "required": odd},
        lambda odd: {"properties": odd},
    ],
)
def test_what_is_no_schema_says_nothing(schema: Any, odd: Any) -> None:
    assert told({"a": [{"b": 1.0}]}, schema(odd)) == ""


def test_a_mapping_of_another_type_is_a_schema_too() -> None:
    schema = MappingProxyType({"type": "object", "properties": {"a": {"type": "integer"}}})
    assert checked_arguments({"a": 1.0}, schema) == {"a": 1}
    with pytest.raises(ToolError, match="a must be integer, not string"):
        checked_arguments({"a": "x"}, schema)


KEYWORDS = ["type", "properties", "required", "additionalProperties", "items", "prefixItems", "enum", "const", "anyOf"]
KEYWORDS += ["minimum", "exclusiveMinimum", "maximum", "minLength", "maxLength", "patternProperties", "a", "b"]
LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-3, 3) | st.sampled_from(["a", "string", "object"])
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=4),
    max_leaves=20,
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
)


@given(st.dictionaries(st.sampled_from(KEYWORDS), SCHEMAS), st.dictionaries(st.sampled_from("abc"), VALUES))
def test_no_schema_breaks_the_check(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    told(arguments, schema)


def test_alternatives_within_alternatives_have_a_bound() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(5000):
        schema = {"anyOf": [schema]}
    assert told({"a": 1}, {"properties": {"a": schema}}) == ""


# --- in a turn ---


@pytest.mark.anyio
async def test_a_turn_with_such_a_tool() -> None:
    ran: list[Any] = []

    async def run(arguments: dict[str, Any], turn: Any) -> str:
        ran.append(arguments)
        return "ran"

    schema = {"type": "object", "properties": {"any": True, "none": False, "odd": None}}
    tool: Any = SimpleNamespace(name="odd", description="", parameters=schema, run=run)
    calls = [("odd", {"any": [1.0]}), ("odd", {"none": 1}), ("odd", {"odd": 1})]
    async with scripted_session([reply_tool_calls(*calls), "ok"], tools=[tool]) as recorded:
        await recorded.session.run("go")
    assert [(result.content, result.is_error) for result in recorded.results()] == [
        ("ran", False),
        ("Error: invalid arguments: none is not allowed", True),
        ("ran", False),
    ]
    assert ran == [{"any": [1.0]}, {"odd": 1}]
