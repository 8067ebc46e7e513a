"""The first-party plugins pass the same suites that others are asked to pass."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import entry_points

import pytest

from openheim.messages import Usage
from openheim.plugins.first_party import FIRST_PARTY_DISTRIBUTIONS
from openheim.testing import EmbedderContract, HttpAnswer, ProviderContract, ToolsetContract
from tests.support.replies import raw
from tests.support.server import ScriptedServer


def chat_stream(*deltas: dict[str, object], finish: str) -> HttpAnswer:
    """A reply on the Chat Completions wire."""
    chunks: list[dict[str, object]] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    chunks.append({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}})
    lines = [json.dumps({"id": "chat-1", "model": "gpt", **chunk}) for chunk in chunks]
    return HttpAnswer.of("".join(f"data: {line}\n\n" for line in (*lines, "[DONE]")))


def call_delta(**function: str) -> dict[str, object]:
    return {"tool_calls": [{"index": 0, "id": "call-1", "type": "function", "function": function}]}


def refused(http_status: int, message: str, **fields: object) -> HttpAnswer:
    body = json.dumps({"error": {"message": message, **fields}})
    return HttpAnswer.of(body, status=http_status, content_type="application/json")


def told(payload: dict[str, object], event: str = "") -> HttpAnswer:
    """A stream of one event."""
    name = f"event: {event}\n" if event else ""
    return HttpAnswer.of(f"{name}data: {json.dumps(payload)}\n\n")


class TestOpenAI(ProviderContract):
    plugin = "openheim_provider_openai.plugin"
    name = "openai"
    answer = chat_stream({"role": "assistant", "content": "Hel"}, {"content": "lo"}, finish="stop")
    tool_answer = chat_stream(
        {"role": "assistant", "content": "I look."},
        call_delta(name="list_dir", arguments=""),
        call_delta(arguments='{"path": '),
        call_delta(arguments='"."}'),
        finish="tool_calls",
    )
    reports_usage = True
    usage = Usage(5, 2)
    errors = {  # noqa: RUF012  read only
        "context_overflow": refused(
            400, "This model's maximum context length is 8 tokens", code="context_length_exceeded"
        ),
        "billing": refused(429, "You exceeded your current quota", code="insufficient_quota"),
        "rate_limit": HttpAnswer.of('data: {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}\n\n'),
        "server_error": HttpAnswer.of('data: {"error": {"message": "it failed"}}\n\n'),
        "blocked": refused(400, "filtered", code="content_filter"),
        "not_found": refused(404, "no such model", code="model_not_found"),
        "auth": refused(401, "Incorrect API key provided", code="invalid_api_key"),
        "empty_response": HttpAnswer.of("data: [DONE]\n\n"),
    }


class TestOpenAICompatible(TestOpenAI):
    name = "openai_compatible"
    api_base = "http://127.0.0.1:8080/v1"
    model = "qwen3"


def gemini_stream(*parts: dict[str, object]) -> HttpAnswer:
    """A reply on the wire of Gemini, a part an event."""
    events: list[dict[str, object]] = [{"content": {"role": "model", "parts": [part]}, "index": 0} for part in parts]
    events[-1]["finishReason"] = "STOP"
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7}
    lines = [json.dumps({"candidates": [event], "usageMetadata": usage, "modelVersion": "m"}) for event in events]
    return HttpAnswer.of("".join(f"data: {line}\r\n\r\n" for line in lines))


class TestGemini(ProviderContract):
    plugin = "openheim_provider_gemini.plugin"
    name = "gemini"
    answer = gemini_stream({"text": "Who asks?", "thought": True}, {"text": "Hel"}, {"text": "lo"})
    tool_answer = gemini_stream(
        {"text": "I look."},
        {"functionCall": {"name": "list_dir", "args": {"path": "."}, "id": "c1"}, "thoughtSignature": "c2ln"},
    )
    reports_usage = True
    usage = Usage(5, 2)
    errors = {  # noqa: RUF012  read only
        "auth": refused(
            400,
            "API key not valid. Please pass a valid API key.",
            code=400,
            status="INVALID_ARGUMENT",
            details=[{"reason": "API_KEY_INVALID"}],
        ),
        "context_overflow": refused(
            400,
            "The input token count (9) exceeds the maximum number of tokens allowed (8).",
            status="INVALID_ARGUMENT",
        ),
        "rate_limit": refused(429, "Resource has been exhausted", code=429, status="RESOURCE_EXHAUSTED"),
        "overloaded": told({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}),
        "blocked": told({"promptFeedback": {"blockReason": "SAFETY"}}),
        "malformed_tool_call": told({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "index": 0}]}),
    }


def messages_stream(*blocks: list[dict[str, object]], finish: str) -> HttpAnswer:
    """A reply on the Messages wire."""
    usage = {"input_tokens": 5, "output_tokens": 1}
    events: list[dict[str, object]] = [{"type": "message_start", "message": {"model": "claude", "usage": usage}}]
    for index, block in enumerate(blocks):
        events += ({**event, "index": index} for event in block)
    events.append({"type": "message_delta", "delta": {"stop_reason": finish}, "usage": {"output_tokens": 2}})
    events.append({"type": "message_stop"})
    return HttpAnswer.of("".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events))


def content_block(start: dict[str, object], *deltas: dict[str, object]) -> list[dict[str, object]]:
    return [
        {"type": "content_block_start", "content_block": start},
        *({"type": "content_block_delta", "delta": delta} for delta in deltas),
        {"type": "content_block_stop"},
    ]


class TestAnthropic(ProviderContract):
    plugin = "openheim_provider_anthropic.plugin"
    name = "anthropic"
    answer = messages_stream(
        content_block(
            {"type": "thinking", "thinking": ""},
            {"type": "thinking_delta", "thinking": "They greet."},
            {"type": "signature_delta", "signature": "c2ln"},
        ),
        content_block(
            {"type": "text", "text": ""}, {"type": "text_delta", "text": "Hel"}, {"type": "text_delta", "text": "lo"}
        ),
        finish="end_turn",
    )
    tool_answer = messages_stream(
        content_block({"type": "text", "text": ""}, {"type": "text_delta", "text": "I look."}),
        content_block(
            {"type": "tool_use", "id": "toolu_1", "name": "list_dir", "input": {}},
            {"type": "input_json_delta", "partial_json": '{"path": '},
            {"type": "input_json_delta", "partial_json": '"."}'},
        ),
        finish="tool_use",
    )
    reports_usage = True
    usage = Usage(5, 2)
    errors = {  # noqa: RUF012  read only
        "context_overflow": refused(400, "prompt is too long: 9 tokens > 8 maximum", type="invalid_request_error"),
        "billing": refused(400, "Your credit balance is too low to access the API.", type="invalid_request_error"),
        "rate_limit": told({"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}, "error"),
        "overloaded": told({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, "error"),
        "server_error": told({"type": "error", "error": {"type": "api_error", "message": "it failed"}}, "error"),
        "auth": refused(401, "invalid x-api-key", type="authentication_error"),
        "not_found": refused(404, "model: claude-nothing", type="not_found_error"),
    }


def responses_stream(*items: dict[str, object], deltas: dict[int, list[str]]) -> HttpAnswer:
    """A reply on the Responses wire: items, and the pieces in which each came."""
    events: list[dict[str, object]] = [{"type": "response.created", "response": {"model": "gpt"}}]
    for index, item in enumerate(items):
        kind = "function_call_arguments" if item["type"] == "function_call" else "output_text"
        events.append({"type": "response.output_item.added", "output_index": index, "item": item | {"arguments": ""}})
        events += (
            {"type": f"response.{kind}.delta", "output_index": index, "content_index": 0, "delta": piece}
            for piece in deltas.get(index, ())
        )
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    events.append({"type": "response.completed", "response": {"status": "completed", "usage": usage}})
    return HttpAnswer.of("".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events))


def failed_response(code: str) -> HttpAnswer:
    error = {"code": code, "message": "it failed"}
    return told({"type": "response.failed", "response": {"status": "failed", "error": error}}, "response.failed")


def text_item(text: str) -> dict[str, object]:
    return {"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": text}]}


THOUGHT: dict[str, object] = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "hm"}],
    "encrypted_content": "c2VjcmV0",
}


class TestOpenAIResponses(ProviderContract):
    plugin = "openheim_provider_openai.plugin"
    name = "openai"
    options = {"wire": "responses"}  # noqa: RUF012  read only
    answer = responses_stream(THOUGHT, text_item("Hello"), deltas={1: ["Hel", "lo"]})
    tool_answer = responses_stream(
        THOUGHT,
        text_item("I look."),
        {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "list_dir", "arguments": '{"path": "."}'},
        deltas={1: ["I look."], 2: ['{"path": ', '"."}']},
    )
    reports_usage = True
    usage = Usage(5, 2)
    errors = {  # noqa: RUF012  read only
        "rate_limit": told({"type": "error", "code": "rate_limit_exceeded", "message": "slow down"}, "error"),
        "server_error": failed_response("server_error"),
        "context_overflow": failed_response("context_length_exceeded"),
    }


class TestDemo(ProviderContract):
    plugin = "openheim_provider_demo.plugin"
    name = "demo"
    tool_prompt = "What is in this directory?"
    reports_usage = True


class TestFiles(ToolsetContract):
    plugin = "openheim_tools_fs.plugin"
    sample_calls = {  # noqa: RUF012  read only
        "edit_file": {"path": "README.md", "old_string": "folder", "new_string": "place"},
        "list_dir": {},
        "read_file": {"path": "README.md"},
        "search": {"pattern": "folder"},
        "write_file": {"path": "deep/er/notes.txt", "content": "tea"},
    }


class TestWeb(ToolsetContract):
    plugin = "openheim_tools_web.plugin"
    settings = {"allow_private": ["127.0.0.1"]}  # noqa: RUF012  read only

    @pytest.fixture
    def samples(self) -> Iterator[dict[str, dict[str, str]]]:
        with ScriptedServer(default=raw("<p>hello</p>", content_type="text/html")) as server:
            yield {"web_fetch": {"url": server.url}}


class TestShell(ToolsetContract):
    plugin = "openheim_tools_shell.plugin"
    allow_shell = True
    sample_calls = {  # noqa: RUF012  read only
        "execute_command": {"command": "cat README.md"},
        # Both take a job, and there is none.
        "job_kill": None,
        "job_output": None,
    }


class TestOpenAIEmbedder(EmbedderContract):
    plugin = "openheim_provider_openai.plugin"
    name = "openai"
    most_texts = 2048
    errors = {  # noqa: RUF012  read only
        "billing": refused(429, "You exceeded your current quota", code="insufficient_quota"),
        "auth": refused(401, "Incorrect API key provided", code="invalid_api_key"),
    }

    def texts_in(self, content: bytes) -> list[str]:
        texts: list[str] = json.loads(content)["input"]
        return texts

    def answer_with(self, vectors: list[list[float]]) -> HttpAnswer:
        data = [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]
        return HttpAnswer.of(json.dumps({"object": "list", "data": data}), content_type="application/json")


class TestOpenAICompatibleEmbedder(TestOpenAIEmbedder):
    name = "openai_compatible"
    api_base = "http://127.0.0.1:8080/v1"


class TestGeminiEmbedder(EmbedderContract):
    plugin = "openheim_provider_gemini.plugin"
    name = "gemini"
    most_texts = 100
    errors = {  # noqa: RUF012  read only
        "rate_limit": refused(429, "Resource has been exhausted", code=429, status="RESOURCE_EXHAUSTED"),
        "auth": refused(400, "API key not valid.", status="INVALID_ARGUMENT", details=[{"reason": "API_KEY_INVALID"}]),
    }

    def texts_in(self, content: bytes) -> list[str]:
        return [request["content"]["parts"][0]["text"] for request in json.loads(content)["requests"]]

    def answer_with(self, vectors: list[list[float]]) -> HttpAnswer:
        embeddings = [{"values": vector} for vector in vectors]
        return HttpAnswer.of(json.dumps({"embeddings": embeddings}), content_type="application/json")


EMBEDDERS = (TestOpenAIEmbedder, TestOpenAICompatibleEmbedder, TestGeminiEmbedder)
SUITES = (TestOpenAI, TestOpenAIResponses, TestOpenAICompatible, TestAnthropic, TestGemini, TestDemo)


def first_party(group: str) -> dict[str, str]:
    """The installed plugins of a group by name, with what stands at their entry points."""
    return {
        point.name: point.value
        for point in entry_points(group=group)
        if point.dist is not None and point.dist.name in FIRST_PARTY_DISTRIBUTIONS
    }


def test_every_installed_provider_and_embedder_has_a_suite() -> None:
    assert not set(first_party("openheim.providers")) - {suite.name for suite in SUITES}
    assert not set(first_party("openheim.embeddings")) - {suite.name for suite in EMBEDDERS}


# A toolset that nobody has written sample calls for is tested without.
_named = {
    suite.plugin for suite in vars().copy().values() if isinstance(suite, type) and hasattr(suite, "sample_calls")
}
for _name, _plugin in first_party("openheim.tools").items():
    if _plugin not in _named:
        vars()[f"TestToolset{_name.title()}"] = type(
            f"TestToolset{_name.title()}", (ToolsetContract,), {"__module__": __name__, "plugin": _plugin}
        )
