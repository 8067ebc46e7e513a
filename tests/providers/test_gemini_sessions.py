"""Whole turns on the wire of Gemini: tools, retries, and sessions that come from another provider."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openheim import Client, ToolResult, tool
from openheim.errors import BlockedError, MalformedToolCallError
from openheim.messages import ImageBlock, TextBlock
from openheim.testing import PrefixGuard, ScriptedProvider, reply_text, reply_tool_calls
from tests.agent.sessions import NO_DELAYS
from tests.support.gemini_server import GeminiServer
from tests.support.gemini_wire import MODEL, event, events, text, tool_calls

pytestmark = pytest.mark.anyio

PNG = ImageBlock("iVBORw0KGgo=", "image/png")


@tool(read_only=True)
async def look(at: str) -> ToolResult:
    """Looks at something."""
    return ToolResult((TextBlock(f"it is {at}"), PNG))


def client_of(server: GeminiServer, folder: Path, **options: Any) -> Client:
    entry = {"kind": "gemini", "api_base": server.base_url, "default_model": MODEL}
    client = Client(
        config=False,
        data_dir=folder,
        provider="g",
        settings={"providers": {"g": entry}},
        tools=[look],
        **options,
    )
    client.runtime.retry = NO_DELAYS
    return client


async def test_a_turn_with_tools_and_the_next_one(tmp_path: Path) -> None:
    script = [
        tool_calls(("look", {"at": "a"}), ("look", {"at": "b"}), thinking="hm", text="I look.", signature="c2ln"),
        text("It is ", "fine.", signature="dGV4dA=="),
        text("Yes."),
    ]
    async with GeminiServer(script) as server, client_of(server, tmp_path) as client:
        session = client.new_session()
        assert (await session.run("look around")).text == "It is fine."
        assert (await session.run("sure?")).text == "Yes."
        assert server.problems == []
        contents = [request.json["contents"] for request in server.prompts]
        PrefixGuard(request.body for request in server.prompts).check(at_least=3)
    assert contents[0] == contents[1][:1] == contents[2][:1]
    assert contents[1] == contents[2][:3]
    (said, first, second) = contents[1][1]["parts"]
    assert said == {"text": "I look."}
    assert (first["thoughtSignature"], second.get("thoughtSignature")) == ("c2ln", None)
    answers = [part["functionResponse"] for part in contents[1][2]["parts"]]
    assert [answer["response"]["result"] for answer in answers] == ["it is a", "it is b"]
    assert [len(answer["parts"]) for answer in answers] == [1, 1]
    assert contents[2][3]["parts"] == [{"text": "It is "}, {"text": "fine.", "thoughtSignature": "dGV4dA=="}]


async def test_signatures_survive_on_disk(tmp_path: Path) -> None:
    async with GeminiServer([text("It is ", "fine.", signature="dGV4dA=="), text("Yes.")]) as server:
        async with client_of(server, tmp_path) as client:
            session = client.new_session()
            await session.run("look")
        async with client_of(server, tmp_path) as client:
            await client.resume(session.id).run("sure?")
        assert server.problems == []
        parts = server.prompts[1].json["contents"][1]["parts"]
    assert parts == [{"text": "It is "}, {"text": "fine.", "thoughtSignature": "dGV4dA=="}]


async def test_a_session_of_another_provider_goes_on(tmp_path: Path) -> None:
    scripted = ScriptedProvider([reply_tool_calls(("look", {"at": "a"}), ("look", {"at": "b"})), reply_text("Done.")])
    async with GeminiServer([text("Yes.")]) as server, client_of(server, tmp_path) as client:
        session = client.new_session(provider=scripted)
        await session.run("look")
        session.set_model("g", MODEL)
        assert (await session.run("sure?")).text == "Yes."
        assert server.problems == []
        calls = server.prompts[0].json["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in calls] == ["skip_thought_signature_validator", None]


async def test_a_call_that_went_wrong_is_asked_for_again_unless_something_was_shown(tmp_path: Path) -> None:
    bad = event([], "MALFORMED_FUNCTION_CALL")
    async with GeminiServer([events(bad), text("Fine."), events(event([{"text": "so"}]), bad)]) as server:
        async with client_of(server, tmp_path) as client:
            session = client.new_session()
            assert (await session.run("look")).text == "Fine."
            failed = await session.run("again")
            assert isinstance(failed.error, MalformedToolCallError)
        assert len(server.prompts) == 3


async def test_a_blocked_prompt_fails_the_turn_once(tmp_path: Path) -> None:
    blocked = events({"promptFeedback": {"blockReason": "SAFETY"}})
    async with GeminiServer([blocked]) as server, client_of(server, tmp_path) as client:
        outcome = await client.new_session().run("no")
        assert isinstance(outcome.error, BlockedError)
        assert "SAFETY" in outcome.error.message
        assert len(server.prompts) == 1
        stored = [path.read_text() for path in (tmp_path / "history").glob("*.jsonl")]
    assert [json.loads(line)["role"] for one in stored for line in one.splitlines() if '"role"' in line] == ["user"]
