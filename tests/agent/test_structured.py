"""Answers that have to match a schema: passed on, checked, asked for once more, and then an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from openheim import Client, SyncClient, tool
from openheim.errors import AuthError, SchemaMismatchError, UsageError
from openheim.messages import message_to_stored
from openheim.store.digest import totals_of
from openheim.testing import ScriptedProvider, reply_error, reply_text, reply_tool_calls
from tests.agent.sessions import scripted_session
from tests.agent.turns import Conversation

pytestmark = pytest.mark.anyio

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "integer", "minimum": 1}},
    "required": ["city", "people"],
    "additionalProperties": False,
}
GOOD = '{"city": "Ulm", "people": 128000}'
VALUE = {"city": "Ulm", "people": 128000}


class Native(ScriptedProvider):
    structured_output = True


@tool(read_only=True)
async def look() -> str:
    """Looks."""
    return "Ulm"


@pytest.mark.parametrize("text", [GOOD, f"  {GOOD}\n", f"```json\n{GOOD}\n```", f"```\r\n{GOOD}\r\n```\n"])
async def test_what_the_answer_stands_for_is_its_value(text: str) -> None:
    async with scripted_session([text]) as run:
        outcome = await run.session.run("which city?", response_schema=SCHEMA)
    assert (outcome.value, outcome.text, outcome.error) == (VALUE, text if "```" not in text else GOOD, None)
    assert run.events[-1].value == VALUE


async def test_a_provider_with_a_place_for_it_is_given_the_schema_alone() -> None:
    provider = Native([reply_tool_calls(("look", {})), GOOD, "plain"])
    async with scripted_session([], provider=provider, tools=[look]) as run:
        assert (await run.session.run("look", response_schema=SCHEMA)).value == VALUE
        assert (await run.session.run("and now plain")).value is None
    assert [request.response_schema for request in provider.requests] == [SCHEMA, SCHEMA, None]
    assert len({request.system for request in provider.requests}) == 1


async def test_any_other_finds_it_in_the_system_text_of_that_turn() -> None:
    provider = ScriptedProvider([reply_tool_calls(("look", {})), GOOD, "plain"])
    async with scripted_session([], provider=provider, tools=[look]) as run:
        await run.session.run("look", response_schema=SCHEMA)
        await run.session.run("and now plain")
    first, second, plain = (request.system for request in provider.requests)
    assert first == second == f"{plain}{first.removeprefix(plain)}"
    assert json.dumps(SCHEMA) in first and json.dumps(SCHEMA) not in plain


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Ulm, I think", "no JSON"),
        ("", "empty"),
        ('{"city": "Ulm"}', "people is missing"),
        ('{"city": 7, "people": 0}', "city must be string, not integer; people must be at least 1"),
        ('["Ulm"]', "the value must be object, not array"),
        (f"{GOOD} {GOOD}", "no JSON"),
        ('{"city": "Ulm", "people": NaN}', "no JSON"),
        ("[" * 100_000, "no JSON"),
    ],
    ids=["text", "empty", "missing", "wrong", "array", "two", "nan", "deep"],
)
async def test_one_that_does_not_match_is_asked_for_once_more(text: str, problem: str) -> None:
    async with scripted_session([reply_text(text), GOOD]) as run:
        outcome = await run.session.run("which city?", response_schema=SCHEMA)
    assert (outcome.value, outcome.stop_reason, outcome.iterations) == (VALUE, "end_turn", 2)
    told = run.provider.requests[1].messages[-1]
    assert told.role == "user" and problem in told.text
    assert [message.text for message in run.stored()][-2:] == [told.text, GOOD]
    assert totals_of([message_to_stored(message) for message in run.stored()], []).turns == 1
    assert any(problem in notice.text for notice in run.of_type("notice") if notice.severity == "warning")


async def test_after_the_second_it_is_an_error() -> None:
    async with scripted_session(["no", '{"city": 1}']) as run:
        outcome = await run.session.run("which city?", response_schema=SCHEMA)
        assert len(run.provider.requests) == 2
    assert isinstance(outcome.error, SchemaMismatchError) and outcome.error.kind == "schema_mismatch"
    assert "city must be string" in outcome.error.message
    assert (outcome.value, outcome.text, outcome.stop_reason) == (None, '{"city": 1}', None)


@pytest.mark.parametrize(("finish", "stop"), [("max_tokens", "max_tokens"), ("refusal", "refusal")])
async def test_what_is_no_whole_answer_is_not_checked(finish: Any, stop: str) -> None:
    async with scripted_session([reply_text('{"city": "U', finish=finish)]) as run:
        outcome = await run.session.run("which city?", response_schema=SCHEMA)
    assert (outcome.stop_reason, outcome.value, outcome.error) == (stop, None, None)


async def test_the_last_iteration_leaves_none_to_ask_again() -> None:
    async with scripted_session(["no"], max_iterations=1) as run:
        outcome = await run.session.run("which city?", response_schema=SCHEMA)
    assert (outcome.stop_reason, outcome.value) == ("max_turn_requests", None)


async def test_who_takes_over_is_told_in_its_own_way() -> None:
    second = Native([GOOD])
    fallback = Conversation(provider=second, response_schema=SCHEMA).settings()
    conversation = Conversation([reply_error(AuthError("gone"))], response_schema=SCHEMA, fallbacks=(fallback,))
    assert (await conversation.prompt("hi")).value == VALUE
    assert conversation.requests[0].system and not second.requests[0].system
    assert second.requests[0].response_schema == SCHEMA


@pytest.mark.parametrize(
    "schema",
    [{"x": object()}, {"x": float("nan")}, {"enum": ["x" * 300_000]}, [1]],
    ids=["object", "nan", "long", "list"],
)
async def test_a_schema_that_is_none_is_refused_before_anything_is_stored(schema: Any) -> None:
    async with scripted_session([]) as run:
        with pytest.raises(UsageError, match="schema of the answer"):
            await run.session.run("hi", response_schema=schema)
        assert not run.session.messages and not run.session.running


async def test_prompt_and_the_client_for_scripts_take_one_too(tmp_path: Path) -> None:
    async with Client(provider=ScriptedProvider([GOOD])) as client:
        with anyio.fail_after(10):
            events = [event async for event in client.new_session(cwd=tmp_path).prompt("?", response_schema=SCHEMA)]
        assert events[-1].type == "turn_finished" and events[-1].value == VALUE  # type: ignore[union-attr]  # the last one


def test_the_client_for_scripts_takes_one_too(tmp_path: Path) -> None:
    with SyncClient(provider=ScriptedProvider([GOOD, GOOD])) as client:
        session = client.new_session(cwd=tmp_path)
        assert session.run("?", response_schema=SCHEMA).value == VALUE
        assert list(session.prompt("?", response_schema=SCHEMA))[-1].value == VALUE  # type: ignore[union-attr]  # as above


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ([], "is list"),
        ("x", "is str"),
        (5, "is int"),
        ({"type": "objekt"}, "type must be one or several of"),
        ({"type": ["string", "int"]}, "type must be"),
        ({"type": []}, "type must be"),
        ({"required": "a"}, "required must be a list of names"),
        ({"anyOf": 3}, "anyOf must be a list of schemas"),
        ({"anyOf": [{"type": "int"}]}, r"anyOf\[0\].type must be"),
        ({"enum": 4}, "enum must be a list"),
        ({"properties": 5}, "properties must be schemas by name"),
        ({"properties": {"a": 1}}, "properties.a must be a schema"),
        ({"items": {"minimum": "a"}}, "items.minimum must be a number"),
        ({"minLength": -1}, "minLength must be a number, 0 or more"),
        ({"$ref": "#/nope"}, "leads nowhere"),
    ],
)
async def test_what_is_no_schema_is_refused_before_anything_is_sent(schema: Any, words: str) -> None:
    async with scripted_session([GOOD]) as run:
        with pytest.raises(UsageError, match=words):
            await run.session.run("which city?", response_schema=schema)
        assert not run.session.messages


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": ["object", "null"], "x-unknown": 3, "format": "date"},
        {"$defs": {"a/b": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/a~1b"}}, "items": True},
        {"properties": {"type": {"type": "string"}, "required": {"type": "array"}}},
        {"$ref": "#"},
    ],
)
async def test_what_is_a_schema_is_taken(schema: Any) -> None:
    async with scripted_session(["{}"]) as run:
        assert (await run.session.run("x", response_schema=schema)).value == {}
