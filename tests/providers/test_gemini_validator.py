"""The validator refuses what the service refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.gemini_validator import problems

HI = {"role": "user", "parts": [{"text": "hi"}]}
CALL = {"functionCall": {"id": "c1", "name": "f", "args": {}}, "thoughtSignature": "c2ln"}
ANSWER = {"functionResponse": {"id": "c1", "name": "f", "response": {"result": "ok"}}}
BLOB = {"mimeType": "image/png", "data": "AAAA"}


def model(*parts: Any) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


def tool(parameters: Any, **fields: Any) -> list[Any]:
    return [{"functionDeclarations": [{"name": "f", "description": "d", "parametersJsonSchema": parameters} | fields]}]


def with_x(schema: Any) -> list[Any]:
    return tool({"type": "object", "properties": {"x": schema}})


@pytest.mark.parametrize("name", ["gemini-3-pro", "gemini-2.5-flash", ""])
def test_a_good_request(name: str) -> None:
    contents = [HI, model(CALL, CALL | {"functionCall": {"name": "f"}}), user(ANSWER, _renamed(id=None))]
    body = {"contents": contents, "tools": with_x({"type": "string"}), "systemInstruction": {"parts": [{"text": "x"}]}}
    assert problems(body, model=name) == []


def _renamed(**fields: Any) -> dict[str, Any]:
    response = ANSWER["functionResponse"] | fields
    return {"functionResponse": {key: value for key, value in response.items() if value is not None}}


BAD: list[tuple[dict[str, Any], str]] = [
    ({"contents": []}, "contents are missing"),
    ({"messages": []}, "unknown field messages"),
    ({"contents": [model({"text": "x"})]}, "the first role is 'model'"),
    ({"contents": [HI, HI]}, "two contents of role user"),
    ({"contents": [{"role": "assistant", "parts": [{"text": "x"}]}]}, "role 'assistant'"),
    ({"contents": [user()]}, "no parts"),
    ({"contents": [user({"text": " "})]}, "blank text"),
    ({"contents": [user({"text": "x", "inlineData": BLOB})]}, "not exactly one kind"),
    ({"contents": [user({"text": "x", "cache": 1})]}, "unknown field cache"),
    ({"contents": [user({"text": "x", "thoughtSignature": "c2ln"})]}, "a user's part has a signature"),
    ({"contents": [HI, model({"text": "x", "thoughtSignature": "no base64"})]}, "is no base64"),
    ({"contents": [user({"inlineData": {"mimeType": "png", "data": "AAAA"}})]}, "the type 'png' is not supported"),
    ({"contents": [user({"inlineData": {"mimeType": "image/bmp", "data": "AAAA"}})]}, "the type 'image/bmp'"),
    ({"contents": [user({"inlineData": {"mimeType": "image/png", "data": "?"}})]}, "without data"),
    ({"contents": [HI, model({"text": "x"})]}, "the last content is not the user's"),
    ({"contents": [HI, model(CALL), user(ANSWER), model(CALL), user(ANSWER)]}, "two calls have one id"),
    ({"contents": [HI, model(CALL)]}, "not answered"),
    ({"contents": [HI, model(CALL), user({"text": "x"})]}, "0 results for 1 calls"),
    ({"contents": [user(ANSWER)]}, "1 results for 0 calls"),
    ({"contents": [HI, model(CALL), user(_renamed(id="c2"))]}, "stands where that of"),
    ({"contents": [HI, model(CALL), user(_renamed(name="g"))]}, "stands where that of"),
    ({"contents": [HI, model(CALL, CALL), user(ANSWER, ANSWER)]}, "two calls have one id"),
    ({"contents": [HI, model({"functionCall": {"name": "a b"}}), user(_renamed(name="a b", id=None))]}, "the name"),
    ({"contents": [HI, model({"functionCall": {"name": "f", "args": []}}), user(_renamed(id=None))]}, "args is no"),
    (
        {"contents": [HI, model({"functionCall": {"name": "f"}}), user(_renamed(id=None))]},
        "first call has no signature",
    ),
    ({"contents": [HI], "systemInstruction": {"parts": [{"text": ""}]}}, "systemInstruction"),
    ({"contents": [HI], "generationConfig": {"maxTokens": 1}}, "unknown field maxTokens"),
    ({"contents": [HI], "generationConfig": {"maxOutputTokens": 0}}, "maxOutputTokens"),
    ({"contents": [HI], "generationConfig": {"temperature": 3}}, "temperature"),
    ({"contents": [HI], "generationConfig": {"responseJsonSchema": {"type": "object"}}}, "responseMimeType"),
    ({"contents": [HI], "generationConfig": {"thinkingConfig": {"thinkingBudget": 99_999}}}, "thinkingBudget"),
    ({"contents": [HI], "generationConfig": {"thinkingConfig": {"thinkingLevel": "TINY"}}}, "thinkingLevel"),
    ({"contents": [HI], "tools": [{}]}, "an empty tool"),
    ({"contents": [HI], "tools": [*with_x({"type": "string"}), *with_x({"type": "string"})]}, "of one name"),
    ({"contents": [HI], "tools": tool({"type": "object"}, description="")}, "no description"),
    ({"contents": [HI], "tools": tool({"type": "string"})}, "are no object"),
    ({"contents": [HI], "tools": with_x({"$ref": "#"})}, "unknown keyword $ref"),
    ({"contents": [HI], "tools": with_x({"type": ["string", "null"]})}, "type ['string', 'null']"),
    ({"contents": [HI], "tools": with_x({"type": "array"})}, "without items"),
    ({"contents": [HI], "tools": with_x({"type": "string", "enum": ["a", 1]})}, "enum"),
    ({"contents": [HI], "tools": with_x({"type": "string", "format": "uri"})}, "format"),
    ({"contents": [HI], "tools": with_x({"anyOf": [{"type": "null"}], "type": "string"})}, "beside other keywords"),
    ({"contents": [HI], "tools": tool({"type": "object", "required": ["y"]})}, "required property"),
]


@pytest.mark.parametrize(("body", "problem"), BAD, ids=[problem for _body, problem in BAD])
def test_bad_requests(body: dict[str, Any], problem: str) -> None:
    assert any(problem in found for found in problems(body, model="gemini-3-pro"))


@pytest.mark.parametrize(
    ("name", "body", "problem"),
    [
        ("gemini-2.0-flash", {"generationConfig": {"thinkingConfig": {}}}, "does not think"),
        ("gemini-2.5-pro", {"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}}}, "takes a budget"),
        (
            "gemini-2.5-pro",
            {"contents": [HI, model(CALL), user(_renamed(parts=[{"inlineData": BLOB}]))]},
            "for models of generation 3",
        ),
    ],
)
def test_rules_of_a_generation(name: str, body: dict[str, Any], problem: str) -> None:
    assert any(problem in found for found in problems({"contents": [HI]} | body, model=name))
