"""Schemas of tools and of replies in the forms that the service takes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from openheim_provider_anthropic.schemas import input_schema, output_schema
from tests.support.anthropic_validator import problems

KEYWORDS = [
    *("type", "properties", "items", "required", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "$defs"),
    *("additionalProperties", "exclusiveMinimum", "minimum", "format", "minItems", "description", "not", "definitions"),
    *("prefixItems", "additionalItems", "patternProperties", "pattern", "$schema"),
]
values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-2, 3),
        st.sampled_from(["object", "string", "array", "any", "a", "ü", "#/$defs/a", "#/definitions/a", "date"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from([*KEYWORDS, "a", "ü b"]), inner, max_size=4),
    ),
    max_leaves=20,
)
schemas = st.dictionaries(st.sampled_from(KEYWORDS), values, max_size=6)


def request(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}], **fields}


@given(schemas)
def test_any_schema_of_a_tool_is_accepted(schema: dict[str, Any]) -> None:
    before = repr(schema)
    assert problems(request(tools=[{"name": "t", "input_schema": input_schema(schema)}])) == []
    assert repr(schema) == before


@example({"type": "string", "format": []})
@example({"type": "object", "properties": {"a": {"type": "string"}}, "required": [[], "a"]})
@given(schemas)
def test_any_schema_of_a_reply_is_accepted_or_told_in_words(schema: dict[str, Any]) -> None:
    before = repr(schema)
    form = output_schema(schema)
    if form is not None:
        assert problems(request(output_config={"format": {"type": "json_schema", "schema": form}})) == []
    assert repr(schema) == before


PATH = {"path": {"type": "string", "minLength": 1}}


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        (
            {"type": "object", "properties": PATH, "required": ["path"], "additionalProperties": False},
            {"type": "object", "properties": PATH, "required": ["path"], "additionalProperties": False},
        ),
        ({}, {"type": "object", "properties": {}}),
        ({"type": ["object", "null"], "$schema": "x"}, {"type": "object", "properties": {}}),
        (
            {"$ref": "#/$defs/p", "$defs": {"p": {"type": "object", "properties": PATH}}},
            {"type": "object", "properties": PATH, "$defs": {"p": {"type": "object", "properties": PATH}}},
        ),
        (
            {"anyOf": [{"properties": PATH, "required": ["path"]}, {"properties": {"id": {}}, "required": ["id"]}]},
            {"type": "object", "properties": {**PATH, "id": {}}, "required": []},
        ),
        (
            {"allOf": [{"properties": PATH, "required": ["path"]}, {"properties": {"id": {}}, "required": ["id"]}]},
            {"type": "object", "properties": {**PATH, "id": {}}, "required": ["id", "path"]},
        ),
        (
            {"properties": {"a b": {}, "c": {"type": "any"}}, "required": ["a b", "c", "c"]},
            {"type": "object", "properties": {"c": {}}, "required": ["c"]},
        ),
        (
            {"properties": {"n": {"minimum": 1, "exclusiveMinimum": True, "required": True}}},
            {"type": "object", "properties": {"n": {"exclusiveMinimum": 1, "required": []}}},
        ),
        (
            {"properties": {"l": {"items": [{"type": "string"}], "additionalItems": False}}},
            {"type": "object", "properties": {"l": {"prefixItems": [{"type": "string"}], "items": False}}},
        ),
    ],
)
def test_schemas_of_tools(schema: dict[str, Any], sent: dict[str, Any]) -> None:
    assert input_schema(schema) == sent


CLOSED = {"additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        (
            {"type": "object", "title": "T", "properties": {"a": {"type": "integer", "maximum": 5}}, "required": ["a"]},
            {
                "title": "T",
                "type": "object",
                "properties": {"a": {"type": "integer", "description": "maximum: 5"}},
                "required": ["a"],
                **CLOSED,
            },
        ),
        (
            {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "string", "format": "date"}},
            {
                "type": "array",
                "items": {"type": "string", "format": "date"},
                "minItems": 1,
                "description": "maxItems: 3",
            },
        ),
        ({"type": ["string", "null"]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"oneOf": [{"type": "null"}, {"const": 5}]}, {"anyOf": [{"type": "null"}, {"const": 5}]}),
        ({"type": "string", "enum": ["a"]}, {"enum": ["a"]}),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "null"}}}, {"type": "null"}),
        ({"type": "string", "format": "regex"}, {"type": "string", "description": 'format: "regex"'}),
        ({"type": "object", **CLOSED}, {"type": "object", "properties": {}, "required": [], **CLOSED}),
        # A mapping from any names, anything at all, what refers to itself or to nothing.
        ({"type": "object"}, None),
        ({}, None),
        ({"properties": {"a": True}}, None),
        ({"$ref": "#/$defs/n"}, None),
        ({"$ref": "https://other.example/schema"}, None),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}}}}, None),
    ],
)
def test_schemas_of_replies(schema: dict[str, Any], sent: dict[str, Any] | None) -> None:
    assert output_schema(schema) == sent


def test_a_schema_that_grows_without_end() -> None:
    names = [f"d{number}" for number in range(30)]
    defs: dict[str, Any] = {name: {"anyOf": [{"$ref": f"#/$defs/{after}"}] * 2} for name, after in pairwise(names)}
    defs[names[-1]] = {"type": "null"}
    assert output_schema({"$ref": "#/$defs/d0", "$defs": defs}) is None
