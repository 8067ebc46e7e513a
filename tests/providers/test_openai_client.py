"""The scripted server against the official client library: what it plays is the wire that others speak too."""

from __future__ import annotations

import base64
import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.support import responses_wire
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import MODEL, embeddings, error, text, tool_calls
from tests.support.replies import Reply
from tests.support.responses_wire import failed, message, reasoning, reply

CHECKOUT = Path(__file__).resolve().parent.parent.parent


def client(base_url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=base_url, api_key="none", max_retries=0)


def stream(base_url: str) -> list[Any]:
    with client(base_url) as sdk:
        return list(
            sdk.chat.completions.create(
                model=MODEL,
                messages=[{"role": "user", "content": "hi"}],
                stream=True,
                stream_options={"include_usage": True},
            )
        )


def test_text_and_usage() -> None:
    with OpenAIServer([text("Hello", " there")]) as server:
        chunks = stream(server.base_url)
    assert [chunk.choices[0].delta.content for chunk in chunks if chunk.choices] == ["", "Hello", " there", None]
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert (chunks[-1].usage.prompt_tokens, chunks[-1].usage.completion_tokens) == (11, 5)
    assert {chunk.model for chunk in chunks} == {MODEL}
    (request,) = server.prompts
    assert request.path == "/v1/chat/completions"
    assert request.json["messages"] == [{"role": "user", "content": "hi"}]


def test_tool_calls() -> None:
    with OpenAIServer([tool_calls(("read_file", {"path": "a"}), ("search", {"pattern": "b"}, "mine"))]) as server:
        chunks = stream(server.base_url)
    calls: dict[int, list[str]] = {}
    for chunk in chunks:
        for call in chunk.choices[0].delta.tool_calls or () if chunk.choices else ():
            if call.id:
                calls[call.index] = [call.id, call.function.name, ""]
            calls[call.index][2] += call.function.arguments or ""
    assert calls == {0: ["call_1", "read_file", '{"path": "a"}'], 1: ["mine", "search", '{"pattern": "b"}']}
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "tool_calls"


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (error(401, "bad key"), openai.AuthenticationError),
        (error(404, "no model"), openai.NotFoundError),
        (error(429, "slow down"), openai.RateLimitError),
        (error(500, "oops"), openai.InternalServerError),
        (error(400, "wrong", code="invalid_value"), openai.BadRequestError),
    ],
)
def test_errors(reply: Reply, kind: type[openai.APIStatusError]) -> None:
    message = json.loads(reply.body)["error"]["message"]
    with OpenAIServer([reply]) as server, pytest.raises(kind, match=message):
        stream(server.base_url)


def test_responses() -> None:
    items = [reasoning("hm", "so", encrypted="c2VjcmV0"), message("Hel", "lo", phase="commentary")]
    answer = reply(
        *items, responses_wire.call("look", {"at": 1}), message("no", id="msg_2", refusal=True), usage=(11, 5, 4)
    )
    with OpenAIServer([answer]) as server, client(server.base_url) as sdk:
        with sdk.responses.stream(model=MODEL, input="hi", store=False) as events:
            kinds = [event.type for event in events]
            final = events.get_final_response()
        (request,) = server.prompts
    assert request.path == "/v1/responses"
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
    thought, said, called, refused = [item.model_dump(exclude_none=True) for item in final.output]
    assert thought["encrypted_content"] == "c2VjcmV0"
    assert [part["text"] for part in thought["summary"]] == ["hm", "so"]
    assert (said["phase"], said["content"][0]["text"]) == ("commentary", "Hello")
    assert (called["call_id"], called["name"], json.loads(called["arguments"])) == ("call_1", "look", {"at": 1})
    assert refused["content"][0]["refusal"] == "no"
    assert final.usage is not None
    assert (final.usage.input_tokens, final.usage.input_tokens_details.cached_tokens) == (11, 4)


def test_responses_that_fail_or_are_incomplete() -> None:
    cut = reply(message("half"), status="incomplete", reason="max_output_tokens")
    with OpenAIServer([failed("rate_limit_exceeded", "slow down"), cut]) as server, client(server.base_url) as sdk:
        *_, bad = sdk.responses.create(model=MODEL, input="hi", stream=True)
        *_, half = sdk.responses.create(model=MODEL, input="hi", stream=True)
    assert bad.type == "response.failed" and bad.response.error is not None
    assert (bad.response.error.code, bad.response.error.message) == ("rate_limit_exceeded", "slow down")
    assert half.type == "response.incomplete" and half.response.incomplete_details is not None
    assert half.response.incomplete_details.reason == "max_output_tokens"


@pytest.mark.parametrize("as_text", [False, True])
def test_embeddings(as_text: bool) -> None:
    with OpenAIServer([embeddings([0.5, 1.0], [0.25, -2.0], as_text=as_text)]) as server:
        with client(server.base_url) as sdk:
            made = sdk.embeddings.create(
                model=MODEL, input=["a", "b"], encoding_format="base64" if as_text else "float"
            )
        (request,) = server.prompts
    assert request.path == "/v1/embeddings"
    vectors = [entry.embedding for entry in made.data]
    if as_text:
        assert [struct.unpack("<2f", base64.b64decode(str(vector))) for vector in vectors] == [(0.5, 1.0), (0.25, -2.0)]
    else:
        assert vectors == [[0.5, 1.0], [0.25, -2.0]]


def test_models() -> None:
    with OpenAIServer(models=["a", "b"]) as server, client(server.base_url) as sdk:
        assert [model.id for model in sdk.models.list()] == ["a", "b"]


def test_a_script_that_is_used_up_says_so() -> None:
    with OpenAIServer([text("once")]) as server:
        stream(server.base_url)
        with pytest.raises(openai.BadRequestError, match="no reply for request 2"):
            stream(server.base_url)


def test_as_a_process(tmp_path: Path) -> None:
    script, log = tmp_path / "script.json", tmp_path / "requests.jsonl"
    replies = [
        {"text": ["a", "b"], "split": "every-byte", "usage": [7, 3]},
        {"tool_calls": [{"name": "look", "arguments": {"at": 1}, "id": "x"}], "delay_secs": 0.01},
        {"error": {"status": 429, "message": "slow down", "headers": {"retry-after": "3"}}},
    ]
    script.write_text(json.dumps(replies))
    command = [sys.executable, "-m", "tests.support.openai_server", str(script), "--requests", str(log)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT) as process:
        assert process.stdout is not None and process.stdin is not None
        base_url = process.stdout.readline().strip()
        chunks = stream(base_url)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "ab"
        assert chunks[-1].usage.prompt_tokens == 7
        calls = [
            call for chunk in stream(base_url) if chunk.choices for call in chunk.choices[0].delta.tool_calls or ()
        ]
        assert (calls[0].id, calls[0].function.name) == ("x", "look")
        with pytest.raises(openai.RateLimitError) as caught:
            stream(base_url)
        assert caught.value.response.headers["retry-after"] == "3"
        process.stdin.close()
        assert process.wait(20) == 0
    requests = [json.loads(line) for line in log.read_text().splitlines()]
    assert [request["body"]["model"] for request in requests] == [MODEL] * 3
