"""What comes of an answer on the Responses wire."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openheim.errors import (
    BlockedError,
    ContextOverflowError,
    IncompleteStreamError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    ProviderError,
    RateLimitedError,
    ServerError,
)
from openheim.events import Delta, TextDelta, ThinkingDelta, ToolCallDelta
from openheim.jsontext import is_deep
from openheim.messages import Message, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock, Usage
from openheim.providers import ModelReply, ModelRequest, Provider, ProviderSettings, ToolSpec
from openheim.testing import HttpAnswer, ScriptedHttp
from openheim.testing.reply_checks import check_shape
from openheim_provider_openai.plugin import Settings, openheim_create_provider
from tests.providers.conftest import KEY, Call, user_says
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import error
from tests.support.replies import Reply, raw
from tests.support.responses_wire import (
    call,
    events,
    failed,
    item_events,
    message,
    reasoning,
    reply,
    response,
    text,
    tool_calls,
)

pytestmark = pytest.mark.anyio

RESPONSES = Settings(wire="responses")


async def asked(make_call: Callable[..., Call], answer: Reply) -> tuple[ModelReply, list[Delta]]:
    async with OpenAIServer([answer]) as server:
        asking = make_call(server.base_url, "openai", options=RESPONSES)
        return await asking(), asking.deltas


async def reply_to(make_call: Callable[..., Call], answer: Reply) -> ModelReply:
    return (await asked(make_call, answer))[0]


async def failure_of(make_call: Callable[..., Call], answer: Reply, **fields: Any) -> ProviderError:
    async with OpenAIServer([answer]) as server:
        with pytest.raises(ProviderError) as caught:
            await make_call(server.base_url, "openai", options=RESPONSES, **fields)()
    return caught.value


# --- text, thinking, calls, usage ---


async def test_a_plain_answer(make_call: Callable[..., Call]) -> None:
    answer, deltas = await asked(make_call, text("Hello", " there", thinking="hm", usage=(11, 5, 4)))
    assert answer.content == (ThinkingBlock("hm"), TextBlock("Hello there"))
    assert (answer.finish, answer.usage, answer.model) == ("end_turn", Usage(7, 5, 0, 4), "m-test")
    assert deltas == [ThinkingDelta("hm"), TextDelta("Hello"), TextDelta(" there")]


async def test_pieces_are_passed_on_as_they_come(make_call: Callable[..., Call]) -> None:
    # created, in_progress, item added, part added, the first piece
    async with OpenAIServer([text("one", "two").hold(after=5)]) as server:
        asking = make_call(server.base_url, "openai", options=RESPONSES)
        first = anyio.Event()

        def emit(delta: Any) -> None:
            asking.deltas.append(delta)
            first.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asking.provider.generate, user_says("hi"), emit)
            with anyio.fail_after(10):
                await first.wait()
            assert asking.text == "one"
            server.release()
    assert asking.text == "onetwo"


async def test_parts_of_a_summary_are_paragraphs_and_items_blocks(make_call: Callable[..., Call]) -> None:
    answer, deltas = await asked(make_call, reply(reasoning("a", "b"), reasoning("c", id="rs_2"), message("d")))
    assert answer.content == (ThinkingBlock("a\n\nb"), ThinkingBlock("c"), TextBlock("d"))
    assert "".join(delta.text for delta in deltas if isinstance(delta, ThinkingDelta)) == "a\n\nbc"


async def test_parallel_calls(make_call: Callable[..., Call]) -> None:
    answer, deltas = await asked(make_call, tool_calls(("look", {"at": 1}), ("go", "", "mine"), text="So."))
    assert answer.content == (
        TextBlock("So."),
        ToolUseBlock("call_1", "look", '{"at": 1}'),
        ToolUseBlock("mine", "go", "{}"),
    )
    assert answer.finish == "tool_use"
    pieces = [delta for delta in deltas if isinstance(delta, ToolCallDelta)]
    assert [(piece.index, piece.name) for piece in pieces] == [(0, "look")] * 3 + [(1, "go")]
    assert "".join(piece.arguments for piece in pieces) == '{"at": 1}'


async def test_calls_without_an_id_or_with_one_id_get_one(make_call: Callable[..., Call]) -> None:
    answer = await reply_to(
        make_call, reply(call("f", {}, "x"), call("g", {}, "x", id="fc_2"), call("h", {}, "", id=""))
    )
    ids = [block.id for block in answer.content if isinstance(block, ToolUseBlock)]
    assert ids[0] == "x" and all(ids) and len(set(ids)) == 3


async def test_own_names_come_back(make_call: Callable[..., Call]) -> None:
    tools = (ToolSpec("srv.docs/get", "", {"type": "object"}),)
    async with OpenAIServer(lambda request: reply(call(request.json["tools"][0]["name"], {}))) as server:
        asking = make_call(server.base_url, "openai", options=RESPONSES)
        answer = await asking(user_says("hi", tools=tools))
    assert [block.name for block in answer.content if isinstance(block, ToolUseBlock)] == ["srv.docs/get"]
    assert {delta.name for delta in asking.deltas if isinstance(delta, ToolCallDelta)} == {"srv.docs/get"}


async def test_a_refusal(make_call: Callable[..., Call]) -> None:
    answer = await reply_to(make_call, reply(message("I ", "won't", refusal=True)))
    assert (answer.content, answer.finish) == ((TextBlock("I won't"),), "refusal")


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("max_output_tokens", "max_tokens"), ("content_filter", "refusal"), ("max_messages", "other"), (None, "other")],
)
async def test_incomplete(make_call: Callable[..., Call], reason: str | None, finish: str) -> None:
    answer = await reply_to(make_call, reply(message("half"), status="incomplete", reason=reason))
    assert (answer.content, answer.finish) == ((TextBlock("half"),), finish)
    assert answer.usage == Usage(11, 5)


async def test_a_call_that_the_cap_cut_is_not_complete(make_call: Callable[..., Call]) -> None:
    cut = reply(call("write", '{"path": "a", "con'), status="incomplete", reason="max_output_tokens")
    answer = await reply_to(make_call, cut)
    assert answer.finish == "max_tokens"
    assert answer.content == (ToolUseBlock("call_1", "write", '{"path": "a", "con'),)
    nothing = reply(call("write", ""), status="incomplete", reason="max_output_tokens")
    assert (await reply_to(make_call, nothing)).content == (ToolUseBlock("call_1", "write", ""),)


async def test_usage_counts_what_was_new(make_call: Callable[..., Call]) -> None:
    last = response("completed", [], usage=(100, 9, 60))
    last["usage"]["input_tokens_details"]["cache_write_tokens"] = 30
    last["usage"]["output_tokens_details"]["reasoning_tokens"] = 4
    answer = await reply_to(
        make_call, events(*item_events(0, message("a")), {"type": "response.completed", "response": last})
    )
    assert answer.usage == Usage(10, 9, 30, 60)
    last["usage"] = {"input_tokens": "many", "input_tokens_details": None}
    answer = await reply_to(
        make_call, events(*item_events(0, message("a")), {"type": "response.completed", "response": last})
    )
    assert answer.usage is None  # Not known, which is not the same as nothing.


# --- servers that leave things out ---


async def test_items_that_come_whole(make_call: Callable[..., Call]) -> None:
    items: list[dict[str, Any]] = [reasoning("hm"), message("Hel", "lo"), call("f", {"a": 1})]
    whole = [{key: value for key, value in item.items() if key != "pieces"} for item in items]
    done = [
        {"type": "response.output_item.done", "output_index": index, "item": item} for index, item in enumerate(whole)
    ]
    end = {"type": "response.completed", "response": response("completed", whole, usage=(1, 1, 0))}
    expected = (ThinkingBlock("hm"), TextBlock("Hello"), ToolUseBlock("call_1", "f", '{"a": 1}'))
    for script in (events(*done, end), events(end), raw(json.dumps(end["response"]), content_type="application/json")):
        answer, deltas = await asked(make_call, script)
        assert answer.content == expected
        assert [delta.text for delta in deltas if isinstance(delta, TextDelta)] == ["Hello"]
        assert answer.opaque is not None


async def test_pieces_without_their_item(make_call: Callable[..., Call]) -> None:
    pieces = [
        {"type": "response.reasoning_text.delta", "delta": "hm", "item_id": "r", "output_index": 0},
        {"type": "response.output_text.delta", "delta": "yes", "item_id": "m", "output_index": 1},
        {"type": "response.output_text.delta", "delta": "!", "item_id": "m", "output_index": 1},
        {"type": "response.something_new", "delta": "?"},
        {"type": "response.function_call_arguments.delta", "delta": "{", "output_index": 7},
    ]
    end = {"type": "response.completed", "response": {"status": "completed"}}
    answer = await reply_to(make_call, events(*pieces, end))
    assert answer.content == (ThinkingBlock("hm"), TextBlock("yes!"))


async def test_events_that_tell_the_items_by_id_only(make_call: Callable[..., Call]) -> None:
    items = [reasoning("hm"), message("Hel", "lo"), call("f", {"a": 1}), call("g", {}, "call_2", id="fc_2")]
    payloads = [
        {key: value for key, value in event.items() if key not in ("output_index", "content_index")}
        for index, item in enumerate(items)
        for event in item_events(index, item)
    ]
    whole = [{key: value for key, value in item.items() if key != "pieces"} for item in items]
    end = {"type": "response.completed", "response": response("completed", whole)}
    answer = await reply_to(make_call, events(*payloads, end))
    calls = (ToolUseBlock("call_1", "f", '{"a": 1}'), ToolUseBlock("call_2", "g", "{}"))
    assert answer.content == (ThinkingBlock("hm"), TextBlock("Hello"), *calls)


@pytest.mark.parametrize("indexed", [(0, 3), (1, 2), (0, 2), (0, 1, 2), (3,)])
async def test_events_that_tell_the_place_of_some_items_only(
    make_call: Callable[..., Call], indexed: tuple[int, ...]
) -> None:
    thought, said = reasoning("hm"), message("Hel", "lo")
    calls = [call("f", {"a": 1}), call("g", {}, "call_2", id="fc_2")]
    for items in ([thought, said, *calls], [*calls, thought, said]):
        payloads = [(index, event) for index, item in enumerate(items) for event in item_events(index, item)]
        whole = [{key: value for key, value in item.items() if key != "pieces"} for item in items]
        end = {"type": "response.completed", "response": response("completed", whole)}
        expected = await reply_to(make_call, reply(*items))
        assert len(expected.content) == len(items)
        throughout = [event if index in indexed else without_place(event) for index, event in payloads]
        at_first = [event if event["type"].endswith("item.added") else without_place(event) for _, event in payloads]
        for script in (throughout, at_first):
            answer = await reply_to(make_call, events(*script, end))
            assert (answer.content, answer.opaque) == (expected.content, expected.opaque)


def without_place(event: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in event.items() if key != "output_index"}


async def test_open_reasoning_is_shown_and_kept(make_call: Callable[..., Call]) -> None:
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
    answer = await reply_to(make_call, reply(item, message("yes")))
    assert answer.content == (ThinkingBlock("hm"), TextBlock("yes"))
    assert answer.opaque is not None and answer.opaque["items"][0] == item


# --- failures ---


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (failed("server_error"), ServerError),
        (failed("rate_limit_exceeded", "Rate limit reached"), RateLimitedError),
        (failed("server_is_overloaded"), OverloadedError),
        (failed("context_length_exceeded"), ContextOverflowError),
        (failed("invalid_image"), InvalidRequestError),
        (failed("bio_policy"), BlockedError),
        (failed("invalid_image_mode"), InvalidRequestError),
        (failed("failed_to_download_image"), InvalidRequestError),
        (failed("image_file_not_found"), InvalidRequestError),
        (failed("data_residency_mismatch"), InvalidRequestError),
        (events({"type": "response.cancelled", "response": response("cancelled", [])}), ServerError),
        (
            events({"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": None}),
            RateLimitedError,
        ),
        (raw('data: {"type": "error", "code": "server_is_overloaded", "message": "m"}\n\n'), OverloadedError),
        (
            raw('data: {"type": "error", "error": {"code": "context_length_exceeded", "message": "m"}}\n\n'),
            ContextOverflowError,
        ),
        (error(429, "slow down"), RateLimitedError),
        (reply(message("a"), finish=False), IncompleteStreamError),
    ],
)
async def test_failures(make_call: Callable[..., Call], answer: Reply, kind: type[ProviderError]) -> None:
    assert type(await failure_of(make_call, answer)) is kind


async def test_floods_end(make_call: Callable[..., Call]) -> None:
    many = [item for number in range(1001) for item in item_events(number, {"type": "odd", "id": f"x{number}"})]
    assert "more than 1000 items" in str(await failure_of(make_call, events(*many)))
    huge = [reasoning(id=f"rs_{number}", encrypted="x" * 6_000_000) for number in range(3)]
    done = [{"type": "response.output_item.done", "output_index": at, "item": item} for at, item in enumerate(huge)]
    assert "longer than 16 MiB" in str(await failure_of(make_call, events(*done)))


async def test_what_had_arrived_is_not_lost(make_call: Callable[..., Call]) -> None:
    broken = reply(reasoning("hm"), message("half"), call("f", {}), finish=False)
    err = await failure_of(make_call, broken)
    assert err.partial == (ThinkingBlock("hm"), TextBlock("half"))
    assert err.retryable


@pytest.mark.parametrize(("options", "told"), [(None, True), (RESPONSES, False)])
async def test_a_gateway_without_this_wire(make_call: Callable[..., Call], options: Any, told: bool) -> None:
    request = user_says("hi")
    request.model = "gpt-5"
    async with OpenAIServer([error(404, "no such path")]) as server:
        with pytest.raises(ModelNotFoundError) as caught:
            await make_call(server.base_url, "openai", options=options)(request)
    assert ('set wire = "chat" in [providers.mine]' in caught.value.hint) is told


async def test_the_key_is_never_told(make_call: Callable[..., Call]) -> None:
    err = await failure_of(make_call, failed("server_error", f"bad key {KEY}"), api_key=KEY)
    assert "***" in str(err) and KEY not in repr(err)


@pytest.mark.parametrize("after", [None, 0, 6], ids=["headers", "first byte", "text"])
async def test_cancelling_closes_the_connection(make_call: Callable[..., Call], after: int | None) -> None:
    script = text("a").late() if after is None else text("a").hold(after=after)
    async with OpenAIServer([script]) as server:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(make_call(server.base_url, "openai", options=RESPONSES))
            (request,) = await server.arrived(1)
            tasks.cancel_scope.cancel()
        await request.left()


# --- however it is cut ---

LONG = reply(
    reasoning("Überlegung 🙂", "zwei"),
    message("Grüße", " an 🦊", " alle\r\n"),
    call("read_file", {"path": "é/🙂"}),
    call("read_file", {"path": "b"}, "call_2", id="fc_2"),
)


def played_with(http: ScriptedHttp) -> Provider:
    entry = ProviderSettings("mine", "openai", "http://localhost/v1", options=RESPONSES)
    provider = openheim_create_provider("openai", entry, http)
    assert provider is not None
    return provider


def played(pieces: list[bytes]) -> tuple[ModelReply, list[Delta]]:
    deltas: list[Delta] = []
    provider = played_with(ScriptedHttp([HttpAnswer(tuple(pieces))]))
    return anyio.run(provider.generate, user_says("hi"), deltas.append), deltas


def test_single_bytes_make_no_difference() -> None:
    body = LONG.body
    assert played([body[at : at + 1] for at in range(len(body))]) == played([body])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, len(LONG.body) - 1), max_size=40, unique=True).map(sorted))
def test_random_pieces_make_no_difference(offsets: list[int]) -> None:
    body = LONG.body
    edges = [0, *offsets, len(body)]
    pieces = [body[start:end] for start, end in pairwise(edges)]
    assert played(pieces) == played([body])


EVENTS = [json.loads(block.partition("data: ")[2]) for block in LONG.body.decode().strip().split("\n\n")]
JUNK = st.sampled_from([None, True, -1, 10**30, 1.5, float("nan"), "", "x", [], ["x"], {}, {"type": "x"}, [None], [[]]])


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from leaves(item, (*path, key))


PLACES = [path for path in leaves(EVENTS) if len(path) > 1]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLACES), JUNK), min_size=1, max_size=3))
def test_whatever_comes_it_is_a_reply_or_an_error_of_the_service(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    payloads: Any = json.loads(json.dumps(EVENTS))
    for path, junk in changes:
        inner = payloads
        try:
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = junk
        except (KeyError, IndexError, TypeError):
            continue  # An earlier change took it away.
    body = "".join(f"data: {json.dumps(payload)}\n\n" for payload in payloads)
    try:
        answer, _ = played([body.encode()])
    except ProviderError:
        return
    check_shape(answer)
    stored = Message("assistant", answer.content, wire="openai-responses", opaque=answer.opaque)
    results = [Message("tool", (ToolResultBlock(found.id, "f", "ok"),)) for found in stored.tool_uses]
    asked = ModelRequest("m", "", [*user_says("hi").messages, stored, *results, *user_says("on").messages])
    http = ScriptedHttp([HttpAnswer((text("ok").body,))])
    anyio.run(played_with(http).generate, asked, lambda delta: None)
    json.loads(http.requests[0].content, parse_constant=pytest.fail)


# --- floods and depths ---


async def test_an_item_of_many_parts_takes_time_in_proportion_to_them(make_call: Callable[..., Call]) -> None:
    parts = [{"type": "output_text", "text": "x"} for _ in range(9_000)]
    done = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": parts}
    answer = events(
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed", "response": response("completed", [done])},
    )
    assert len((await reply_to(make_call, answer)).content) == 9_000


@pytest.mark.parametrize(
    "fields",
    [
        lambda number: {"output_index": 0, "content_index": number},
        lambda number: {"item_id": f"msg_{number}", "content_index": 0},
        lambda number: {"output_index": number, "content_index": 0},
    ],
)
async def test_a_reply_of_too_many_parts(make_call: Callable[..., Call], fields: Callable[[int], Any]) -> None:
    flood = [{"type": "response.output_text.delta", "delta": "x", **fields(number)} for number in range(10_001)]
    failure = await failure_of(make_call, events(*flood))
    assert isinstance(failure, ServerError) and not failure.retryable
    assert str(failure).startswith("the reply has more than")


@pytest.mark.parametrize("levels", [98, 99, 100, 200])
async def test_an_item_that_is_nested_too_deeply_is_left_out(make_call: Callable[..., Call], levels: int) -> None:
    """A reply is stored with two levels around its items, and nothing that is stored has more than 100."""
    deep: Any = "x"
    for _ in range(levels):
        deep = [deep]
    items = [reasoning("hm"), {"type": "web_search_call", "id": "ws_1", "action": deep}, message("the answer")]
    answer = await reply_to(make_call, reply(*items))
    assert answer.content[-1] == TextBlock("the answer")
    assert answer.opaque is not None and "rs_1" in str(answer.opaque) and "ws_1" not in str(answer.opaque)


async def test_an_item_that_is_nested_as_deeply_as_can_be_is_kept(make_call: Callable[..., Call]) -> None:
    deep: Any = "x"
    for _ in range(97):
        deep = [deep]
    answer = await reply_to(make_call, reply({"type": "web_search_call", "id": "ws_1", "action": deep}, message("ok")))
    assert answer.opaque is not None and "ws_1" in str(answer.opaque) and not is_deep(answer.opaque)
