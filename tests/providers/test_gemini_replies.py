"""What comes of an answer: blocks, how it ended, what it cost, and what is passed on meanwhile."""

from __future__ import annotations

import json
import logging
from typing import Any

import anyio
import pytest

from openheim.errors import (
    AuthError,
    BlockedError,
    ContextOverflowError,
    EmptyResponseError,
    IncompleteStreamError,
    InvalidRequestError,
    MalformedToolCallError,
    ModelNotFoundError,
    OverloadedError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitedError,
    ServerError,
)
from openheim.events import TextDelta, ThinkingDelta, ToolCallDelta
from openheim.http import HttpClient
from openheim.messages import ImageBlock, TextBlock, ThinkingBlock, ToolUseBlock, UnknownBlock, Usage
from openheim.providers import ModelInfo, ModelReply, ToolSpec
from openheim.wirenames import wire_tool_name
from tests.providers.conftest import CASES, KEY
from tests.providers.gemini import asking, assistant, call_of, result, sent, user
from tests.support.gemini_server import GeminiServer
from tests.support.gemini_wire import MODEL, error, event, events, models, text, tool_calls
from tests.support.replies import Reply, raw
from tests.support.server import Request

pytestmark = pytest.mark.anyio


async def reply_to(http: HttpClient, reply: Reply, **fields: Any) -> ModelReply:
    async with GeminiServer([reply]) as server:
        return await call_of(server.base_url, http)(asking(**fields))


async def failure_of(http: HttpClient, reply: Reply) -> ProviderError:
    async with GeminiServer([reply]) as server:
        with pytest.raises(ProviderError) as caught:
            await call_of(server.base_url, http, api_key=KEY)()
    return caught.value


# --- what was said ---


async def test_a_plain_answer(http: HttpClient) -> None:
    reply = await reply_to(http, text("Hel", "lo"))
    assert (reply.content, reply.finish, reply.model) == ((TextBlock("Hello"),), "end_turn", MODEL)
    assert reply.usage == Usage(input_tokens=11, output_tokens=5)
    assert reply.opaque is None


async def test_pieces_are_passed_on_as_they_come(http: HttpClient) -> None:
    script = tool_calls(("read_file", {"path": "größe"}), text="I look.", thinking="hm").hold(after=2)
    async with GeminiServer([script]) as server:
        made = call_of(server.base_url, http)
        seen = anyio.Event()
        deltas: list[Any] = []

        def emit(delta: Any) -> None:
            deltas.append(delta)
            if len(deltas) == 2:
                seen.set()

        async with anyio.create_task_group() as group:
            group.start_soon(made.provider.generate, asking(), emit)
            with anyio.fail_after(10):
                await seen.wait()
            assert deltas == [ThinkingDelta("hm"), TextDelta("I look.")]
            server.release()
    assert deltas[2:] == [ToolCallDelta(0, "read_file", '{"path": "größe"}')]


async def test_blocks_keep_their_order(http: HttpClient) -> None:
    code = {"executableCode": {"code": "1 + 1", "language": "PYTHON"}}
    stream = events(
        event([{"text": "let me ", "thought": True}]),
        event([{"text": "think", "thought": True, "thoughtSignature": "dGhvdWdodA=="}]),
        event([{"text": "more", "thought": True}]),
        event([{"text": "I "}, {"text": "run"}]),
        event([code, {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}}]),
        event([{"text": "so"}, {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}]),
        event([{"functionCall": {"name": "f", "args": {"n": 2}}, "thoughtSignature": "Y2FsbA=="}], "STOP"),
    )
    reply = await reply_to(http, stream)
    call = reply.content[-1]
    assert isinstance(call, ToolUseBlock)
    assert call.id
    assert reply.content == (
        ThinkingBlock("let me think", "dGhvdWdodA=="),
        ThinkingBlock("more"),
        TextBlock("I run"),
        UnknownBlock({"type": "gemini_part", "part": code}),
        UnknownBlock(
            {"type": "gemini_part", "part": {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}}}
        ),
        TextBlock("so"),
        ImageBlock("iVBORw0KGgo=", "image/png"),
        ToolUseBlock(call.id, "f", '{"n": 2}', "Y2FsbA=="),
    )


SIGNED_PARTS: list[list[dict[str, Any]]] = [
    [{"text": "a", "thoughtSignature": "YQ=="}],
    [{"text": "a"}, {"text": "b", "thoughtSignature": "Yg=="}, {"text": "c"}],
    [{"text": "a"}, {"text": "b", "thoughtSignature": "Yg=="}, {"text": "c", "thoughtSignature": "Yw=="}],
    [{"text": "", "thoughtSignature": "YQ=="}, {"text": "b"}],
    [{"text": "t", "thought": True, "thoughtSignature": "dA=="}, {"text": "", "thoughtSignature": "YQ=="}],
    [{"functionCall": {"id": "c", "name": "f", "args": {}}, "thoughtSignature": "Yw=="}],
    [
        {"functionCall": {"id": "c", "name": "f", "args": {}}, "thoughtSignature": "Yw=="},
        {"functionCall": {"id": "d", "name": "f", "args": {}}},
        {"text": "", "thoughtSignature": "YQ=="},
        {"text": "", "thoughtSignature": "Yg=="},
    ],
    [{"text": "a"}, {"functionCall": {"id": "c", "name": "f", "args": {}}, "thoughtSignature": "Yw=="}],
    [
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}, "thoughtSignature": "aQ=="},
        {"text": "a", "thoughtSignature": "YQ=="},
    ],
    [{"executableCode": {"code": "1", "language": "PYTHON"}, "thoughtSignature": "eA=="}, {"text": "a"}],
    [{"text": "größe 🙂 "}, {"text": "🙂\n", "thoughtSignature": "YQ=="}, {"text": " x"}],
]


@pytest.mark.parametrize("parts", SIGNED_PARTS)
@pytest.mark.parametrize("at_once", [True, False])
async def test_signed_parts_go_back_as_they_came(http: HttpClient, parts: list[dict[str, Any]], at_once: bool) -> None:
    sequence = [event(parts, "STOP")] if at_once else [*(event([part]) for part in parts), event(finish="STOP")]
    reply = await reply_to(http, events(*sequence))
    message = assistant(*reply.content, opaque=json.loads(json.dumps(reply.opaque)))
    answers = [result(block.id, "ok", name="f") for block in message.tool_uses]
    body = await sent(http, asking(user("go"), message, *answers, user("on")))
    assert body["contents"][1]["parts"] == parts


async def test_only_the_first_of_several_candidates_counts(http: HttpClient) -> None:
    other = event([{"text": "B"}])
    other["candidates"][0]["index"] = 1
    both = event([{"text": "a"}], "STOP")
    both["candidates"].insert(0, other["candidates"][0])
    assert (await reply_to(http, events(other, both))).content == (TextBlock("a"),)


async def test_thoughts_without_a_signature_stay_here(http: HttpClient) -> None:
    reply = await reply_to(http, text("said", thinking="hm"))
    assert reply.content == (ThinkingBlock("hm"), TextBlock("said"))
    body = await sent(http, asking(user("go"), assistant(*reply.content), user("on")))
    assert body["contents"][1]["parts"] == [{"text": "said"}]


# --- calls ---


async def test_calls(http: HttpClient) -> None:
    reply = await reply_to(http, tool_calls(("a", {"x": [1]}), ("a", {}), ("b", {}, ""), text="I look."))
    said, *blocks = reply.content
    assert said == TextBlock("I look.")
    calls = [block for block in blocks if isinstance(block, ToolUseBlock)]
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [("a", {"x": [1]}), ("a", {}), ("b", {})]
    assert [call.id for call in calls][:2] == ["call_1", "call_2"]
    assert calls[2].id.strip()
    assert [call.signature is not None for call in calls] == [True, False, False]
    assert reply.finish == "tool_use"


async def test_ids_that_are_made_up_or_repeated_differ(http: HttpClient) -> None:
    stream = tool_calls(*[("f", {}, "")] * 5, ("f", {}, "same"), ("f", {}, "same"))
    seen = {
        call.id for _ in range(2) for call in (await reply_to(http, stream)).content if isinstance(call, ToolUseBlock)
    }
    assert len(seen) == 13  # ``same`` once in each


async def test_names_of_tools_are_mapped_back(http: HttpClient) -> None:
    tool = ToolSpec("mcp.server/größe", "", {"type": "object"})
    reply = await reply_to(http, tool_calls((wire_tool_name(tool.name), {}), ("other", {})), tools=(tool,))
    assert [block.name for block in reply.content if isinstance(block, ToolUseBlock)] == [tool.name, "other"]


async def test_a_call_without_a_name(http: HttpClient) -> None:
    assert isinstance(
        await failure_of(http, events(event([{"functionCall": {"args": {}}}], "STOP"))), MalformedToolCallError
    )


# --- how it ended ---


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("STOP", "end_turn"),
        ("MAX_TOKENS", "max_tokens"),
        ("CONTINUATION", "max_tokens"),
        ("ESCALATION", "refusal"),
        *((reason, "refusal") for reason in ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII")),
        *((reason, "refusal") for reason in ("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "MODEL_ARMOR")),
        *((reason, "other") for reason in ("OTHER", "LANGUAGE", "FINISH_REASON_UNSPECIFIED", "A_NEW_ONE")),
    ],
)
async def test_how_answers_end(http: HttpClient, reason: str, finish: str) -> None:
    assert (await reply_to(http, text("x", finish=reason))).finish == finish
    without_content = await reply_to(http, events(event(finish=reason)))
    assert (without_content.content, without_content.finish) == ((), finish)


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"])
async def test_calls_that_went_wrong(http: HttpClient, reason: str) -> None:
    last = event([], reason)
    last["candidates"][0]["finishMessage"] = f"bad call: {KEY} print(1)"
    err = await failure_of(http, events(event([{"text": "so"}]), last, {"usageMetadata": {"promptTokenCount": 3}}))
    assert isinstance(err, MalformedToolCallError)
    assert err.retryable
    assert reason in err.message
    assert "print(1)" in err.message
    assert KEY not in str(err)
    assert err.partial == (TextBlock("so"),)
    assert err.usage == Usage(input_tokens=3)


@pytest.mark.parametrize(
    ("reason", "kind", "retryable"),
    [
        ("MISSING_THOUGHT_SIGNATURE", InvalidRequestError, False),
        ("MALFORMED_RESPONSE", ServerError, True),
        ("PUP_LIMITED_DISABLED", AuthError, False),
    ],
)
async def test_answers_that_went_wrong(
    http: HttpClient, reason: str, kind: type[ProviderError], retryable: bool
) -> None:
    err = await failure_of(http, events(event(finish=reason)))
    assert (type(err), err.retryable) == (kind, retryable)
    assert reason in err.message


@pytest.mark.parametrize("reason", ["SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY", "JAILBREAK"])
async def test_blocked_prompts(http: HttpClient, reason: str) -> None:
    feedback = {"blockReason": reason, "blockReasonMessage": "not that"}
    err = await failure_of(http, events({"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 5}}))
    assert isinstance(err, BlockedError)
    assert not err.retryable
    assert reason in err.message
    assert "not that" in err.message
    assert "safetySettings" in err.hint
    assert err.usage == Usage(input_tokens=5)


async def test_ratings_of_the_prompt_alone_block_nothing(http: HttpClient) -> None:
    rated = event([{"text": "x"}], "STOP", promptFeedback={"safetyRatings": []})
    assert (await reply_to(http, events(rated))).content == (TextBlock("x"),)


# --- what it cost ---


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ([{"promptTokenCount": 9}], Usage(9)),
        (
            [{"promptTokenCount": 9, "candidatesTokenCount": 2}, {"promptTokenCount": 9, "candidatesTokenCount": 7}],
            Usage(9, 7),
        ),
        ([{"promptTokenCount": 9, "cachedContentTokenCount": 4}, {"candidatesTokenCount": 3}], Usage(5, 3, 0, 4)),
        ([{"candidatesTokenCount": 3, "thoughtsTokenCount": 20}], Usage(0, 23)),
        ([{"promptTokenCount": 9, "toolUsePromptTokenCount": 5}], Usage(14)),
        ([{"promptTokenCount": 3, "cachedContentTokenCount": 9}], Usage(0, 0, 0, 9)),
        ([{"promptTokenCount": "9", "candidatesTokenCount": -1, "thoughtsTokenCount": 1.5}], None),
        ([{"promptTokenCount": 9.0, "candidatesTokenCount": -1}], Usage(9)),
    ],
)
async def test_usage(http: HttpClient, counts: list[dict[str, Any]], usage: Usage | None) -> None:
    reply = await reply_to(http, events(event([{"text": "x"}], "STOP"), *({"usageMetadata": one} for one in counts)))
    assert reply.usage == usage


async def test_no_usage(http: HttpClient) -> None:
    assert (await reply_to(http, text("x", usage=None))).usage is None


# --- streams that are not as they should be ---


@pytest.mark.parametrize(
    "odd",
    ["not json", "[1]", "null", '"x"', {"candidates": "x"}, {"candidates": [1]}, event(["x"]), {"usageMetadata": "x"}],  # type: ignore[list-item]  # what no service should send
)
async def test_what_is_not_understood_is_skipped(http: HttpClient, odd: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        reply = await reply_to(http, events(event([{"text": "a"}]), odd, event([{"text": "b"}], "STOP")))
    assert reply.content == (TextBlock("ab"),)


@pytest.mark.parametrize(
    "part", [{}, {"text": 1}, {"thought": True}, {"text": ""}, {"functionCall": "x"}, {"text": None}]
)
async def test_odd_parts(http: HttpClient, part: dict[str, Any]) -> None:
    reply = await reply_to(http, events(event([{"text": "a"}, part]), event([{"text": "b"}], "STOP")))
    assert "".join(block.text for block in reply.content if isinstance(block, TextBlock)) == "ab"


@pytest.mark.parametrize("score", ["NaN", "1e999", "[" * 150 + "]" * 150])
async def test_a_part_that_cannot_be_kept_is_left_out(http: HttpClient, score: str) -> None:
    odd = json.dumps(event([{"codeExecutionResult": {"score": "?"}}])).replace('"?"', score)
    reply = await reply_to(http, events(event([{"text": "a"}]), odd, event([{"text": "b"}], "STOP")))
    assert reply.content == (TextBlock("ab"),)


def failed(code: int, word: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": "m", "status": word}}


def as_list(*payloads: dict[str, Any]) -> Reply:
    return raw(json.dumps(payloads), content_type="application/json")


async def test_an_answer_in_one_piece(http: HttpClient) -> None:
    pieces = [event([{"text": "a"}]), event([{"text": "b"}], "STOP"), {"usageMetadata": {"promptTokenCount": 3}}]
    for body in (pieces, event([{"text": "ab"}], "STOP")):
        reply = await reply_to(http, raw(json.dumps(body), content_type="application/json"))
        assert reply.content == (TextBlock("ab"),)


@pytest.mark.parametrize(
    ("reply", "kind", "retryable"),
    [
        (events(event([{"text": "a"}])), IncompleteStreamError, True),
        (events(event([])), IncompleteStreamError, True),
        (raw(""), EmptyResponseError, True),
        (text("a").ending("reset"), None, None),
        (
            events(event([{"text": "a"}]), {"error": {"code": 503, "message": "m", "status": "UNAVAILABLE"}}),
            OverloadedError,
            True,
        ),
        (events({"error": {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED"}}), RateLimitedError, True),
        (
            raw(
                json.dumps([{"error": {"code": 400, "message": "m", "status": "INVALID_ARGUMENT"}}]),
                content_type="application/json",
            ),
            InvalidRequestError,
            False,
        ),
        (
            error(400, "API key not valid. Please pass a valid API key.", details=[{"reason": "API_KEY_INVALID"}]),
            AuthError,
            False,
        ),
        (error(403, "denied", word="PERMISSION_DENIED"), AuthError, False),
        (error(404, "models/m is not found", word="NOT_FOUND"), ModelNotFoundError, False),
        (error(429, "quota", word="RESOURCE_EXHAUSTED"), RateLimitedError, True),
        (error(500, "internal", word="INTERNAL"), ServerError, True),
        (error(503, "overloaded", word="UNAVAILABLE"), OverloadedError, True),
        (error(504, "late", word="DEADLINE_EXCEEDED"), ProviderTimeoutError, True),
        (raw("<html>sign in</html>", content_type="text/html"), ServerError, False),
    ],
)
async def test_failures(
    http: HttpClient, reply: Reply, kind: type[ProviderError] | None, retryable: bool | None
) -> None:
    if kind is None:
        # The connection broke after the reply was complete, which does not matter.
        assert (await reply_to(http, reply)).content == (TextBlock("a"),)
        return
    err = await failure_of(http, reply)
    assert (type(err), err.retryable) == (kind, retryable)
    assert KEY not in str(err)


async def test_what_had_arrived_is_not_lost(http: HttpClient) -> None:
    cut = events(event([{"text": "hm", "thought": True}]), event([{"text": "sa"}, {"text": "id"}]))
    err = await failure_of(http, cut)
    assert err.partial == (ThinkingBlock("hm"), TextBlock("said"))


async def test_the_wait_that_the_service_asks_for(http: HttpClient) -> None:
    delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7.5s"}
    err = await failure_of(http, error(429, "slow down", word="RESOURCE_EXHAUSTED", details=[delay]))
    assert err.retry_after_secs == 7.5


ERROR_ROWS = [
    pytest.param(row, id=f"{case['case']}-{number}-{row['status']}")
    for path in sorted((CASES / "errors").glob("*.json"))
    for case in [json.loads(path.read_text(encoding="utf-8"))]
    for number, row in enumerate(case["rows"])
    if row["wire"] == "gemini"
]


@pytest.mark.parametrize("row", ERROR_ROWS)
async def test_error_case(http: HttpClient, row: dict[str, Any]) -> None:
    err = await failure_of(http, raw(row["body"], status=row["status"], headers=row["headers"]))
    assert (err.kind, err.retryable) == (row["expect"]["error_kind"], row["expect"]["retry"])


async def test_too_long_a_request_is_told_as_such(http: HttpClient) -> None:
    said = "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576)."
    assert isinstance(await failure_of(http, error(400, said)), ContextOverflowError)


async def test_the_key_is_never_told(http: HttpClient) -> None:
    async with GeminiServer([error(400, f"no luck with {KEY}"), raw("").ending("reset")]) as server:
        made = call_of(server.base_url, http, api_key=KEY)
        for _ in range(2):
            with pytest.raises(ProviderError) as caught:
                await made()
            assert KEY not in str(caught.value)
            assert KEY not in repr(caught.value)
        assert all(KEY not in request.path for request in server.requests)
    with pytest.raises(ProviderError) as caught:
        await call_of("http://127.0.0.1:9/v1beta", http, api_key=KEY)()
    assert KEY not in str(caught.value)


async def test_a_gap_ends_the_call_and_a_drip_does_not(http: HttpClient) -> None:
    drip = text(*"dripping").slow(0.1)
    async with GeminiServer([drip, text("a").hold(after=0)]) as server:
        made = call_of(server.base_url, http, timeout_secs=0.5)
        assert (await made(asking())).content == (TextBlock("dripping"),)
        with pytest.raises(ProviderTimeoutError):
            await made()


@pytest.mark.parametrize("after", [0, 1])
async def test_cancelling_closes_the_connection(http: HttpClient, after: int) -> None:
    async with GeminiServer([text("a", "b").hold(after=after)]) as server:
        async with anyio.create_task_group() as group:
            group.start_soon(call_of(server.base_url, http), asking())
            (request,) = await server.arrived(1)
            group.cancel_scope.cancel()
        await request.left()


# --- models ---


async def test_models(http: HttpClient) -> None:
    def page(request: Request) -> Reply:
        assert request.headers["x-goog-api-key"] == KEY
        assert KEY not in request.path
        if "pageToken" not in request.path:
            return models("b", "text-embedding", next_page="a/b=")
        assert request.path.endswith("&pageToken=a%2Fb%3D")
        return models("a")

    async with GeminiServer(models=page) as server:
        provider: Any = call_of(server.base_url, http, api_key=KEY).provider
        assert await provider.models() == [ModelInfo("a", 1_048_576, 65_536), ModelInfo("b", 1_048_576, 65_536)]
        assert len(server.requests) == 2


async def test_pages_of_models_have_an_end(http: HttpClient) -> None:
    async with GeminiServer(models=lambda request: models("a", next_page="again")) as server:
        provider: Any = call_of(server.base_url, http).provider
        assert [info.id for info in await provider.models()] == ["a"]
        assert len(server.requests) == 20


async def test_a_document_that_is_too_long(http: HttpClient) -> None:
    reply = raw(b" " * (17 * 2**20), content_type="application/json")
    async with GeminiServer(models=lambda request: reply) as server:
        provider: Any = call_of(server.base_url, http).provider
        with pytest.raises(ServerError, match="more than 16 MiB") as caught:
            await provider.models()
    assert not caught.value.retryable


@pytest.mark.parametrize("reply", [error(403, "denied"), raw("[]", content_type="application/json"), raw("<html>")])
async def test_no_models(http: HttpClient, reply: Reply) -> None:
    async with GeminiServer(models=lambda request: reply) as server:
        provider: Any = call_of(server.base_url, http).provider
        with pytest.raises(ProviderError):
            await provider.models()


async def test_models_that_say_little(http: HttpClient) -> None:
    listed = [{"name": "models/a"}, {"name": 1}, 2, {"name": "models/b", "inputTokenLimit": "x"}]
    reply = raw(json.dumps({"models": listed}), content_type="application/json")
    async with GeminiServer(models=lambda request: reply) as server:
        provider: Any = call_of(server.base_url, http).provider
        assert await provider.models() == [ModelInfo("a"), ModelInfo("b")]
