"""What comes of an answer: blocks, how it ended, what it cost, and what is passed on meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from openheim.errors import (
    AuthError,
    ContextOverflowError,
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
from openheim.messages import (
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    UnknownBlock,
    Usage,
)
from openheim.providers import ModelInfo, ModelReply, ProviderSettings
from openheim.sse import SSEEvent
from openheim.wirenames import ToolNames
from openheim_provider_anthropic.assemble import MessagesAssembler
from tests.providers.conftest import CASES, KEY, Call, user_says
from tests.support.anthropic_server import AnthropicServer
from tests.support.anthropic_wire import MODEL, block, error, events, message, models, text, tool_calls
from tests.support.replies import Reply, raw

pytestmark = pytest.mark.anyio

MakeCall = Callable[..., Call]


async def reply_to(make_call: MakeCall, reply: Reply) -> ModelReply:
    async with AnthropicServer([reply]) as server:
        return await make_call(server.base_url, "anthropic")()


async def failure_of(make_call: MakeCall, reply: Reply, **fields: Any) -> ProviderError:
    async with AnthropicServer([reply]) as server:
        with pytest.raises(ProviderError) as caught:
            await make_call(server.base_url, "anthropic", **fields)()
    return caught.value


# --- blocks ---


async def test_a_plain_answer(make_call: MakeCall) -> None:
    async with AnthropicServer([text("Hello", " there", thinking="hm")]) as server:
        call = make_call(server.base_url, "anthropic")
        reply = await call()
    thought = ThinkingBlock("hm", "c2lnbmVk")
    assert reply == ModelReply((thought, TextBlock("Hello there")), "end_turn", Usage(11, 5), MODEL)
    assert call.deltas == [ThinkingDelta("hm"), TextDelta("Hello"), TextDelta(" there")]


async def test_a_call_is_passed_on_as_it_comes(make_call: MakeCall) -> None:
    async with AnthropicServer([tool_calls(("look", {"at": 1}), ("look", {}), text="I look.")]) as server:
        call = make_call(server.base_url, "anthropic")
        reply = await call()
    assert reply.finish == "tool_use"
    assert reply.content == (
        TextBlock("I look."),
        ToolUseBlock("toolu_1", "look", '{"at": 1}'),
        ToolUseBlock("toolu_2", "look", "{}"),
    )
    calls = [delta for delta in call.deltas if isinstance(delta, ToolCallDelta)]
    assert [delta.index for delta in calls] == [0, 0, 0, 1, 1, 1]
    assert "".join(delta.arguments for delta in calls if delta.index == 0) == '{"at": 1}'
    assert {delta.name for delta in calls} == {"look"}


async def test_pieces_are_passed_on_at_once(make_call: MakeCall) -> None:
    # The pieces of this reply: start, ping, start of the block, and its first delta.
    async with AnthropicServer([text("one", "two").hold(after=4)]) as server:
        call = make_call(server.base_url, "anthropic")
        first = anyio.Event()

        def emit(delta: Any) -> None:
            call.deltas.append(delta)
            first.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call.provider.generate, user_says("hi"), emit)
            with anyio.fail_after(10):
                await first.wait()
            assert call.text == "one"
            server.release()
    assert call.text == "onetwo"


async def test_blocks_stay_apart_and_in_order(make_call: MakeCall) -> None:
    reply = await reply_to(
        make_call,
        message(
            block("thinking", "a", signature="s1"),
            block("thinking", signature="s2"),
            block("redacted_thinking", data="eA=="),
            block("text", "b"),
            block("text", "c"),
            block("thinking", "d", signature="s3"),
            block("tool_use", "{}", id="t1", name="look"),
            block("text", "e"),
            finish="tool_use",
        ),
    )
    assert reply.content == (
        ThinkingBlock("a", "s1"),
        ThinkingBlock("", "s2"),
        RedactedThinkingBlock("eA=="),
        TextBlock("b"),
        TextBlock("c"),
        ThinkingBlock("d", "s3"),
        ToolUseBlock("t1", "look", "{}"),
        TextBlock("e"),
    )


async def test_signatures_in_pieces_and_at_the_start(make_call: MakeCall) -> None:
    events_ = block("thinking", "hm", signature="part one,")
    events_.insert(-1, {"type": "content_block_delta", "delta": {"type": "signature_delta", "signature": "part two"}})
    whole = [
        {"type": "content_block_start", "content_block": {"type": "thinking", "thinking": "a", "signature": "b"}},
        {"type": "content_block_stop"},
    ]
    reply = await reply_to(make_call, message(events_, whole, block("text", "x")))
    assert reply.content[:2] == (ThinkingBlock("hm", "part one,part two"), ThinkingBlock("a", "b"))


async def test_tools_of_the_service_are_kept_as_they_come(make_call: MakeCall) -> None:
    found = {
        "tool_use_id": "s1",
        "content": [{"type": "web_search_result", "encrypted_content": "e", "page_age": None}],
    }
    reply = await reply_to(
        make_call,
        message(
            block("server_tool_use", '{"query": ', '"x"}', id="s1", name="web_search"),
            block("web_search_tool_result", **found),
            block("server_tool_use", '{"cut', id="s2", name="web_search"),
            block("text", "y"),
        ),
    )
    search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
    assert reply.content[:2] == (UnknownBlock(search), UnknownBlock({"type": "web_search_tool_result", **found}))
    assert reply.finish == "end_turn"


async def test_a_cut_call_has_no_arguments_yet(make_call: MakeCall) -> None:
    reply = await reply_to(
        make_call,
        message(
            block("tool_use", "", id="t1", name="look"), block("tool_use", id="t2", name="look"), finish="max_tokens"
        ),
    )
    assert reply.content == (ToolUseBlock("t1", "look", "{}"), ToolUseBlock("t2", "look", ""))
    assert reply.finish == "max_tokens"


async def test_characters_that_two_pieces_share(make_call: MakeCall) -> None:
    halves = ("a\ud83e", "\uddeab")
    reply = await reply_to(
        make_call,
        message(
            block("thinking", *halves),
            block("text", *halves),
            block("tool_use", '{"a": "\ud83e', '\uddea"}', id="t", name="look"),
            finish="tool_use",
        ),
    )
    thought, said, called = reply.content
    assert (thought, said) == (ThinkingBlock("a🧪b", "c2lnbmVk"), TextBlock("a🧪b"))
    assert isinstance(called, ToolUseBlock)
    assert called.arguments == '{"a": "🧪"}'


async def test_a_reply_in_one_document(make_call: MakeCall) -> None:
    document = {
        "type": "message",
        "model": MODEL,
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "Look:"},
            {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "ü"}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }
    reply = await reply_to(make_call, raw(json.dumps(document), content_type="application/json"))
    call = ToolUseBlock("t1", "look", '{"at": "ü"}')
    assert reply.content == (ThinkingBlock("hm", "s"), TextBlock("Look:"), call)
    assert (reply.finish, reply.usage) == ("tool_use", Usage(3, 4))


@pytest.mark.parametrize(
    ("said", "finish"),
    [
        ("end_turn", "end_turn"),
        ("stop_sequence", "end_turn"),
        ("tool_use", "end_turn"),  # without a call
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
        ("refusal", "refusal"),
        ("pause_turn", "paused"),
        ("new", "other"),
    ],
)
async def test_how_it_ended(make_call: MakeCall, said: str, finish: str) -> None:
    assert (await reply_to(make_call, text("x", finish=said))).finish == finish


async def test_calls_end_a_reply_whatever_it_says(make_call: MakeCall) -> None:
    assert (await reply_to(make_call, tool_calls(("look", {}), finish="end_turn"))).finish == "tool_use"


async def test_a_refusal_without_a_word_says_why(make_call: MakeCall) -> None:
    details = {"stop_details": {"type": "refusal", "category": "bio", "explanation": "Not that."}}
    reply = await reply_to(make_call, message(finish="refusal", end=details))
    assert (reply.content, reply.finish) == ((TextBlock("Not that."),), "refusal")
    spoken = await reply_to(make_call, message(block("text", "I will not"), finish="refusal", end=details))
    assert spoken.content == (TextBlock("I will not"),)


@pytest.mark.parametrize(
    ("at_start", "at_end", "usage"),
    [
        ({"cache_creation_input_tokens": 7, "cache_read_input_tokens": 60}, {}, Usage(11, 5, 7, 60)),
        ({"cache_read_input_tokens": None}, {"input_tokens": None}, Usage(11, 5)),
        ({"input_tokens": 0}, {"input_tokens": 40, "cache_read_input_tokens": 8}, Usage(40, 5, 0, 8)),
        ({"input_tokens": "3"}, {"output_tokens": -1}, Usage(0, 1)),
    ],
)
async def test_usage(make_call: MakeCall, at_start: Any, at_end: Any, usage: Usage) -> None:
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 11, "output_tokens": 1, **at_start}}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5, **at_end}}
    reply = await reply_to(make_call, events(start, end, {"type": "message_stop"}))
    assert reply.usage == usage


async def test_odd_parts_of_a_stream_are_left_out(make_call: MakeCall, caplog: pytest.LogCaptureFixture) -> None:
    odd: list[dict[str, Any]] = [
        {"type": "content_block_start", "index": 9, "content_block": None},
        {"type": "content_block_delta", "index": 8, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "content_block_delta", "index": 7, "delta": {"type": "new_delta"}},
        {"type": "content_block_delta", "delta": []},
        {"type": "content_block_stop", "index": 6},
        {"type": "new_event"},
    ]
    plain = text("x")
    start, ping, *rest = plain.pieces
    body = [piece for piece in (start, ping, *events(*odd).pieces, b"data: [1]\n\n", *rest) if isinstance(piece, bytes)]
    reply = await reply_to(make_call, raw(body))
    assert reply.content == (TextBlock("x"),)
    assert caplog.text.count("skipped a part of the stream") == 1


@pytest.mark.parametrize(
    "spoiled",
    [
        ("content_block_start", {"content_block": {"type": "thinking", "thinking": "", "signature": {"a": 1}}}),
        ("content_block_start", {"content_block": {"type": "thinking", "thinking": ["hm"]}}),
        ("content_block_start", {"content_block": {"type": "text", "text": ["x"]}}),
        ("content_block_start", {"content_block": {"type": "redacted_thinking", "data": 5}}),
        ("content_block_start", {"content_block": {"type": "redacted_thinking", "data": None}}),
        ("content_block_start", {"content_block": {"type": "server_tool_use", "score": float("nan")}}),
        ("content_block_delta", {"delta": {"type": "signature_delta", "signature": ["c2ln"]}}),
        ("content_block_delta", {"delta": {"type": "signature_delta", "signature": None}}),
        ("content_block_delta", {"delta": {"type": "thinking_delta", "thinking": ["hm"]}}),
        ("content_block_delta", {"delta": {"type": "text_delta", "text": ["x"]}}),
    ],
)
async def test_what_should_be_text_and_is_not_spoils_nothing(make_call: MakeCall, spoiled: tuple[str, Any]) -> None:
    kind, fields = spoiled
    start, ping, *rest = text("x", thinking="hm").pieces
    odd = events({"type": kind, "index": 9, **fields}).pieces
    reply = await reply_to(make_call, raw([piece for piece in (start, ping, *odd, *rest) if isinstance(piece, bytes)]))
    assert "".join(block.text for block in reply.content if isinstance(block, TextBlock)) == "x"
    assert reply.usage == Usage(11, 5)
    kept = [block for block in reply.content if not isinstance(block, TextBlock)]
    assert [block for block in kept if block != ThinkingBlock("")] == [ThinkingBlock("hm", "c2lnbmVk")]


@pytest.mark.parametrize("part", ["id", "name", "partial_json", "caller"])
async def test_a_call_that_is_not_as_it_should_be(make_call: MakeCall, part: str) -> None:
    fields: dict[str, Any] = {"id": "t", "name": "look"}
    odd = {"caller": {"type": "x", "score": float("nan")}}.get(part)
    called = block("tool_use", **{**fields, part: odd}) if part != "partial_json" else block("tool_use", **fields)
    called.insert(1, {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": ["{"]}})
    reply = message(block("text", "I look."), called, finish="tool_use")
    if part == "name":
        err = await failure_of(make_call, reply)
        assert isinstance(err, MalformedToolCallError)
        assert (err.partial, err.usage) == ((TextBlock("I look."),), Usage(11, 5))
        return
    whole = await reply_to(make_call, reply)
    said, asked = whole.content
    assert said == TextBlock("I look.")
    assert isinstance(asked, ToolUseBlock) and asked.id and (asked.name, asked.arguments) == ("look", "{}")
    assert whole.opaque is None


async def test_text_without_the_start_of_its_block(make_call: MakeCall) -> None:
    deltas = [{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": one}} for one in "ab"]
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    reply = await reply_to(make_call, events(*deltas, end, {"type": "message_stop"}))
    assert reply.content == (TextBlock("ab"),)


# --- trouble ---


async def test_a_stream_that_ends_too_soon(make_call: MakeCall) -> None:
    whole = message(block("thinking", "hm"), block("text", "half"), block("tool_use", '{"a', id="t", name="n"))
    # Up to a part of the call: the end, and what ends the block, are missing.
    err = await failure_of(make_call, Reply(whole.pieces[:-3], headers=whole.headers))
    assert type(err) is IncompleteStreamError
    assert err.retryable
    assert err.partial == (ThinkingBlock("hm", "c2lnbmVk"), TextBlock("half"))
    assert err.usage == Usage(11, 1)


async def test_a_connection_that_breaks_after_the_reason_for_the_end(make_call: MakeCall) -> None:
    whole = text("done")
    reply = await reply_to(make_call, Reply(whole.pieces[:-1], headers=whole.headers).ending("reset"))
    assert reply.content == (TextBlock("done"),)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("overloaded_error", OverloadedError),
        ("rate_limit_error", RateLimitedError),
        ("api_error", ServerError),
        ("timeout_error", ProviderTimeoutError),
        ("authentication_error", AuthError),
        ("not_found_error", ModelNotFoundError),
        ("invalid_request_error", InvalidRequestError),
    ],
)
async def test_an_error_in_the_stream(make_call: MakeCall, kind: str, expected: type[ProviderError]) -> None:
    start, ping, opening, delta, *_ = text("half").pieces
    end = events({"type": "error", "error": {"type": kind, "message": f"no luck with {KEY}"}}).pieces
    reply = raw([piece for piece in (start, ping, opening, delta, *end) if isinstance(piece, bytes)])
    err = await failure_of(make_call, reply, api_key=KEY)
    assert type(err) is expected
    assert err.partial == (TextBlock("half"),)
    assert KEY not in str(err)
    assert "mine" in str(err)


def error_rows() -> list[Any]:
    found = []
    for path in sorted((CASES / "errors").glob("*.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        for number, row in enumerate(case["rows"]):
            if row["wire"] == "anthropic":
                found.append(pytest.param(row, id=f"{case['case']}-{number}-{row['status']}"))
    return found


@pytest.mark.parametrize("row", error_rows())
async def test_error_case(make_call: MakeCall, row: dict[str, Any]) -> None:
    reply = raw(row["body"], status=row["status"], headers=row["headers"])
    if "content-type" in row["headers"]:
        reply = reply.with_headers({"content-type": row["headers"]["content-type"]})
    err = await failure_of(make_call, reply, api_key=KEY)
    assert err.kind == row["expect"]["error_kind"]
    # Whether a wait is too long is for the core to say, which knows the clock of the case.
    assert err.retryable or not row["expect"]["retry"]
    assert "mine" in str(err)


async def test_a_refused_key(make_call: MakeCall) -> None:
    refused = error(401, f"invalid x-api-key {KEY}", type="authentication_error")
    err = await failure_of(make_call, refused, api_key=KEY, key_variable="SOME_KEY")
    assert type(err) is AuthError
    assert KEY not in str(err)
    assert "SOME_KEY" in err.hint


async def test_a_form_of_thinking_that_the_model_does_not_take(make_call: MakeCall) -> None:
    refused = error(400, "adaptive thinking is not supported on this model")
    err = await failure_of(make_call, refused, thinking="adaptive")
    assert type(err) is InvalidRequestError
    assert "thinking in [providers.mine]" in err.hint


async def test_a_request_that_is_too_long(make_call: MakeCall) -> None:
    err = await failure_of(make_call, error(400, "prompt is too long: 205000 tokens > 200000 maximum"))
    assert type(err) is ContextOverflowError


async def test_cancelling_closes_the_connection(make_call: MakeCall) -> None:
    async with AnthropicServer([text("one", "two").hold(after=4)]) as server:
        call = make_call(server.base_url, "anthropic")
        with anyio.CancelScope() as scope:
            await call.provider.generate(user_says("hi"), lambda delta: scope.cancel())
        assert scope.cancelled_caught
        await server.prompts[0].left()


async def test_an_answer_of_signatures_without_end() -> None:
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "x" * 2**20}}
    event = SSEEvent(json.dumps(delta))
    assembler = MessagesAssembler(lambda delta: None, ProviderSettings("mine", "anthropic"), ToolNames(()))
    with pytest.raises(ServerError, match="more than 64 MiB") as caught:
        for _ in range(100):
            assembler.feed(event)
    assert not caught.value.retryable


async def test_ten_thousand_empty_pieces_and_a_large_one(make_call: MakeCall) -> None:
    large = "x" * (5 * 2**20)
    call = block("tool_use", *([""] * 10_000), json.dumps({"a": large}), id="t", name="n")
    whole = message(block("text", *([""] * 10_000), large), call, finish="tool_use")
    async with AnthropicServer([whole.split("whole")]) as server:
        asking = make_call(server.base_url, "anthropic")
        reply = await asking()
    said, called = reply.content
    assert said == TextBlock(large)
    assert isinstance(called, ToolUseBlock)
    assert json.loads(called.arguments) == {"a": large}
    assert len(asking.deltas) == 3


# --- models ---


async def test_models(make_call: MakeCall) -> None:
    pages = [
        models({"id": "b", "max_input_tokens": 200_000, "max_tokens": 64_000}, "z", has_more=True),
        models({"id": "a", "max_input_tokens": None}),
    ]
    async with AnthropicServer(models=pages) as server:
        provider = make_call(server.base_url, "anthropic", api_key=KEY).provider
        listed = await provider.models()  # type: ignore[attr-defined]  # not part of the protocol
    assert listed == [ModelInfo("a"), ModelInfo("b", 200_000, 64_000), ModelInfo("z")]
    first, second = server.requests
    assert first.path == "/v1/models?limit=1000"
    assert second.path == "/v1/models?limit=1000&after_id=z"
    assert first.headers["x-api-key"] == KEY


async def test_a_list_of_models_that_never_ends(make_call: MakeCall) -> None:
    async with AnthropicServer(models=[models("a", has_more=True)]) as server:
        provider = make_call(server.base_url, "anthropic").provider
        assert await provider.models() == [ModelInfo("a")]  # type: ignore[attr-defined]  # not part of the protocol
    assert len(server.requests) == 2


async def test_a_list_of_models_that_is_too_long(make_call: MakeCall) -> None:
    async with AnthropicServer(models=[raw(b" " * (17 * 2**20), content_type="application/json")]) as server:
        provider = make_call(server.base_url, "anthropic").provider
        with pytest.raises(ServerError, match="more than 16 MiB") as caught:
            await provider.models()  # type: ignore[attr-defined]  # not part of the protocol
    assert not caught.value.retryable


@pytest.mark.parametrize("reply", [error(401, "bad key", type="authentication_error"), raw("[]"), raw("<html>")])
async def test_no_list_of_models(make_call: MakeCall, reply: Reply) -> None:
    async with AnthropicServer(models=[reply]) as server:
        provider = make_call(server.base_url, "anthropic").provider
        with pytest.raises(ProviderError):
            await provider.models()  # type: ignore[attr-defined]  # not part of the protocol
