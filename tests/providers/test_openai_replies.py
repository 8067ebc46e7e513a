"""What comes of an answer: blocks, how it ended, what it cost, and what is passed on meanwhile."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import anyio
import pytest

from openheim.errors import (
    AuthError,
    BillingError,
    EmptyResponseError,
    IncompleteStreamError,
    InvalidRequestError,
    MalformedToolCallError,
    ModelNotFoundError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitedError,
    ServerError,
)
from openheim.events import TextDelta, ThinkingDelta, ToolCallDelta
from openheim.messages import TextBlock, ThinkingBlock, ToolUseBlock, Usage
from openheim.providers import ModelInfo, ModelReply
from openheim_provider_openai.plugin import Settings
from tests.providers.conftest import CASES, KEY, Call, user_says
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import chunk, error, events, text, tool_calls
from tests.support.replies import Pause, Reply, raw

pytestmark = pytest.mark.anyio


async def reply_to(make_call: Callable[..., Call], reply: Reply) -> ModelReply:
    async with OpenAIServer([reply]) as server:
        return await make_call(server.base_url)()


async def failure_of(make_call: Callable[..., Call], reply: Reply, **fields: Any) -> ProviderError:
    async with OpenAIServer([reply]) as server:
        with pytest.raises(ProviderError) as caught:
            await make_call(server.base_url, **fields)()
    return caught.value


# --- text, thinking, usage ---


async def test_a_plain_answer(make_call: Callable[..., Call]) -> None:
    async with OpenAIServer([text("Hello", " there", thinking="hm")]) as server:
        call = make_call(server.base_url)
        reply = await call()
    assert reply == ModelReply((ThinkingBlock("hm"), TextBlock("Hello there")), "end_turn", Usage(11, 5), "m-test")
    assert call.deltas == [ThinkingDelta("hm"), TextDelta("Hello"), TextDelta(" there")]


async def test_pieces_are_passed_on_as_they_come(make_call: Callable[..., Call]) -> None:
    # The pieces of this reply: the role, two of text, the finish, the usage, the end marker.
    async with OpenAIServer([text("one", "two").hold(after=2)]) as server:
        call = make_call(server.base_url)
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


async def test_blocks_keep_their_order(make_call: Callable[..., Call]) -> None:
    entry = {"index": 0, "id": "c", "function": {"name": "look", "arguments": "{}"}}
    deltas: list[dict[str, Any]] = [
        {"content": "a"},
        {"reasoning": "b"},
        {"content": "c"},
        {"tool_calls": [entry]},
        {"content": "d"},
    ]
    reply = await reply_to(make_call, events(*map(chunk, deltas), chunk({}, "stop")))
    call = ToolUseBlock("c", "look", "{}")
    assert reply.content == (TextBlock("a"), ThinkingBlock("b"), TextBlock("c"), call, TextBlock("d"))


async def test_content_in_typed_parts(make_call: Callable[..., Call]) -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    parts = [thought, {"type": "text", "text": "yes"}, {"type": "new"}]
    reply = await reply_to(make_call, events(chunk({"content": parts}), chunk({}, "stop")))
    assert reply.content == (ThinkingBlock("hm"), TextBlock("yes"))


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        (
            {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 60}},
            Usage(40, 7, 0, 60),
        ),
        ({"prompt_tokens": 100, "completion_tokens": 7, "prompt_cache_hit_tokens": 60}, Usage(40, 7, 0, 60)),
        (
            {"prompt_tokens": 5, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 60}},
            Usage(0, 7, 0, 60),
        ),
        ({"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": None}, Usage(100, 7)),
        ({"prompt_tokens": None, "completion_tokens": "7"}, None),
        ({"prompt_tokens": 12.0, "completion_tokens": "7"}, Usage(12)),
        ({"queue_time": 1}, None),
        ({"prompt_tokens": True, "completion_tokens": 10**100, "prompt_cache_hit_tokens": -1}, None),
    ],
)
async def test_cached_tokens_are_counted_apart(
    make_call: Callable[..., Call], counts: dict[str, Any], usage: Usage | None
) -> None:
    reply = await reply_to(make_call, events(chunk({"content": "a"}), chunk({}, "stop", usage=counts)))
    assert reply.usage == usage


async def test_no_usage(make_call: Callable[..., Call]) -> None:
    assert (await reply_to(make_call, text("a", usage=None))).usage is None


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "end_turn"),
        ("eos", "end_turn"),
        ("length", "max_tokens"),
        ("model_length", "max_tokens"),
        ("content_filter", "refusal"),
        ("tool_calls", "end_turn"),
        ("something new", "other"),
    ],
)
async def test_how_answers_end(make_call: Callable[..., Call], reason: str, finish: str) -> None:
    assert (await reply_to(make_call, text("a", finish=reason))).finish == finish


async def test_an_end_without_a_reason(make_call: Callable[..., Call]) -> None:
    assert (await reply_to(make_call, events(chunk({"content": "a"})))).finish == "end_turn"


async def test_an_empty_answer_with_a_reason_is_an_answer(make_call: Callable[..., Call]) -> None:
    reply = await reply_to(make_call, events(chunk({}, "stop")))
    assert (reply.content, reply.finish) == ((), "end_turn")


# --- tool calls ---


async def test_tool_calls(make_call: Callable[..., Call]) -> None:
    script = tool_calls(("read_file", {"path": "a"}, "one"), ("search", {"pattern": "b"}, "two"), text="I look.")
    async with OpenAIServer([script]) as server:
        call = make_call(server.base_url)
        reply = await call()
    assert reply.content == (
        TextBlock("I look."),
        ToolUseBlock("one", "read_file", '{"path": "a"}'),
        ToolUseBlock("two", "search", '{"pattern": "b"}'),
    )
    assert reply.finish == "tool_use"
    pieces = [delta for delta in call.deltas if isinstance(delta, ToolCallDelta)]
    assert [(delta.index, delta.name) for delta in pieces] == [(0, "read_file")] * 3 + [(1, "search")] * 3
    written = {index: "".join(delta.arguments for delta in pieces if delta.index == index) for index in (0, 1)}
    assert written == {0: '{"path": "a"}', 1: '{"pattern": "b"}'}


def entry(index: int | None = None, id: str | None = None, name: str | None = None, arguments: Any = None) -> Any:
    """An entry of ``tool_calls`` with only what is given."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    fields = (("index", index), ("id", id), ("function", function or None))
    return {key: value for key, value in fields if value is not None}


A, B = '{"path":"a"}', '{"path":"b"}'
STREAMS: dict[str, tuple[list[list[Any]], list[tuple[str, Any]]]] = {
    "interleaved": (
        [
            [entry(0, "x", "f", '{"path"')],
            [entry(1, "y", "g", '{"path"')],
            [entry(0, arguments=':"a"}')],
            [entry(1, arguments=':"b"}')],
        ],
        [("f", {"path": "a"}), ("g", {"path": "b"})],
    ),
    "several in one list": (
        [[entry(0, "x", "f", A), entry(1, "y", "g", B)]],
        [("f", {"path": "a"}), ("g", {"path": "b"})],
    ),
    "several in one list, without index and id": (
        [[entry(name="f", arguments=A), entry(name="f", arguments=B)]],
        [("f", {"path": "a"}), ("f", {"path": "b"})],
    ),
    "several in one list, without anything but names": (
        [[entry(name="f"), entry(name="f")]],
        [("f", {}), ("f", {})],
    ),
    "whole calls one after the other, without index and id": (
        [[entry(name="f", arguments=A)], [entry(name="f", arguments=B)]],
        [("f", {"path": "a"}), ("f", {"path": "b"})],
    ),
    "whole calls, all with index 0 and no id": (
        [[entry(0, name="f", arguments=A)], [entry(0, name="f", arguments=B)], [entry(0, name="g", arguments=A)]],
        [("f", {"path": "a"}), ("f", {"path": "b"}), ("g", {"path": "a"})],
    ),
    "whole calls, all with one id": (
        [[entry(id="x", name="f", arguments=A)], [entry(id="x", name="f", arguments=B)]],
        [("f", {"path": "a"}), ("f", {"path": "b"})],
    ),
    "id and name in every piece": (
        [[entry(0, "x", "f", '{"pa')], [entry(0, "x", "f", 'th":')], [entry(0, "x", "f", '"a"}')]],
        [("f", {"path": "a"})],
    ),
    "id and name in every piece, without index": (
        [[entry(None, "x", "f", '{"pa')], [entry(None, "x", "f", 'th":"a"}')], [entry(None, "y", "f", B)]],
        [("f", {"path": "a"}), ("f", {"path": "b"})],
    ),
    "name in every piece, without id": (
        [[entry(0, None, "f", "")], [entry(0, None, "f", '{"path":')], [entry(0, None, "f", '"a"}')]],
        [("f", {"path": "a"})],
    ),
    "empty id in the pieces that follow": (
        [[entry(0, "x", "f", '{"path":')], [entry(0, "", "", '"a"}')]],
        [("f", {"path": "a"})],
    ),
    "the id comes late": (
        [[entry(0, None, "f", "")], [entry(0, "x", None, A)]],
        [("f", {"path": "a"})],
    ),
    "the name comes in pieces": (
        [[entry(0, "x", "read_", "")], [entry(0, None, "file", "")], [entry(0, None, None, A)]],
        [("read_file", {"path": "a"})],
    ),
    "the name comes again with more of it": (
        [[entry(0, "x", "read", "")], [entry(0, None, "read_file", A)]],
        [("read_file", {"path": "a"})],
    ),
    "index of the wrong type": (
        [[{"index": "0", "id": "x", "function": {"name": "f", "arguments": A}}], [entry(1, "y", "g", B)]],
        [("f", {"path": "a"}), ("g", {"path": "b"})],
    ),
    "indices that start at 1": (
        [[entry(1, "x", "f", A)], [entry(2, "y", "g", B)]],
        [("f", {"path": "a"}), ("g", {"path": "b"})],
    ),
    "arguments as an object": ([[entry(0, "x", "f", {"path": "a"})]], [("f", {"path": "a"})]),
    "no arguments at all": ([[entry(0, "x", "f")]], [("f", {})]),
    "blank arguments": ([[entry(0, "x", "f", " ")]], [("f", {})]),
    "no ids": ([[entry(0, None, "f", A)], [entry(1, None, "g", B)]], [("f", {"path": "a"}), ("g", {"path": "b"})]),
}


@pytest.mark.parametrize("name", STREAMS)
async def test_calls_of_servers_that_bend_the_rules(make_call: Callable[..., Call], name: str) -> None:
    entries, expected = STREAMS[name]
    script = events(*(chunk({"tool_calls": some}) for some in entries), chunk({}, "tool_calls"))
    calls = [block for block in (await reply_to(make_call, script)).content if isinstance(block, ToolUseBlock)]
    assert [(call.name, json.loads(call.arguments)) for call in calls] == expected
    ids = [call.id for call in calls]
    assert all(ids)
    assert len(set(ids)) == len(ids)


async def test_ids_that_are_made_up_never_repeat(make_call: Callable[..., Call]) -> None:
    seen = set()
    async with OpenAIServer(default=tool_calls(("f", {}, ""), ("f", {}, ""))) as server:
        call = make_call(server.base_url)
        for _ in range(20):
            seen |= {block.id for block in (await call()).content if isinstance(block, ToolUseBlock)}
    assert len(seen) == 40


async def test_a_call_that_was_cut_stays_as_it_came(make_call: Callable[..., Call]) -> None:
    reply = await reply_to(make_call, tool_calls(("write_file", '{"path":"a","content":"lo', "x"), finish="length"))
    assert reply.content == (ToolUseBlock("x", "write_file", '{"path":"a","content":"lo'),)
    assert reply.finish == "max_tokens"


@pytest.mark.parametrize(
    ("finish", "arguments"), [("length", ""), ("max_tokens", ""), ("tool_calls", "{}"), ("stop", "{}")]
)
@pytest.mark.parametrize("written", ["", "  "])
async def test_only_a_call_that_was_not_cut_has_no_arguments(
    make_call: Callable[..., Call], written: str, finish: str, arguments: str
) -> None:
    reply = await reply_to(make_call, tool_calls(("list_dir", ""), ("list_dir", written), finish=finish))
    assert [block.arguments for block in reply.content if isinstance(block, ToolUseBlock)] == ["{}", arguments]


async def test_a_call_without_a_name(make_call: Callable[..., Call]) -> None:
    script = events(chunk({"content": "a"}), chunk({"tool_calls": [entry(0, "x", None, A)]}), chunk({}, "tool_calls"))
    err = await failure_of(make_call, script)
    assert type(err) is MalformedToolCallError
    assert err.partial == (TextBlock("a"),)


async def test_long_arguments_in_small_pieces(make_call: Callable[..., Call]) -> None:
    written = json.dumps({"content": "x{}" * 30_000})
    pieces = [written[at : at + 30] for at in range(0, len(written), 30)]
    named = [chunk({"tool_calls": [entry(None, "x", "write_file", piece)]}) for piece in pieces]
    reply = await reply_to(make_call, events(*named, chunk({}, "tool_calls")))
    assert reply.content == (ToolUseBlock("x", "write_file", written),)


async def test_a_flood_of_calls_is_no_reply(make_call: Callable[..., Call]) -> None:
    """In one piece, so that nothing but the provider itself can stop it."""
    flood = [entry(number, f"c{number}", "f", "{}") for number in range(60_000)]
    script = events(chunk({"content": "a"}), chunk({"tool_calls": flood}), chunk({}, "tool_calls"))
    with anyio.fail_after(20):
        async with OpenAIServer([script]) as server:
            call = make_call(server.base_url)
            with pytest.raises(ServerError, match="more than 1000 tool calls") as caught:
                await call()
    assert not caught.value.retryable
    assert caught.value.partial == (TextBlock("a"),)
    assert len([delta for delta in call.deltas if isinstance(delta, ToolCallDelta)]) == 1000


async def test_a_call_goes_on_in_the_latest_that_fits(make_call: Callable[..., Call]) -> None:
    """An id may come later than those of calls that began later, and an index may be told of late."""
    entries = [
        entry(0, None, "f", ""),
        entry(1, "x", "g", '{"a"'),
        entry(0, "x", None, '{"b"'),
        entry(None, "x", None, ":1}"),
        entry(0, "x", None, ":2}"),
        entry(None, "y", "h", '{"c"'),
        entry(7, "y", None, ":3}"),
    ]
    script = events(*(chunk({"tool_calls": [one]}) for one in entries), chunk({}, "tool_calls"))
    calls = [block for block in (await reply_to(make_call, script)).content if isinstance(block, ToolUseBlock)]
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [
        ("f", {"b": 2}),
        ("g", {"a": 1}),
        ("h", {"c": 3}),
    ]


# --- characters that are cut in two ---

#: A character beyond U+FFFF as JSON writes it, cut between two pieces.
FIRST, SECOND, WHOLE = "\ud83c", "\udf89", "\U0001f389"


@pytest.mark.parametrize(
    ("deltas", "content"),
    [
        ([{"content": f"A {FIRST}"}, {"content": f"{SECOND} B"}], (TextBlock(f"A {WHOLE} B"),)),
        ([{"content": FIRST}, {"content": SECOND}], (TextBlock(WHOLE),)),
        (
            [{"reasoning_content": FIRST}, {"reasoning_content": f"{SECOND}!"}, {"content": "B"}],
            (ThinkingBlock(f"{WHOLE}!"), TextBlock("B")),
        ),
        # A half whose other half never comes is kept as it is.
        ([{"content": f"A{FIRST}"}], (TextBlock(f"A{FIRST}"),)),
        ([{"content": f"A{FIRST}"}, {"content": "B"}], (TextBlock(f"A{FIRST}B"),)),
        ([{"reasoning_content": FIRST}, {"content": SECOND}], (ThinkingBlock(FIRST), TextBlock(SECOND))),
    ],
)
async def test_characters_that_are_cut_in_two(
    make_call: Callable[..., Call], deltas: list[dict[str, Any]], content: tuple[Any, ...]
) -> None:
    async with OpenAIServer([events(*map(chunk, deltas), chunk({}, "stop"))]) as server:
        call = make_call(server.base_url)
        reply = await call()
    assert reply.content == content
    assert call.text == "".join(block.text for block in content if isinstance(block, TextBlock))
    assert call.thinking == "".join(block.thinking for block in content if isinstance(block, ThinkingBlock))


async def test_a_half_that_had_arrived_is_not_lost(make_call: Callable[..., Call]) -> None:
    err = await failure_of(make_call, events(chunk({"content": f"A{FIRST}"}), done=False))
    assert err.partial == (TextBlock(f"A{FIRST}"),)


async def test_arguments_that_are_cut_within_a_character(make_call: Callable[..., Call]) -> None:
    entries = [
        [entry(0, "x", "f", f'{{"path":"a{FIRST}')],
        [entry(1, "y", "g", f'{{"path":"{FIRST}')],
        [entry(0, arguments=f'{SECOND}"}}')],
        [entry(1, arguments=f'b"}}{FIRST}')],
    ]
    async with OpenAIServer(
        [events(*(chunk({"tool_calls": some}) for some in entries), chunk({}, "length"))]
    ) as server:
        call = make_call(server.base_url)
        reply = await call()
    written = [block.arguments for block in reply.content if isinstance(block, ToolUseBlock)]
    assert written == [f'{{"path":"a{WHOLE}"}}', f'{{"path":"{FIRST}b"}}{FIRST}']
    pieces = [delta.arguments for delta in call.deltas if isinstance(delta, ToolCallDelta) and delta.index == 0]
    assert pieces == ['{"path":"a', f'{WHOLE}"}}']


# --- streams that are not quite ---


async def test_what_is_not_understood_is_skipped_with_a_warning(
    make_call: Callable[..., Call], caplog: pytest.LogCaptureFixture
) -> None:
    odd: list[Any] = [
        "{broken",
        "[" * 100_000,
        json.dumps([1]),
        json.dumps({"choices": 5}),
        json.dumps({"choices": [None]}),
    ]
    odd += [chunk({"content": 5}), chunk({"tool_calls": 5}), {"choices": [], "usage": 5}]
    reply = await reply_to(make_call, events(chunk({"content": "a"}), *odd, chunk({"content": "b"}), chunk({}, "stop")))
    assert reply.content == (TextBlock("ab"),)
    warnings = [
        record for record in caplog.records if record.name.startswith("openheim") and record.levelno == logging.WARNING
    ]
    # Told once, without a word of what was sent.
    (warning,) = warnings
    assert "is not JSON" in warning.getMessage()
    assert "broken" not in warning.getMessage()


async def test_keep_alives_are_silent(make_call: Callable[..., Call], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "openheim"):
        await reply_to(make_call, events(": keepalive", "", " ", chunk({"content": "a"}), chunk({}, "stop")))
    assert not [record for record in caplog.records if record.name.startswith("openheim")]


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=utf-8"])
async def test_an_answer_in_one_piece(make_call: Callable[..., Call], content_type: str) -> None:
    message = {"role": "assistant", "content": "whole", "tool_calls": [entry(None, "x", "f", A)]}
    document = {
        "model": "m-test",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2},
    }
    reply = await reply_to(make_call, raw(json.dumps(document), content_type=content_type))
    assert reply.content == (TextBlock("whole"), ToolUseBlock("x", "f", A))
    assert (reply.finish, reply.usage) == ("tool_use", Usage(1, 2))


async def test_a_stream_that_calls_itself_something_else(make_call: Callable[..., Call]) -> None:
    body = text("a", "b").body
    for content_type in ("application/json", "text/plain", "application/octet-stream"):
        assert (await reply_to(make_call, raw(body, content_type=content_type))).content == (TextBlock("ab"),)


async def test_the_connection_is_kept_after_the_end_marker(make_call: Callable[..., Call]) -> None:
    async with OpenAIServer(default=text("a")) as server:
        call = make_call(server.base_url)
        for _ in range(3):
            await call()
        assert server.connections == 1


async def test_a_server_that_does_not_end_after_the_end_marker(make_call: Callable[..., Call]) -> None:
    async with OpenAIServer([text("a").ending("stall"), text("b")]) as server:
        call = make_call(server.base_url, timeout_secs=60.0)
        with anyio.fail_after(20):
            await call()
            await server.requests[0].left()
            await call()
    assert call.text == "ab"


@pytest.mark.parametrize("end", ["stall", "reset"])
async def test_what_happens_after_the_answer_is_complete_does_not_matter(
    make_call: Callable[..., Call], end: Any
) -> None:
    script = events(chunk({"content": "a"}), chunk({}, "stop"), done=False).ending(end)
    async with OpenAIServer([script]) as server:
        reply = await make_call(server.base_url, timeout_secs=0.3)()
    assert (reply.content, reply.finish) == ((TextBlock("a"),), "end_turn")


@pytest.mark.parametrize("last", [None, ": still here\n\n"], ids=["silence", "keep-alives"])
async def test_a_connection_that_stays_open_after_the_answer_is_not_waited_for(
    make_call: Callable[..., Call], last: str | None
) -> None:
    script = events(chunk({"content": "a"}), chunk({}, "stop"), done=False)
    if last is not None:
        script = replace(
            script, pieces=(*script.pieces, *(part for _ in range(600) for part in (Pause(0.1), last.encode())))
        )
    async with OpenAIServer([script.ending("stall")]) as server:
        with anyio.fail_after(25):
            reply = await make_call(server.base_url, timeout_secs=120.0)()
        await server.requests[0].left()
    assert (reply.content, reply.finish) == ((TextBlock("a"),), "end_turn")


async def test_usage_that_comes_after_the_reason_counts(make_call: Callable[..., Call]) -> None:
    counts = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}
    script = events(chunk({"content": "a"}), chunk({}, "stop"), counts, done=False).ending("stall")
    async with OpenAIServer([script]) as server:
        with anyio.fail_after(25):
            reply = await make_call(server.base_url, timeout_secs=120.0)()
    assert reply.usage == Usage(3, 1)


async def test_a_reason_with_every_piece_ends_nothing(make_call: Callable[..., Call]) -> None:
    pieces = [chunk({"content": f"{number} "}, "stop") for number in range(6)]
    script = events(*pieces, chunk({"tool_calls": [entry(0, "x", "f", A)]}, "stop")).slow(0.4)
    reply = await reply_to(make_call, script)
    assert reply.content == (TextBlock("0 1 2 3 4 5 "), ToolUseBlock("x", "f", A))


async def test_the_wait_for_the_end_can_be_cancelled(make_call: Callable[..., Call]) -> None:
    script = events(chunk({"content": "a"}, "stop"), done=False).ending("stall")
    async with OpenAIServer([script]) as server:
        provider = make_call(server.base_url).provider
        with anyio.CancelScope() as scope:
            # The reason for the end is in the piece that cancels, so what is cancelled is the wait after it.
            await provider.generate(user_says("hi"), lambda delta: scope.cancel())
        assert scope.cancelled_caught
        await server.requests[0].left()


# --- failures ---

ERROR_ROWS = [
    pytest.param(row, case.get("now"), id=f"{case['case']}-{number}-{row['status']}")
    for path in sorted((CASES / "errors").glob("*.json"))
    for case in [json.loads(path.read_text(encoding="utf-8"))]
    for number, row in enumerate(case["rows"])
    if row["wire"] in ("openai", "openai_compatible")
]


@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize(("row", "now"), ERROR_ROWS)
async def test_error_case(make_call: Callable[..., Call], row: dict[str, Any], now: str | None, wire: str) -> None:
    script = raw(row["body"], status=row["status"], headers=row["headers"])
    async with OpenAIServer([script]) as server:
        call = make_call(server.base_url, row["wire"], options=Settings.model_validate({"wire": wire}))
        with pytest.raises(ProviderError) as caught:
            await call()
        assert len(server.requests) == 1
    assert caught.value.kind == row["expect"]["error_kind"]
    assert caught.value.retryable is row["expect"]["retry"]
    assert call.deltas == []


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (error(401, "bad key"), AuthError),
        (error(402, "pay"), BillingError),
        (error(404, "no such model"), ModelNotFoundError),
        (error(429, "slow down", headers={"Retry-After": "7"}), RateLimitedError),
        (raw("<html>sign in</html>", content_type="text/html"), ServerError),
        (raw(json.dumps({"error": {"message": "m", "code": 400}})), InvalidRequestError),  # as if it were a stream
        (raw(""), EmptyResponseError),
        (raw("data: [DONE]\n\n"), EmptyResponseError),
        (events(chunk({"role": "assistant"})), EmptyResponseError),
        (events(chunk({"role": "assistant"}), done=False), IncompleteStreamError),
        (events(chunk({}, "error")), ServerError),
        (events({"object": "error", "message": "m", "code": 400}), InvalidRequestError),
        (raw('event: error\ndata: {"message": "m", "code": 429}\n\n'), RateLimitedError),
    ],
)
async def test_failures(make_call: Callable[..., Call], reply: Reply, kind: type[ProviderError]) -> None:
    assert type(await failure_of(make_call, reply)) is kind


async def test_what_had_arrived_is_not_lost(make_call: Callable[..., Call]) -> None:
    counts = {"prompt_tokens": 3, "completion_tokens": 1}
    pieces = [
        chunk({"reasoning": "hm"}),
        chunk({"content": "half"}, usage=counts),
        chunk({"tool_calls": [entry(0, "x", "f", '{"pa')]}),
    ]
    err = await failure_of(make_call, events(*pieces, done=False))
    assert type(err) is IncompleteStreamError
    assert err.partial == (ThinkingBlock("hm"), TextBlock("half"))
    assert err.usage == Usage(3, 1)


async def test_waits_that_the_service_asks_for(make_call: Callable[..., Call]) -> None:
    err = await failure_of(make_call, error(429, "slow down", headers={"Retry-After": "7"}))
    assert (err.status, err.retry_after_secs) == (429, 7)


async def test_the_key_is_never_told(make_call: Callable[..., Call]) -> None:
    err = await failure_of(make_call, error(401, f"Incorrect API key provided: {KEY}"), api_key=KEY)
    assert "Incorrect API key provided: ***" in str(err)
    assert KEY not in repr(err)


async def test_a_gap_ends_the_call_and_a_drip_does_not(make_call: Callable[..., Call]) -> None:
    drip = text(*["word "] * 10).slow(0.15)
    stalled = text("a").ending("stall")
    stalled = Reply(stalled.pieces[:2], headers=stalled.headers, end="stall")
    async with OpenAIServer([drip, stalled]) as server:
        call = make_call(server.base_url, timeout_secs=1.0)
        assert (await call()).content == (TextBlock("word " * 10),)
        with pytest.raises(ProviderTimeoutError) as caught:
            await call()
        assert caught.value.partial == (TextBlock("a"),)


@pytest.mark.parametrize("after", [None, 0, 2], ids=["headers", "first byte", "text"])
async def test_cancelling_closes_the_connection(make_call: Callable[..., Call], after: int | None) -> None:
    script = text("a").late() if after is None else text("a").hold(after=after)
    async with OpenAIServer([script]) as server:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(make_call(server.base_url))
            (request,) = await server.arrived(1)
            tasks.cancel_scope.cancel()
        await request.left()


# --- models ---


async def test_models(make_call: Callable[..., Call]) -> None:
    document = {"data": [{"id": "z", "context_length": 8192}, {"id": "a", "max_model_len": "no"}, {"odd": 1}, 5]}
    async with OpenAIServer(models=["b", "a"]) as server:
        call = make_call(server.base_url, api_key=KEY)
        assert [info.id for info in await call.provider.models()] == ["a", "b"]  # type: ignore[attr-defined]  # optional
        (request,) = server.requests
        assert (request.method, request.path) == ("GET", "/v1/models")
        assert request.headers["authorization"] == f"Bearer {KEY}"
    for body in (document, document["data"]):
        async with OpenAIServer(models=raw(json.dumps(body))) as server:
            infos = await make_call(server.base_url).provider.models()  # type: ignore[attr-defined]  # optional
        assert infos == [ModelInfo("a"), ModelInfo("z", 8192)]


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (error(401), AuthError),
        (raw("<html>"), ServerError),
        (raw('{"data": 5}'), ServerError),
        (raw("[" * 99999), ServerError),
    ],
)
async def test_models_that_are_not_told(
    make_call: Callable[..., Call], reply: Reply, kind: type[ProviderError]
) -> None:
    async with OpenAIServer(models=reply) as server:
        with pytest.raises(ProviderError) as caught:
            await make_call(server.base_url).provider.models()  # type: ignore[attr-defined]  # optional
    assert type(caught.value) is kind


async def test_an_error_event_of_plain_text(make_call: Callable[..., Call]) -> None:
    err = await failure_of(make_call, raw(b"event: error\ndata: upstream request timeout\n\n"))
    assert type(err) is ServerError
    assert err.retryable
    assert "upstream request timeout" in err.message


# --- several answers, and names that are none ---


async def test_of_several_answers_the_first_is_taken(make_call: Callable[..., Call]) -> None:
    chunks = [chunk({"content": f"[{number}]"}) for number in (2, 0, 1)]
    for number, payload in zip((2, 0, 1), chunks, strict=True):
        payload["choices"][0]["index"] = number
    both = {**chunks[0], "choices": [*chunks[2]["choices"], *chunks[1]["choices"]]}
    assert (await reply_to(make_call, events(*chunks, both, chunk({}, "stop")))).content == (TextBlock("[0][0]"),)


async def test_a_name_without_end_is_refused_early(make_call: Callable[..., Call]) -> None:
    pieces = [chunk({"tool_calls": [{"index": 0, "function": {"name": letter * 600}}]}) for letter in "ab"]
    failure = await failure_of(make_call, events(*pieces, chunk({}, "tool_calls")))
    assert isinstance(failure, MalformedToolCallError) and "1024 characters" in str(failure)


async def test_an_id_that_is_too_long_is_replaced(make_call: Callable[..., Call]) -> None:
    call = {"index": 0, "id": "x" * 2_000, "function": {"name": "read", "arguments": "{}"}}
    reply = await reply_to(make_call, events(chunk({"tool_calls": [call]}), chunk({}, "tool_calls")))
    block = reply.content[0]
    assert isinstance(block, ToolUseBlock) and block.name == "read" and 1 < len(block.id) < 100


async def test_pieces_that_repeat_the_name_of_their_call_are_read_again_within_bounds(
    make_call: Callable[..., Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them might be another call, if the arguments before it are an object: asked for each, it is quadratic."""
    asked = 0

    def is_object(text: str) -> bool:
        nonlocal asked
        asked += len(text)
        return False

    monkeypatch.setattr("openheim_provider_openai.tool_calls.is_object", is_object)
    piece = {"index": 0, "id": "a", "function": {"name": "read", "arguments": "}"}}
    flood = [{**piece, "function": {"name": "read", "arguments": "{"}}, *[piece] * 20_000]
    block = (await reply_to(make_call, events(chunk({"tool_calls": flood}), chunk({}, "tool_calls")))).content[0]
    assert isinstance(block, ToolUseBlock) and len(block.arguments) == 20_001
    assert 0 < asked <= 64 * 64 * 1024
