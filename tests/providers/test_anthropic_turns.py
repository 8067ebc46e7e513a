"""Whole turns: the agent with this provider, a session on disk, and a service that refuses what the real one does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openheim import Client, tool
from tests.support.anthropic_server import AnthropicServer
from tests.support.anthropic_wire import block, error, message, text
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import tool_calls as chat_tool_calls

pytestmark = pytest.mark.anyio


@tool(read_only=True)
async def word_count(words: str) -> str:
    """Counts words."""
    return str(len(words.split()))


@pytest.fixture
def server() -> Iterator[AnthropicServer]:
    with AnthropicServer() as running:
        yield running


def client(server: AnthropicServer | OpenAIServer, provider: str, **fields: Any) -> Client:
    return Client(
        config=False, provider=provider, api_base=server.base_url, model="claude-x", tools=[word_count], **fields
    )


async def test_thinking_comes_back_from_disk_as_it_was(server: AnthropicServer, tmp_path: Path) -> None:
    server.add(
        message(
            block("thinking", "I count.", signature="c2lnLTE="),
            block("redacted_thinking", data="b3BhcXVl"),
            block("tool_use", '{"words": "a b c"}', id="toolu_1", name="word_count"),
            finish="tool_use",
        ),
        text("Three.", thinking="done"),
        text("Still three."),
    )
    async with client(server, "anthropic") as asking:
        session = asking.new_session(cwd=tmp_path)
        outcome = await session.run("count a b c")
        assert outcome.text == "Three."
        assert (outcome.usage.input_tokens, outcome.usage.output_tokens) == (22, 10)
        session_id = session.id
    async with client(server, "anthropic") as asking:
        assert (await asking.resume(session_id).run("Really?")).text == "Still three."
    before, after = server.prompts[1].json, server.prompts[2].json
    assert before["messages"][1]["content"][:2] == [
        {"type": "thinking", "thinking": "I count.", "signature": "c2lnLTE="},
        {"type": "redacted_thinking", "data": "b3BhcXVl"},
    ]
    assert before["messages"][2]["content"][0]["content"] == "3"
    assert after["messages"][1] == before["messages"][1]
    assert after["messages"][3]["content"][0]["thinking"] == "done"


async def test_a_paused_turn_goes_on_by_itself(server: AnthropicServer, tmp_path: Path) -> None:
    server.add(
        message(
            block("text", "I search."),
            block("server_tool_use", '{"query":"x"}', id="srvtoolu_1", name="web_search"),
            finish="pause_turn",
        ),
        message(
            block("web_search_tool_result", tool_use_id="srvtoolu_1", content=[]),
            block("text", "Nothing."),
        ),
        text("Bye."),
    )
    async with client(server, "anthropic") as asking:
        session = asking.new_session(cwd=tmp_path)
        assert (await session.run("search x")).text == "Nothing."
        assert (await session.run("Thanks.")).text == "Bye."
    paused, last = server.prompts[1].json["messages"], server.prompts[2].json["messages"]
    assert [one["role"] for one in paused] == ["user", "assistant"]
    assert [part["type"] for part in last[1]["content"]] == [
        *("text", "server_tool_use", "web_search_tool_result", "text"),
    ]


async def test_a_session_of_another_wire_goes_on(server: AnthropicServer, tmp_path: Path) -> None:
    with OpenAIServer([chat_tool_calls(("word_count", {"words": "a"}, "call|1"), thinking="hm")]) as other:
        async with client(other, "openai") as asking:
            session = asking.new_session(cwd=tmp_path)
            # The service has no second answer, so that the turn ends in its middle.
            outcome = await session.run("count a")
            assert outcome.error is not None
            assert "no reply for request 2" in str(outcome.error)
            session_id = session.id
    server.add(text("One."))
    async with client(server, "anthropic") as asking:
        assert (await asking.resume(session_id).run("So?")).text == "One."
    sent = server.prompts[0].json["messages"]
    assert [part["type"] for part in sent[1]["content"]] == ["tool_use"]
    assert [part["type"] for part in sent[2]["content"]] == ["tool_result", "text"]


async def test_a_call_cut_by_the_cap_does_not_run(server: AnthropicServer, tmp_path: Path) -> None:
    server.add(
        message(block("tool_use", '{"words": "a', id="toolu_1", name="word_count"), finish="max_tokens"),
        text("Smaller then."),
    )
    async with client(server, "anthropic") as asking:
        await asking.new_session(cwd=tmp_path).run("count")
    (told,) = server.prompts[1].json["messages"][2]["content"]
    assert told["is_error"] is True
    assert server.prompts[1].json["messages"][1]["content"][0]["input"] == {}


async def test_an_overloaded_service_is_asked_again(server: AnthropicServer, tmp_path: Path) -> None:
    server.add(error(529, "Overloaded", type="overloaded_error", headers={"retry-after-ms": "1"}), text("Here."))
    async with client(server, "anthropic") as asking:
        assert (await asking.new_session(cwd=tmp_path).run("hi")).text == "Here."
    assert len(server.prompts) == 2
