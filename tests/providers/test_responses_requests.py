"""What is sent on the Responses wire: bodies to the byte, what comes back with replies, and that nothing changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest

from openheim.errors import InvalidRequestError
from openheim.messages import (
    ImageBlock,
    Message,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from openheim.providers import ModelRequest, ToolSpec
from openheim_provider_openai.plugin import Settings
from tests.providers.conftest import KEY, Call, answered, assistant, result, user, user_says
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import error
from tests.support.replies import Reply
from tests.support.responses_validator import problems
from tests.support.responses_wire import call, message, reasoning, reply, text

pytestmark = pytest.mark.anyio

READ_FILE = ToolSpec("read_file", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
WIRE = "openai-responses"


async def sent(make_call: Callable[..., Call], request: ModelRequest, **fields: Any) -> bytes:
    """The body of the request that goes out."""
    fields.setdefault("options", Settings(wire="responses"))
    async with OpenAIServer([text("ok")]) as server:
        await make_call(server.base_url, "openai", **fields)(request)
        (request_sent,) = server.requests
    assert request_sent.path == "/v1/responses"
    return request_sent.body


async def sent_items(make_call: Callable[..., Call], *messages: Message, **fields: Any) -> list[Any]:
    body = json.loads(await sent(make_call, ModelRequest(model="m", system="", messages=messages), **fields))
    assert problems(body) == []
    items: list[Any] = body["input"]
    return items


def said(words: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": words, "annotations": []}]
    return {"type": "message", "role": "assistant", "content": content}


# --- whole bodies ---


async def test_the_smallest_body(make_call: Callable[..., Call]) -> None:
    assert await sent(make_call, user_says("hi")) == (
        b'{"model":"m-test","input":[{"role":"user","content":"hi"}],"stream":true,"store":false,'
        b'"include":["reasoning.encrypted_content"],"reasoning":{"summary":"auto"}}'
    )


async def test_a_body_with_everything(make_call: Callable[..., Call]) -> None:
    request = ModelRequest(
        model="m-test",
        system="Be brief.",
        messages=[
            user("What is in a.md?", ImageBlock("aGk=", "image/png")),
            assistant(ThinkingBlock("hm"), "I look.", ToolUseBlock("call_1", "read_file", '{"path": "a.md"}')),
            result("call_1", "hello"),
        ],
        tools=(READ_FILE,),
        max_tokens=500,
        thinking="low",
        session_id="s-1",
        response_schema={"type": "object", "properties": {}, "additionalProperties": False},
    )
    body = await sent(make_call, request)
    assert problems(json.loads(body)) == []
    assert body == (
        b'{"model":"m-test","instructions":"Be brief.","input":[{"role":"user","content":['
        b'{"type":"input_text","text":"What is in a.md?"},'
        b'{"type":"input_image","image_url":"data:image/png;base64,aGk=","detail":"auto"}]},'
        b'{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look.","annotations":[]}]},'
        b'{"type":"function_call","call_id":"call_1","name":"read_file","arguments":"{\\"path\\": \\"a.md\\"}"},'
        b'{"type":"function_call_output","call_id":"call_1","output":"hello"}],'
        b'"tools":[{"type":"function","name":"read_file","description":"Reads a file.",'
        b'"parameters":{"type":"object","properties":{"path":{"type":"string"}}},"strict":false}],'
        b'"stream":true,"store":false,"include":["reasoning.encrypted_content"],'
        b'"reasoning":{"effort":"low","summary":"auto"},"max_output_tokens":500,'
        b'"text":{"format":{"type":"json_schema","name":"reply",'
        b'"schema":{"type":"object","properties":{},"additionalProperties":false},"strict":true}},'
        b'"prompt_cache_key":"s-1"}'
    )


async def test_headers(make_call: Callable[..., Call]) -> None:
    async with OpenAIServer([text("ok")]) as server:
        await make_call(server.base_url, "openai", api_key=KEY, options=Settings(wire="responses"))()
        (request,) = server.requests
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in request.path


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("o1", "responses"),
        ("o3-mini", "responses"),
        ("o4-mini-2025-04-16", "responses"),
        ("gpt-5", "responses"),
        ("gpt-5.1-codex", "responses"),
        ("gpt-6-astra", "responses"),
        ("gpt-10", "responses"),
        ("gpt-5-chat-latest", "chat/completions"),
        ("gpt-4o", "chat/completions"),
        ("gpt-4.1-mini", "chat/completions"),
        ("omni", "chat/completions"),
        ("gpt-oss-120b", "chat/completions"),
    ],
)
async def test_the_model_decides_for_openai_only(make_call: Callable[..., Call], model: str, path: str) -> None:
    request = ModelRequest(model=model, system="", messages=[user("hi")])
    bad = error(500)
    async with OpenAIServer(default=bad) as server:
        for kind in ("openai", "openai_compatible"):
            made = make_call(server.base_url, kind, default_model=model)
            with pytest.raises(Exception, match="500"):
                await made(request)
            wire = made.provider.wire_for(model)  # type: ignore[attr-defined]  # optional
            assert made.provider.wire == wire
        ours, theirs = server.requests
    assert ours.path == f"/v1/{path}"
    assert theirs.path == "/v1/chat/completions"


async def test_a_cap_below_what_the_wire_takes_is_raised(make_call: Callable[..., Call]) -> None:
    assert json.loads(await sent(make_call, user_says("hi", max_tokens=7)))["max_output_tokens"] == 16
    assert json.loads(await sent(make_call, user_says("hi"), max_tokens=70))["max_output_tokens"] == 70


@pytest.mark.parametrize(
    ("thinking", "asked"),
    [
        ("high", {"effort": "high", "summary": "auto"}),
        ("none", {"effort": "none"}),
        ("adaptive", {"summary": "auto"}),
        (2048, {"effort": "low", "summary": "auto"}),
        (0, {"effort": "none"}),
        ("off", {"effort": "none"}),
    ],
)
async def test_thinking(make_call: Callable[..., Call], thinking: Any, asked: Any) -> None:
    assert json.loads(await sent(make_call, user_says("hi", thinking=thinking))).get("reasoning") == asked


async def test_models_that_do_not_think_are_not_asked_for_thoughts(make_call: Callable[..., Call]) -> None:
    messages = [user("a"), Message("assistant", (TextBlock("b"),), wire=WIRE, opaque=OPAQUE), user("c")]
    request = ModelRequest(model="gpt-4o", system="", messages=messages, thinking="off")
    body = json.loads(await sent(make_call, request))
    assert "include" not in body and "reasoning" not in body
    assert body["input"][1] == said("b")
    assert problems(body) == []


async def test_extra_body_is_merged(make_call: Callable[..., Call]) -> None:
    options = Settings(wire="responses", extra_body={"reasoning": {"summary": "detailed"}, "truncation": "auto"})
    body = json.loads(await sent(make_call, user_says("hi", thinking="low"), options=options))
    assert body["reasoning"] == {"effort": "low", "summary": "detailed"}
    assert body["truncation"] == "auto"


# --- messages ---


async def test_what_says_nothing_is_not_blank(make_call: Callable[..., Call]) -> None:
    items = await sent_items(
        make_call,
        user(" "),
        assistant(" ", ToolUseBlock("c", "f", "")),
        result("c", " \n"),
        assistant(ThinkingBlock("hm")),
        user("a", "b"),
    )
    assert [item.get("content") or item.get("output") for item in items] == ["(no text)", None, "(no output)", "a\n\nb"]
    assert items[1]["arguments"] == "{}"


async def test_images_of_results_stay_with_them(make_call: Callable[..., Call]) -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"}
    picture = ImageBlock("AAAA", "image/png")
    calls = assistant(ToolUseBlock("a", "read_file", "{}"), ToolUseBlock("b", "read_file", "{}"))
    items = await sent_items(make_call, user("look"), calls, result("a", "one", picture), result("b", "", picture))
    assert items[3]["output"] == [{"type": "input_text", "text": "one"}, image]
    assert items[4]["output"] == [image]


async def test_ids_and_names_of_others_are_made_to_fit(make_call: Callable[..., Call]) -> None:
    odd = "chatcmpl:tool/" + "x" * 80
    calls = assistant(ToolUseBlock(odd, "srv.docs/get", "{}"))
    items = await sent_items(make_call, user("x"), calls, result(odd, "ok"))
    assert items[1]["call_id"] == items[2]["call_id"]


async def test_other_wires_thinking_is_not_sent(make_call: Callable[..., Call]) -> None:
    theirs = Message(
        "assistant",
        (ThinkingBlock("hm", "c2ln"), RedactedThinkingBlock("b3A="), TextBlock("yes")),
        wire="anthropic",
        opaque={"items": [{"type": "reasoning", "id": "x"}]},
    )
    assert await sent_items(make_call, user("x"), theirs, user("y")) == [
        {"role": "user", "content": "x"},
        said("yes"),
        {"role": "user", "content": "y"},
    ]


# --- what comes back ---

THOUGHT = reasoning("I should look.", "There may be two.", encrypted="c2VjcmV0")
OPAQUE = {
    "items": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VjcmV0"},
        {"type": "message", "id": "msg_1", "status": "completed", "content": ["output_text"]},
    ]
}


async def round_trip(
    make_call: Callable[..., Call], answer: Reply, *others: Message, renamed: Sequence[str] = ()
) -> list[Any]:
    """The items sent after a reply was stored and its calls were answered."""
    async with OpenAIServer([answer, text("ok")]) as server:
        asking = make_call(server.base_url, "openai", options=Settings(wire="responses"))
        stored = answered(await asking(user_says("go")), WIRE)
        results = [result(block.id, "ok") for block in stored.tool_uses]
        messages = [user("go"), stored, *results, *(others or (() if results else (user("on"),)))]
        await asking(ModelRequest(model="m", system="", messages=messages))
        body = server.requests[1].json
    issued = {item["id"]: item for item in [THOUGHT, *EXTRA] if "id" in item}
    issued |= {name: {} for name in ("msg_1", "fc_1", "fc_2", "msg_2")}
    assert problems(body, issued=issued) == []
    items: list[Any] = body["input"][1:]
    return items


EXTRA = [{"type": "compaction", "id": "cmp_1", "encrypted_content": "eA=="}, reasoning(id="rs_2", encrypted="Mg==")]


async def test_reasoning_comes_back_before_the_calls_it_led_to(make_call: Callable[..., Call]) -> None:
    asked = reply(
        THOUGHT,
        message("I look.", phase="commentary"),
        call("read_file", {"path": "a"}, "call_a", id="fc_1"),
        EXTRA[1],
        call("read_file", {"path": "b"}, "call_b", id="fc_2"),
    )
    items = await round_trip(make_call, asked)
    assert items == [
        THOUGHT,
        said("I look.") | {"id": "msg_1", "status": "completed", "phase": "commentary"},
        {
            "type": "function_call",
            "call_id": "call_a",
            "name": "read_file",
            "arguments": '{"path": "a"}',
            "id": "fc_1",
        },
        EXTRA[1],
        {
            "type": "function_call",
            "call_id": "call_b",
            "name": "read_file",
            "arguments": '{"path": "b"}',
            "id": "fc_2",
        },
        {"type": "function_call_output", "call_id": "call_a", "output": "ok"},
        {"type": "function_call_output", "call_id": "call_b", "output": "ok"},
    ]


async def test_a_call_that_was_given_another_id_is_told_so(make_call: Callable[..., Call]) -> None:
    opaque = {"items": [OPAQUE["items"][0], {"type": "function_call", "id": "fc_1"}]}
    stored = Message("assistant", (ToolUseBlock("call_1-2", "f", "{}"),), wire=WIRE, opaque=opaque)
    items = await sent_items(make_call, user("x"), stored, result("call_1-2", "ok"))
    assert [item["type"] for item in items[1:]] == ["reasoning", "function_call", "function_call_output"]
    assert items[2]["call_id"] == items[3]["call_id"] == "call_1-2"


async def test_unknown_items_and_phases_come_back(make_call: Callable[..., Call]) -> None:
    items = await round_trip(make_call, reply(EXTRA[0], message("done", phase="final_answer")))
    assert items[0] == EXTRA[0]
    assert items[1]["phase"] == "final_answer"
    assert items[2:] == [{"role": "user", "content": "on"}]


async def test_parts_and_refusals_keep_their_kind(make_call: Callable[..., Call]) -> None:
    items = await round_trip(
        make_call, reply(THOUGHT, message("one", id="msg_1"), message("no", id="msg_2", refusal=True))
    )
    assert [item["content"][0].get("refusal") for item in items[1:3]] == [None, "no"]


async def test_nothing_is_stored_that_the_blocks_hold(make_call: Callable[..., Call]) -> None:
    async with OpenAIServer([reply(message("plain"), call("f", {}))]) as server:
        plain = await make_call(server.base_url, "openai", options=Settings(wire="responses"))()
    assert plain.opaque is None


async def test_reasoning_that_nothing_follows_is_left_out(make_call: Callable[..., Call]) -> None:
    cut = reply(message("half"), THOUGHT, status="incomplete", reason="max_output_tokens")
    items = await round_trip(make_call, cut)
    assert [item.get("type", "message") for item in items] == ["message", "message"]


async def test_reasoning_without_its_content_is_left_out_with_the_ids_that_ask_for_it(
    make_call: Callable[..., Call],
) -> None:
    items = await round_trip(make_call, reply(reasoning("hm", encrypted=None), message("a", phase="final_answer")))
    assert items[0] == said("a") | {"phase": "final_answer"}


@pytest.mark.parametrize(
    ("fields", "content"),
    [
        ({"wire": "openai-chat"}, (TextBlock("yes"),)),
        ({"provider": "another"}, (TextBlock("yes"),)),
        ({}, (TextBlock("yes"), TextBlock("more"))),
        ({}, (TextBlock("yes"), ToolUseBlock("c", "f", "{}"))),
        ({}, (ToolUseBlock("c", "f", "{}"),)),
        ({"opaque": {"items": [{"type": "message", "content": 5}]}}, (TextBlock("yes"),)),
        ({"opaque": {"items": [5]}}, (TextBlock("yes"),)),
        ({"opaque": {"items": "no"}}, (TextBlock("yes"),)),
        ({"opaque": {"other": 1}}, (TextBlock("yes"),)),
    ],
)
async def test_what_is_not_this_wires_or_was_changed_goes_as_text_and_calls(
    make_call: Callable[..., Call], fields: dict[str, Any], content: tuple[Any, ...]
) -> None:
    stored = Message("assistant", content, **{"wire": WIRE, "opaque": OPAQUE} | fields)
    answers = [result(block.id, "ok") for block in stored.tool_uses]
    items = await sent_items(make_call, user("x"), stored, *answers, user("y"))
    assert not any("id" in item or item.get("type") == "reasoning" for item in items)
    assert any(item == said("yes") or item.get("name") == "f" for item in items)


# --- kept bytes ---


def history(length: int) -> list[Message]:
    messages = [user("start")]
    for number in range(length):
        opaque = {
            "items": [
                {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "é" * 5},
                {"type": "message", "id": f"msg_{number}", "status": "completed", "content": ["output_text"]},
                {"type": "function_call", "id": f"fc_{number}"},
            ]
        }
        blocks = (TextBlock(f"step {number}"), ToolUseBlock(f"call_{number}", "read_file", '{"path": "é"}'))
        messages.append(Message("assistant", blocks, wire=WIRE, provider="mine", opaque=opaque))
        messages.append(result(f"call_{number}", f"result {number}"))
    return messages


async def bodies(make_call: Callable[..., Call], *requests: ModelRequest) -> list[bytes]:
    async with OpenAIServer(default=text("ok")) as server:
        asking = make_call(server.base_url, "openai", options=Settings(wire="responses"))
        for request in requests:
            await asking(request)
        return [request.body for request in server.requests]


async def test_what_was_sent_is_sent_again_to_the_byte(make_call: Callable[..., Call]) -> None:
    messages = history(6)
    cache: dict[str, Any] = {}
    requests = [
        ModelRequest(model="m", system="s", messages=messages[:length], tools=(READ_FILE,), cache=cache)
        for length in range(1, len(messages) + 1, 2)
    ]
    made = await bodies(make_call, *requests)
    assert all(problems(json.loads(body)) == [] for body in made)
    prefixes = [body[: body.index(b'],"tools":')] for body in made]
    for shorter, longer in pairwise(prefixes):
        assert longer.startswith(shorter)
    assert len({body[body.index(b'],"tools":') :] for body in made}) == 1


async def test_kept_bytes_make_no_difference(make_call: Callable[..., Call]) -> None:
    messages = history(5)
    replaced = [*messages[:3], user("another"), *messages[4:]]
    shortened = [user("start"), *messages[5:]]
    histories = [messages[:5], messages, messages[:3], replaced, messages, shortened, messages, messages[:1]]
    cache: dict[str, Any] = {}

    def asked(kept: dict[str, Any] | None) -> list[ModelRequest]:
        return [
            ModelRequest(model=model, system="", messages=old, cache={} if kept is None else kept)
            for old in histories
            for model in ("m", "gpt-4o", "m")
        ]

    assert await bodies(make_call, *asked(cache)) == await bodies(make_call, *asked(None))


# --- what may be refused ---

SUMMARY = "Your organization must be verified to generate reasoning summaries."


@pytest.mark.parametrize(
    ("refusal", "dropped"),
    [
        (error(400, SUMMARY), "reasoning"),
        (error(400, "Unsupported parameter: 'reasoning.summary' is not supported with this model."), "reasoning"),
        (error(400, "Encrypted content is not supported with this model."), "include"),
    ],
)
async def test_what_was_asked_for_unasked_is_dropped_when_it_is_refused(
    make_call: Callable[..., Call], refusal: Reply, dropped: str
) -> None:
    async with OpenAIServer([refusal, text("one"), text("two")]) as server:
        asking = make_call(server.base_url, "openai", options=Settings(wire="responses"))
        await asking()
        await asking()
        assert asking.text == "onetwo"
        assert [dropped in request.json for request in server.requests] == [True, False, False]


async def test_what_the_user_asked_for_is_not_dropped(make_call: Callable[..., Call]) -> None:
    options = Settings(wire="responses", reasoning_summary="detailed", reasoning=True)
    for words in (SUMMARY, "Encrypted content is not supported with this model."):
        async with OpenAIServer([error(400, words), text("no")]) as server:
            with pytest.raises(InvalidRequestError):
                await make_call(server.base_url, "openai", options=options)()
            assert len(server.requests) == 1
            assert server.requests[0].json["reasoning"] == {"summary": "detailed"}


async def test_each_is_dropped_once(make_call: Callable[..., Call]) -> None:
    words = f"{SUMMARY} Encrypted content is not supported with this model. stream_options"
    async with OpenAIServer(default=error(400, words)) as server:
        with pytest.raises(InvalidRequestError):
            await make_call(server.base_url, "openai", options=Settings(wire="responses"))()
        assert len(server.requests) <= 3
