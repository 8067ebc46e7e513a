"""The first-party plugins pass the same suites that others are asked to pass."""

from __future__ import annotations

import json
from importlib.metadata import entry_points

from openheim.messages import Usage
from openheim.plugins.first_party import FIRST_PARTY_DISTRIBUTIONS
from openheim.testing import HttpAnswer, ProviderContract, ToolsetContract


def chat_stream(*deltas: dict[str, object], finish: str) -> HttpAnswer:
    """A reply on the Chat Completions wire."""
    chunks: list[dict[str, object]] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    chunks.append({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}})
    lines = [json.dumps({"id": "chat-1", "model": "gpt", **chunk}) for chunk in chunks]
    return HttpAnswer.of("".join(f"data: {line}\n\n" for line in (*lines, "[DONE]")))


def call_delta(**function: str) -> dict[str, object]:
    return {"tool_calls": [{"index": 0, "id": "call-1", "type": "function", "function": function}]}


def refused(status: int, message: str, *, code: str) -> HttpAnswer:
    body = json.dumps({"error": {"message": message, "type": "error", "param": None, "code": code}})
    return HttpAnswer.of(body, status=status, content_type="application/json")


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


def test_every_installed_one_has_a_suite() -> None:
    tested = {("openheim.providers", suite.name) for suite in (TestOpenAI, TestOpenAICompatible, TestDemo)}
    tested.add(("openheim.tools", "fs"))
    installed = {
        (point.group, point.name)
        for group in ("openheim.providers", "openheim.tools")
        for point in entry_points(group=group)
        if point.dist is not None and point.dist.name in FIRST_PARTY_DISTRIBUTIONS
    }
    assert not installed - tested
