"""The cases of ``cases/requests`` for OpenAI's wires: stored histories, and what is sent of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from openheim.agent.repair import repaired
from openheim.messages import Message, TextBlock, message_from_stored
from openheim.providers import ModelRequest, ToolSpec
from openheim.wirenames import ToolNames
from openheim_provider_openai.plugin import Settings
from tests.providers.conftest import CASES, Call
from tests.support import openai_validator, openai_wire, responses_validator, responses_wire
from tests.support.openai_server import OpenAIServer

pytestmark = pytest.mark.anyio

ALL = [
    pytest.param(case, id=case["case"])
    for path in sorted((CASES / "requests").glob("*.json"))
    for case in [json.loads(path.read_text(encoding="utf-8"))]
    if case["wire"] in ("openai", "openai_compatible")
]


def request_of(case: dict[str, Any]) -> ModelRequest:
    history = [message_from_stored(message) for message in case["history"]]
    if "then_user" in case:
        history.append(Message("user", (TextBlock(case["then_user"]),), id="then"))
    functions = [tool["function"] for tool in case.get("tools", ())]
    tools = [ToolSpec(tool["name"], tool["description"], tool["parameters"]) for tool in functions]
    return ModelRequest(
        "m-test", "Be brief.", repaired(history), tuple(sorted(tools, key=lambda tool: tool.name)), session_id="s"
    )


async def sent(make_call: Callable[..., Call], case: dict[str, Any], answer: Any, **options: Any) -> dict[str, Any]:
    given = Settings.model_validate(case.get("provider", {}) | options)
    async with OpenAIServer([answer]) as server:
        await make_call(server.base_url, case["wire"], options=given)(request_of(case))
        body: dict[str, Any] = server.requests[0].json
    return body


def test_there_are_cases() -> None:
    assert len(ALL) >= 6


@pytest.mark.parametrize("case", ALL)
async def test_on_chat(make_call: Callable[..., Call], case: dict[str, Any]) -> None:
    body = await sent(make_call, case, openai_wire.text("ok"))
    provider = case.get("provider", {})
    echoed = frozenset([provider["echo_reasoning"]] if "echo_reasoning" in provider else ())
    # The validator looks for unanswered calls, stray results, shared ids, blank text and broken arguments in any case.
    assert openai_validator.problems(body, message_fields=echoed) == []
    for check in case["checks"]:
        name, value = next(iter(check.items())) if isinstance(check, dict) else (check, None)
        CHECKS[name](body, value)
    if any(check == "names_map_back" for check in case["checks"]):
        own = {tool["function"]["name"] for tool in case["tools"]}
        assert {ToolNames(own).original(tool["function"]["name"]) for tool in body["tools"]} == own


@pytest.mark.parametrize("case", ALL)
async def test_on_responses(make_call: Callable[..., Call], case: dict[str, Any]) -> None:
    body = await sent(make_call, case, responses_wire.text("ok"), wire="responses")
    assert responses_validator.problems(body) == []
    asked = [item for item in body["input"] if item.get("type") == "function_call"]
    answered = [item for item in body["input"] if item.get("type") == "function_call_output"]
    assert {item["call_id"] for item in asked} == {item["call_id"] for item in answered}
    if "tools" in case:
        assert len({tool["name"] for tool in body["tools"]}) == len(case["tools"])


def _synthetic_result(body: dict[str, Any], call_id: str) -> None:
    (result,) = [message for message in body["messages"] if message.get("tool_call_id") == call_id]
    assert result["content"].startswith("Error:")


def _path_equals(body: dict[str, Any], check: list[Any]) -> None:
    path, wanted = check
    found: Any = body
    for key, place in re.findall(r"([a-z_A-Z]+)|\[(-?\d+)\]", path):
        found = found[key] if key else found[int(place)]
    assert found == wanted


def _ids_match(body: dict[str, Any], pattern: str) -> None:
    ids = [call["id"] for message in body["messages"] for call in message.get("tool_calls", ())]
    assert ids and all(re.fullmatch(pattern, call_id) for call_id in ids)


def _names_match(body: dict[str, Any], pattern: str) -> None:
    assert all(re.fullmatch(pattern, tool["function"]["name"]) for tool in body["tools"])


def _validated(body: dict[str, Any], value: Any) -> None:
    """The validator has looked for it."""


CHECKS: dict[str, Callable[[dict[str, Any], Any], None]] = {
    "every_call_answered_in_next_message": _validated,
    "no_result_without_call": _validated,
    "ids_unique_in_message": _validated,
    "arguments_are_json_objects": _validated,
    "tool_names_unique": _validated,
    "names_map_back": _validated,
    "synthetic_result_for": _synthetic_result,
    "path_equals": _path_equals,
    "ids_match": _ids_match,
    "tool_names_match": _names_match,
    "tool_count": lambda body, count: _equal(len(body["tools"]), count),
}


def _equal(found: Any, wanted: Any) -> None:
    assert found == wanted
