"""``reasoning_details`` of OpenRouter: kept as they came, and sent back to who sent them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from openheim import Client
from openheim.messages import Message, TextBlock, ThinkingBlock, message_from_stored, message_to_stored
from openheim.providers import ModelReply, ModelRequest
from openheim_provider_openai.plugin import Settings
from tests.providers.conftest import Call, answered, assistant, result, user
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import chunk, events, text, tool_calls
from tests.support.replies import Reply, raw

pytestmark = pytest.mark.anyio

ROUTED = Settings(preset="openrouter")
WIRE = "openai-chat"
CALL = {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "read_file", "arguments": "{}"}}]}


def thought(piece: str | None, index: int | None = 0, **fields: Any) -> dict[str, Any]:
    placed = {} if index is None else {"index": index}
    return {"type": "reasoning.text", "text": piece, "format": "anthropic-claude-v1", **placed, **fields}


SECRET = {"type": "reasoning.encrypted", "data": "AAAA", "id": "rs_1", "format": "openai-responses-v1", "index": 0}


def routed(*chunks: Sequence[dict[str, Any]]) -> Reply:
    """A stream with these details, chunk by chunk, that ends with a call."""
    deltas = [{"reasoning": "hm", "reasoning_details": details} for details in chunks]
    return events(*map(chunk, [*deltas, CALL]), chunk({}, "tool_calls"))


async def reply_of(make_call: Callable[..., Call], reply: Reply, options: Settings = ROUTED) -> ModelReply:
    async with OpenAIServer([reply]) as server:
        return await make_call(server.base_url, options=options)()


@pytest.mark.parametrize(
    ("chunks", "kept"),
    [
        pytest.param(
            [[thought("I ", signature=None)], [thought("see")], [thought(None, signature="sig")]],
            [thought("I see", signature="sig")],
            id="pieces of one block",
        ),
        pytest.param(
            [[thought("a"), thought("b")], [thought("c", signature="s1")], [thought("d", 1)], [thought("e", 1)]],
            [thought("abc", signature="s1"), thought("de", 1)],
            id="two blocks",
        ),
        pytest.param(
            [[thought("a", None)], [thought("b", None, signature="s1")], [thought("c", None)]],
            [thought("ab", None, signature="s1"), thought("c", None)],
            id="a signature ends a block without an index",
        ),
        pytest.param(
            [[thought("a", None, id="1")], [thought("b", None, id="2")], [thought("c", None)]],
            [thought("a", None, id="1"), thought("bc", None, id="2")],
            id="ids",
        ),
        pytest.param(
            [
                [{"type": "reasoning.summary", "summary": "It ", "index": 0}],
                [{"type": "reasoning.summary", "summary": "adds.", "index": 0, "id": "rs_1"}],
                [SECRET],
                [SECRET | {"data": "BBBB"}],
            ],
            [
                {"type": "reasoning.summary", "summary": "It adds.", "index": 0, "id": "rs_1"},
                SECRET,
                SECRET | {"data": "BBBB"},
            ],
            id="a summary and encrypted data",
        ),
        pytest.param(
            [[{"type": "reasoning.new", "x": [1, None]}]], [{"type": "reasoning.new", "x": [1, None]}], id="new"
        ),
        pytest.param([[thought("a"), "odd", 7], [None]], [thought("a")], id="no blocks among them"),
    ],
)
async def test_pieces_are_joined(
    make_call: Callable[..., Call], chunks: list[list[Any]], kept: list[dict[str, Any]]
) -> None:
    reply = await reply_of(make_call, routed(*chunks))
    assert reply.opaque == {"reasoning_details": kept}
    assert [block.thinking for block in reply.content if isinstance(block, ThinkingBlock)] == ["hm" * len(chunks)]


async def test_a_reply_in_one_piece(make_call: Callable[..., Call]) -> None:
    import json

    message = {"role": "assistant", "content": "ok", "reasoning_details": [thought("a", signature="s"), SECRET]}
    document = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    reply = await reply_of(make_call, raw(json.dumps(document), content_type="application/json"))
    assert reply.content == (TextBlock("ok"),)
    assert reply.opaque == {"reasoning_details": [thought("a", signature="s"), SECRET]}


@pytest.mark.parametrize(
    "details",
    ["text", 7, {"type": "reasoning.text"}, [], [float("nan")], [{"x": float("nan")}]],
    ids=repr,
)
async def test_what_cannot_be_kept_does_no_harm(make_call: Callable[..., Call], details: Any) -> None:
    reply = await reply_of(make_call, routed(details))
    assert reply.opaque is None


async def test_what_is_nested_too_deeply_does_no_harm(make_call: Callable[..., Call]) -> None:
    deep: Any = "x"
    for _ in range(99):
        deep = {"x": deep}
    assert (await reply_of(make_call, routed([deep]))).opaque is None


async def test_who_is_not_known_to_want_them_gets_none(make_call: Callable[..., Call]) -> None:
    assert (await reply_of(make_call, routed([SECRET]), Settings(preset="none"))).opaque is None
    assert (await reply_of(make_call, routed([SECRET]), Settings(reasoning_details=True))).opaque is not None
    own = Settings(preset="openrouter", reasoning_details=False)
    assert (await reply_of(make_call, routed([SECRET]), own)).opaque is None


async def sent(make_call: Callable[..., Call], *messages: Message, options: Settings = ROUTED) -> list[dict[str, Any]]:
    async with OpenAIServer([text("ok")]) as server:
        await make_call(server.base_url, options=options)(ModelRequest("m", "", [user("hi"), *messages]))
        wire: list[dict[str, Any]] = server.requests[0].json["messages"]
    return wire[1:]


async def test_they_go_back_with_their_message(make_call: Callable[..., Call]) -> None:
    kept = [thought("I see", signature="sig"), SECRET]
    reply = await reply_of(make_call, routed([thought("I ")], [thought("see", signature="sig"), SECRET]))
    # As it comes out of a history file.
    message = message_from_stored(message_to_stored(answered(reply, WIRE)))
    asked, *_ = await sent(make_call, message, result("c1", "text"))
    assert asked["reasoning_details"] == kept
    assert asked["tool_calls"][0]["id"] == "c1"
    assert "reasoning" not in asked


@pytest.mark.parametrize(
    ("wire", "provider", "options"),
    [
        (WIRE, "other", ROUTED),
        ("openai-responses", "mine", ROUTED),
        (WIRE, "mine", Settings(preset="none")),
        (WIRE, "mine", Settings(preset="openrouter", reasoning_details=False)),
    ],
)
async def test_nobody_else_gets_them(
    make_call: Callable[..., Call], wire: str, provider: str, options: Settings
) -> None:
    message = assistant("a", wire=wire, provider=provider, opaque={"reasoning_details": [SECRET]})
    said, *_ = await sent(make_call, message, user("b"), options=options)
    assert said == {"role": "assistant", "content": "a"}


@pytest.mark.parametrize("opaque", [{}, {"reasoning_details": "x"}, {"reasoning_details": [float("inf")]}], ids=repr)
async def test_a_damaged_history_is_sent_without(make_call: Callable[..., Call], opaque: dict[str, Any]) -> None:
    message = assistant("a", wire=WIRE, provider="mine", opaque=opaque)
    assert (await sent(make_call, message, user("b")))[0] == {"role": "assistant", "content": "a"}


async def test_thinking_that_was_cut_before_its_signature_is_left_out(make_call: Callable[..., Call]) -> None:
    details = [thought("a", signature="s"), thought("b", 1), {**thought("c", 2), "format": "unknown"}, SECRET]
    message = assistant("a", wire=WIRE, provider="mine", opaque={"reasoning_details": details})
    said = (await sent(make_call, message, user("b")))[0]
    assert said["reasoning_details"] == [details[0], *details[2:]]


async def test_messages_that_become_one_bring_all_of_theirs(make_call: Callable[..., Call]) -> None:
    def says(word: str, detail: Any, **fields: Any) -> Message:
        return assistant(word, wire=WIRE, opaque={"reasoning_details": [detail]}, **{"provider": "mine", **fields})

    messages = (says("a", SECRET), says("b", thought("x"), provider="other"), says("c", {"type": "t"}))
    options = Settings(preset="openrouter", strict_roles=True)
    said = (await sent(make_call, *messages, user("d"), options=options))[0]
    assert said["content"] == "a\n\nb\n\nc"
    assert said["reasoning_details"] == [SECRET, {"type": "t"}]


async def test_a_session_brings_them_in_every_round(tmp_path: Any) -> None:
    first = routed([thought("I ")], [thought("see", signature="sig")])
    async with OpenAIServer([first, tool_calls(("read_file", {}, "c2")), text("done")]) as server:
        entry = {"kind": "openai_compatible", "api_base": server.base_url, "default_model": "m", "preset": "openrouter"}
        settings = {"providers": {"router": entry}, "http": {"proxy": ""}}
        async with Client(config=False, settings=settings, data_dir=tmp_path / "data") as client:
            outcome = await client.new_session(cwd=tmp_path).run("hi")
        assert outcome.text == "done"
        bodies = [request.json["messages"] for request in server.requests]
    kept = [thought("I see", signature="sig")]
    for body in bodies[1:]:
        assert next(message["reasoning_details"] for message in body if message["role"] == "assistant") == kept
    assert bodies[2][: len(bodies[1])] == bodies[1]
