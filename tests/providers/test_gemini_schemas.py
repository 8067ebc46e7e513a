"""Schemas as they are sent: what is left of each keyword, and that nothing makes them long or wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openheim.providers import ToolSpec
from openheim_provider_gemini.body import request_body
from openheim_provider_gemini.schemas import reduced, reduced_parameters
from tests.providers.gemini import asking, user
from tests.support.gemini_validator import problems

ANYTHING = {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "object"}]}


def problems_of(parameters: dict[str, Any]) -> list[str]:
    tools = (ToolSpec("f", "d", parameters),)
    return problems(json.loads(request_body(asking(user("hi"), tools=tools), {}, "mine")))


STRING, NUMBER, INTEGER, NULL = ({"type": kind} for kind in ("string", "number", "integer", "null"))


def any_of(*choices: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": list(choices)}


def array(items: Any = ANYTHING, **others: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **others}


def fields(*required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties} | ({"required": list(required)} if required else {})


LEFT: list[tuple[Any, dict[str, Any]]] = [
    (STRING | {"minLength": 1, "pattern": "a", "default": "x", "title": "T"}, STRING),
    (STRING | {"format": "date-time"}, STRING | {"format": "date-time"}),
    (STRING | {"format": "uri"}, STRING),
    (STRING | {"description": " "}, STRING),
    (NUMBER | {"minimum": 0, "maximum": 1.5}, NUMBER | {"minimum": 0, "maximum": 1.5}),
    (INTEGER | {"exclusiveMinimum": 0, "exclusiveMaximum": 9}, INTEGER | {"minimum": 1, "maximum": 8}),
    (NUMBER | {"exclusiveMinimum": True}, NUMBER),
    # Types
    ({"type": ["string", "null"], "description": "d"}, {"description": "d"} | any_of(STRING, NULL)),
    ({"type": ["string"]}, STRING),
    ({"type": ["integer", "string"], "minimum": 2}, any_of(INTEGER | {"minimum": 2}, STRING)),
    ({"type": "unheard-of"}, ANYTHING),
    ({}, ANYTHING),
    (True, ANYTHING),
    # Values
    ({"const": "a"}, STRING | {"enum": ["a"]}),
    ({"const": 3}, INTEGER | {"enum": [3]}),
    ({"const": True}, {"type": "boolean"}),
    ({"enum": ["a", "", "a", "b"]}, STRING | {"enum": ["a", "b"]}),
    ({"enum": [""]}, STRING),
    (INTEGER | {"enum": [1, 2]}, INTEGER | {"enum": [1, 2]}),
    (NUMBER | {"enum": [1, 2.5]}, NUMBER | {"enum": [1, 2.5]}),
    ({"enum": ["a", 1, None]}, any_of(STRING | {"enum": ["a"]}, INTEGER | {"enum": [1]}, NULL)),
    ({"enum": [[1], {"a": 1}]}, any_of({"type": "object"}, array())),
    # Arrays
    ({"type": "array"}, array()),
    ({"items": STRING, "minItems": 1, "uniqueItems": True}, array(STRING, minItems=1)),
    ({"type": "array", "items": [STRING, NUMBER]}, array(any_of(STRING, NUMBER))),
    ({"type": "array", "prefixItems": [STRING], "items": False}, array(STRING)),
    # Objects
    ({"type": "object"}, {"type": "object"}),
    ({"type": "object", "additionalProperties": False}, {"type": "object"}),
    ({"additionalProperties": INTEGER}, {"type": "object", "additionalProperties": INTEGER}),
    ({"properties": {"a": NULL}, "required": ["a", "a", "b", 1]}, fields("a", a=NULL)),
    # Choices and sums
    ({"oneOf": [STRING, STRING]}, STRING),
    (any_of(any_of(STRING, NULL), INTEGER), any_of(STRING, NULL, INTEGER)),
    (STRING | any_of({"format": "date"}, {"format": "uri"}), any_of(STRING | {"format": "date"}, STRING)),
    (fields(a=STRING) | any_of({"required": ["a"]}), fields(a=STRING)),
    ({"allOf": [fields("a", a=STRING), fields("b", b=STRING)]}, fields("a", "b", b=STRING, a=STRING)),
    # References
    (
        {"$ref": "#/$defs/a~1b", "description": "mine", "$defs": {"a/b": STRING | {"description": "theirs"}}},
        {"description": "mine"} | STRING,
    ),
    (
        {
            "allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}, {"properties": {"c": NULL}}],
            "$defs": {"a": fields("a", a=STRING), "b": {"allOf": [{"$ref": "#/$defs/d"}]}, "d": fields("b", b=STRING)},
        },
        fields("a", "b", c=NULL, b=STRING, a=STRING),
    ),
    ({"$ref": "https://example.org/schema"}, ANYTHING),
    ({"$ref": "#/$defs/nowhere"}, ANYTHING),
    ({"$ref": f"#/examples/{'1' * 5000}", "examples": [1]}, ANYTHING),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, ANYTHING),
    ({"if": STRING, "then": {}, "not": {}, "type": "boolean", "x-own": 1}, {"type": "boolean"}),
]


@pytest.mark.parametrize(("schema", "sent"), LEFT)
def test_what_is_left(schema: Any, sent: dict[str, Any]) -> None:
    before = json.dumps(schema)
    assert reduced(schema) == sent
    assert json.dumps(schema) == before
    assert problems_of({"type": "object", "properties": {"x": schema}}) == []


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        ({"type": "object"}, None),
        ({"type": "object", "properties": {}, "additionalProperties": False}, None),
        ({"type": "object", "additionalProperties": True}, {"type": "object"}),
        (
            {"type": "object", "properties": {"$filter": {"type": "string"}}},
            {"type": "object", "properties": {"$filter": {"type": "string"}}},
        ),
        (
            {
                "type": "object",
                "oneOf": [
                    {"properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"]},
                    {"properties": {"a": {"type": "string"}}, "required": ["a"]},
                ],
            },
            {
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "required": ["a"],
            },
        ),
    ],
)
def test_arguments_are_an_object_or_nothing(schema: dict[str, Any], sent: dict[str, Any] | None) -> None:
    assert reduced_parameters(schema) == sent
    assert problems_of(schema) == []


def test_a_schema_that_contains_itself_is_unrolled_a_little() -> None:
    node = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "kids": {"type": "array", "items": {"$ref": "#"}}},
    }
    once = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "kids": {"type": "array", "items": {"type": "object"}}},
    }
    kids = reduced(node)["properties"]["kids"]["items"]
    assert kids["properties"]["kids"]["items"] == once


def test_references_do_not_make_a_schema_grow_without_bound() -> None:
    def pair(to: int) -> dict[str, Any]:
        return {"type": "object", "properties": {side: {"$ref": f"#/$defs/{to}"} for side in ("left", "right")}}

    schema = pair(0) | {"$defs": {str(number): pair(number + 1) for number in range(60)}}
    assert problems_of(schema) == []
    assert len(json.dumps(reduced(schema))) < 500_000


def test_sums_of_references_do_not_either() -> None:
    def doubled(to: int) -> dict[str, Any]:
        return {"allOf": [{"$ref": f"#/$defs/{to}"}, {"$ref": f"#/$defs/{to}"}]}

    schema = doubled(0) | {"$defs": {str(number): doubled(number + 1) for number in range(60)}}
    assert problems_of({"type": "object", "properties": {"x": schema}, "$defs": schema["$defs"]}) == []
    itself = {"type": "object", "allOf": [{"$ref": "#"}, {"$ref": "#"}], "properties": {"a": {"$ref": "#"}}}
    assert problems_of(itself) == []
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(500):
        deep = {"allOf": [deep]}
    assert problems_of({"type": "object", "properties": {"x": deep}}) == []


def test_a_schema_nested_deeply() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(200):
        schema = {"type": "array", "items": schema}
    assert problems_of({"type": "object", "properties": {"x": schema}}) == []


ATOMS = st.sampled_from(
    [None, True, False, 0, 1, -2.5, "", "a", "string", "null", "object", "#", "#/$defs/a", "#/properties/a"]
)
KEYWORDS = st.sampled_from(
    "type properties items anyOf oneOf allOf enum const $ref $defs required description format minimum exclusiveMinimum"
    " minItems additionalProperties prefixItems a".split()
)
SCHEMAS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYWORDS, inner, max_size=4)),
    max_leaves=25,
)


@settings(max_examples=400, deadline=None)
@given(properties=st.dictionaries(st.sampled_from(["a", "b"]), SCHEMAS, max_size=2), definition=SCHEMAS)
def test_whatever_is_written_is_sent_in_a_form_that_is_taken(properties: dict[str, Any], definition: Any) -> None:
    schema = {"type": "object", "properties": properties, "$defs": {"a": definition}, "required": ["a"]}
    assert problems_of(schema) == []
