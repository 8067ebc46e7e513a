"""The scripted server against the official client library: what it plays is the wire that others speak too."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import pytest

from tests.support.anthropic_server import AnthropicServer
from tests.support.anthropic_wire import MODEL, block, error, message, models, text, tool_calls
from tests.support.replies import Reply

TOOL: Any = {"name": "look", "input_schema": {"type": "object"}}


def client(server: AnthropicServer) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0)


def ask(server: AnthropicServer, **fields: Any) -> Any:
    """The whole message, put together by the library from the stream, with the events that it saw."""
    fields.setdefault("messages", [{"role": "user", "content": "hi"}])
    with client(server) as sdk, sdk.messages.stream(model=MODEL, max_tokens=100, **fields) as stream:
        for _ in stream:
            pass
        return stream.get_final_message()


def test_text_thinking_and_usage() -> None:
    with AnthropicServer([text("Hello", " there", thinking="hm")]) as server:
        got = ask(server)
    thought, said = got.content
    assert (thought.type, thought.thinking, thought.signature) == ("thinking", "hm", "c2lnbmVk")
    assert (said.type, said.text) == ("text", "Hello there")
    assert (got.stop_reason, got.model) == ("end_turn", MODEL)
    assert (got.usage.input_tokens, got.usage.output_tokens) == (11, 5)
    (request,) = server.prompts
    assert request.path == "/v1/messages"
    assert request.json["messages"] == [{"role": "user", "content": "hi"}]


def test_tool_calls_and_what_follows() -> None:
    with AnthropicServer([tool_calls(("look", {"at": 1}), ("look", {}, "mine"), text="I look."), text("ok")]) as server:
        got = ask(server, tools=[TOOL])
        assert [part.type for part in got.content] == ["text", "tool_use", "tool_use"]
        assert [(part.id, part.input) for part in got.content[1:]] == [("toolu_1", {"at": 1}), ("mine", {})]
        assert got.stop_reason == "tool_use"
        # What the library sends back is what the validator takes.
        results = [{"type": "tool_result", "tool_use_id": part.id, "content": "x"} for part in got.content[1:]]
        history = [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [part.model_dump(exclude_none=True) for part in got.content]},
            {"role": "user", "content": results},
        ]
        assert ask(server, tools=[TOOL], messages=history).content[0].text == "ok"


def test_tools_of_the_service() -> None:
    search = block("server_tool_use", '{"query":"x"}', id="srvtoolu_1", name="web_search")
    with AnthropicServer([message(search, finish="pause_turn")]) as server:
        got = ask(server)
    assert (got.content[0].type, got.content[0].input) == ("server_tool_use", {"query": "x"})
    assert got.stop_reason == "pause_turn"


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (error(401, "bad key", type="authentication_error"), anthropic.AuthenticationError),
        (error(404, "no model", type="not_found_error"), anthropic.NotFoundError),
        (error(429, "slow down", type="rate_limit_error"), anthropic.RateLimitError),
        (error(500, "oops", type="api_error"), anthropic.InternalServerError),
        (error(400, "wrong"), anthropic.BadRequestError),
    ],
)
def test_errors(reply: Reply, kind: type[anthropic.APIStatusError]) -> None:
    said = json.loads(reply.body)["error"]["message"]
    with AnthropicServer([reply]) as server, pytest.raises(kind, match=said):
        ask(server)


def test_models() -> None:
    pages = [models({"id": "a", "max_input_tokens": 9}, has_more=True), models("b")]
    with AnthropicServer(models=pages) as server, client(server) as sdk:
        assert [(model.id, model.max_input_tokens) for model in sdk.models.list()] == [("a", 9), ("b", None)]


def test_what_is_refused() -> None:
    with AnthropicServer([text("never")]) as server:
        with pytest.raises(anthropic.BadRequestError, match="without `tool_result` blocks"):
            calls = [{"type": "tool_use", "id": "t1", "name": "look", "input": {}}]
            ask(
                server,
                tools=[TOOL],
                messages=[
                    {"role": "user", "content": "hi"},
                    {"role": "assistant", "content": calls},
                    {"role": "user", "content": "well?"},
                ],
            )
        with pytest.raises(anthropic.BadRequestError, match="greater than"):
            ask(server, thinking={"type": "enabled", "budget_tokens": 1024})
