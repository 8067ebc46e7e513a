"""What is sent: bodies of requests to the byte, and that they grow without changing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest

from openheim.errors import AuthError, InvalidRequestError
from openheim.messages import (
    ImageBlock,
    Message,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    UnknownBlock,
)
from openheim.providers import ModelRequest, ToolSpec
from openheim_provider_openai.plugin import Settings
from tests.providers.conftest import KEY, Call, assistant, result, user, user_says
from tests.support.openai_server import OpenAIServer
from tests.support.openai_validator import problems
from tests.support.openai_wire import error, text

pytestmark = pytest.mark.anyio

READ_FILE = ToolSpec("read_file", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})


async def sent(make_call: Callable[..., Call], request: ModelRequest, kind: str = "openai", **fields: Any) -> bytes:
    """The body of the request that goes out."""
    async with OpenAIServer([text("ok")]) as server:
        await make_call(server.base_url, kind, **fields)(request)
        (sent,) = server.requests
    if request.messages and "options" not in fields:
        assert problems(sent.json) == []
    return sent.body


async def sent_messages(make_call: Callable[..., Call], *messages: Message) -> list[Any]:
    request = ModelRequest(model="m", system="", messages=messages)
    body = json.loads(await sent(make_call, request))
    wire: list[Any] = body["messages"]
    return wire


# --- whole bodies ---


async def test_the_smallest_body(make_call: Callable[..., Call]) -> None:
    assert await sent(make_call, user_says("hi")) == (
        b'{"model":"m-test","messages":[{"role":"user","content":"hi"}],'
        b'"stream":true,"stream_options":{"include_usage":true}}'
    )


async def test_a_body_with_everything(make_call: Callable[..., Call]) -> None:
    request = ModelRequest(
        model="m-test",
        system="Be brief.",
        messages=[
            user("What is in a.md?"),
            assistant(
                ThinkingBlock("let me look", "signature"),
                "I look.",
                ToolUseBlock("call_1", "read_file", '{"path": "a.md"}'),
            ),
            result("call_1", "hello"),
        ],
        tools=(READ_FILE,),
        max_tokens=500,
        thinking="low",
    )
    assert await sent(make_call, request) == (
        b'{"model":"m-test","messages":[{"role":"system","content":"Be brief."},'
        b'{"role":"user","content":"What is in a.md?"},'
        b'{"role":"assistant","content":"I look.","tool_calls":[{"id":"call_1","type":"function",'
        b'"function":{"name":"read_file","arguments":"{\\"path\\": \\"a.md\\"}"}}]},'
        b'{"role":"tool","tool_call_id":"call_1","content":"hello"}],'
        b'"tools":[{"type":"function","function":{"name":"read_file","description":"Reads a file.",'
        b'"parameters":{"type":"object","properties":{"path":{"type":"string"}}}}}],'
        b'"stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":500,"reasoning_effort":"low"}'
    )


async def test_no_messages_at_all(make_call: Callable[..., Call]) -> None:
    body = json.loads(await sent(make_call, ModelRequest(model="m", system="", messages=[])))
    assert body["messages"] == []


async def test_headers(make_call: Callable[..., Call]) -> None:
    async with OpenAIServer(default=text("ok")) as server:
        await make_call(server.base_url, api_key=KEY)()
        await make_call(server.base_url)()
        with_key, without = server.requests
    assert (with_key.method, with_key.path) == ("POST", "/v1/chat/completions")
    assert with_key.headers["authorization"] == f"Bearer {KEY}"
    assert with_key.headers["content-type"] == "application/json"
    assert "authorization" not in without.headers


@pytest.mark.parametrize(("kind", "field"), [("openai", "max_completion_tokens"), ("openai_compatible", "max_tokens")])
async def test_the_cap_on_replies(make_call: Callable[..., Call], kind: str, field: str) -> None:
    other = {"max_tokens", "max_completion_tokens"} - {field}
    body = json.loads(await sent(make_call, user_says("hi", max_tokens=7), kind))
    assert body[field] == 7
    assert not other & body.keys()
    from_entry = json.loads(await sent(make_call, user_says("hi"), kind, max_tokens=8))
    assert from_entry[field] == 8
    assert not {"max_tokens", "max_completion_tokens"} & json.loads(await sent(make_call, user_says("hi"), kind)).keys()


@pytest.mark.parametrize(
    ("model", "thinking", "effort"),
    [
        ("gpt-5.1", "off", "none"),
        ("gpt-6", 0, "none"),
        ("qwen3", "off", "none"),
        ("openai/gpt-5-mini", "off", "minimal"),
        ("gpt-5", "off", "minimal"),
        ("o3", "off", "low"),
        ("o4-mini", "off", "low"),
        ("gpt-5.1-codex-max", "off", "low"),
        ("gpt-5.2-pro", "off", "medium"),
        ("gpt-5-pro", "off", None),
        ("gpt-4o", "off", None),
        ("gpt-4o", 4096, None),
        ("gpt-4o", "high", "high"),
        ("gpt-5", 1, "low"),
        ("gpt-5", 4096, "low"),
        ("gpt-5", "4097", "medium"),
        ("gpt-5", 16_384, "medium"),
        ("gpt-5", 16_385, "high"),
        ("gpt-5", "adaptive", None),
        ("gpt-5", -1, None),
        ("gpt-5", None, None),
        ("gpt-5", "xhigh", "xhigh"),
    ],
)
async def test_thinking(make_call: Callable[..., Call], model: str, thinking: Any, effort: str | None) -> None:
    request = ModelRequest(model=model, system="", messages=[user("hi")], thinking=thinking)
    body = json.loads(await sent(make_call, request, "openai_compatible"))
    assert body.get("reasoning_effort") == effort


@pytest.mark.parametrize(("thinking", "requests"), [("off", 3), (4096, 3), ("low", 1)])
async def test_an_effort_that_nobody_named_is_left_out_once_refused(
    make_call: Callable[..., Call], thinking: Any, requests: int
) -> None:
    refusal = error(400, "Unsupported parameter: 'reasoning_effort' is not supported with this model.")
    async with OpenAIServer([refusal, text("ok"), text("ok")]) as server:
        asking = make_call(server.base_url)
        if requests == 1:
            with pytest.raises(InvalidRequestError):
                await asking(user_says("hi", thinking=thinking))
        else:
            await asking(user_says("hi", thinking=thinking))
            await asking(user_says("hi", thinking=thinking))
        assert ["reasoning_effort" in request.json for request in server.requests] == [True, False, False][:requests]


async def test_own_settings(make_call: Callable[..., Call]) -> None:
    options = Settings(
        stream_options=False,
        extra_headers={"X-Team": "a"},
        extra_body={"temperature": 0.5, "stop": ["x"]},
        max_tokens_field="max_completion_tokens",
    )
    async with OpenAIServer([text("ok")]) as server:
        await make_call(server.base_url, options=options, max_tokens=9)()
        (request,) = server.requests
    assert request.headers["x-team"] == "a"
    assert request.json == {
        "model": "m-test",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "max_completion_tokens": 9,
        "temperature": 0.5,
        "stop": ["x"],
    }


# --- messages ---


async def test_text_of_users_is_a_string(make_call: Callable[..., Call]) -> None:
    messages = await sent_messages(make_call, user("[3 messages left out]", "go on"), user(" "), user())
    assert [message["content"] for message in messages] == ["[3 messages left out]\n\ngo on", "(no text)", "(no text)"]


async def test_images_make_parts(make_call: Callable[..., Call]) -> None:
    (message,) = await sent_messages(make_call, user("what is this?", ImageBlock("aGk=", "image/png")))
    assert message["content"] == [
        {"type": "text", "text": "what is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
    ]


async def test_images_of_results_follow_all_results_of_the_reply(make_call: Callable[..., Call]) -> None:
    calls = assistant(ToolUseBlock("a", "read_file", "{}"), ToolUseBlock("b", "read_file", "{}"))
    first = result("a", "one", ImageBlock("AAAA", "image/png"))
    second = result("b", "two", ImageBlock("BBBB", "image/jpeg"))
    messages = await sent_messages(make_call, user("look"), calls, first, second, assistant("seen"))
    roles = ["user", "assistant", "tool", "tool", "user", "assistant", "user"]
    assert [message["role"] for message in messages] == roles
    note, *images = messages[4]["content"]
    assert note["type"] == "text"
    assert [image["image_url"]["url"][-4:] for image in images] == ["AAAA", "BBBB"]


async def test_thinking_is_never_sent_back(make_call: Callable[..., Call]) -> None:
    messages = await sent_messages(
        make_call,
        user("x"),
        assistant(ThinkingBlock("secret thought"), RedactedThinkingBlock("data"), UnknownBlock({"type": "new"}), "yes"),
        user("y"),
        assistant(ThinkingBlock("only a thought")),
        user("z"),
    )
    assert messages == [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": "y"},
        {"role": "user", "content": "z"},
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        " ",
        '{"path":"a","content":"lo',
        "[1]",
        '"text"',
        "null",
        "no json",
        '{"a": NaN}',
        '{"a": -1e999}',
        "[" * 100_000,
    ],
)
async def test_arguments_that_are_no_object_do_not_break_the_request(
    make_call: Callable[..., Call], arguments: str
) -> None:
    calls = assistant("", ToolUseBlock("call_1", "read_file", arguments))
    messages = await sent_messages(make_call, user("x"), calls, result("call_1", "Error: arguments were cut"))
    assert messages[1]["content"] is None
    assert messages[1]["tool_calls"][0]["function"]["arguments"] == "{}"


async def test_halves_of_characters_do_not_break_the_request(make_call: Callable[..., Call]) -> None:
    body = await sent(make_call, user_says("a\ud83d b\udc00 \ud83d\ude00 é"))
    assert json.loads(body.decode())["messages"][0]["content"] == "a\ufffd b\ufffd 😀 é"


async def test_a_schema_that_json_cannot_say_is_an_error_that_names_the_tool(make_call: Callable[..., Call]) -> None:
    tool = ToolSpec("odd", "", {"type": "number", "maximum": float("inf")})
    async with OpenAIServer([text("ok")]) as server:
        with pytest.raises(InvalidRequestError, match="schema of tool 'odd'"):
            await make_call(server.base_url)(user_says("hi", tools=(tool,)))
        assert server.requests == []


# --- kept bytes ---


async def bodies(make_call: Callable[..., Call], *requests: ModelRequest) -> list[bytes]:
    async with OpenAIServer(default=text("ok")) as server:
        call = make_call(server.base_url)
        for request in requests:
            await call(request)
        return [request.body for request in server.requests]


def requests_of(cache: dict[str, Any], *histories: Sequence[Message], **fields: Any) -> list[ModelRequest]:
    fields = {"tools": (READ_FILE,), "system": "Be brief."} | fields
    return [ModelRequest(model="m", messages=history, cache=cache, **fields) for history in histories]


def history(length: int) -> list[Message]:
    messages = [user("start")]
    for number in range(length):
        images = (ImageBlock("AAAA", "image/png"),) if number % 3 == 0 else ()
        messages.append(assistant(f"step {number}", ToolUseBlock(f"call_{number}", "read_file", '{"path": "é"}')))
        messages.append(result(f"call_{number}", f"result {number}", *images))
    return messages


async def test_what_was_sent_is_sent_again_to_the_byte(make_call: Callable[..., Call]) -> None:
    messages = history(6)
    cache: dict[str, Any] = {}
    steps = [messages[:length] for length in range(1, len(messages) + 1, 2)]
    sent_bodies = await bodies(make_call, *requests_of(cache, *steps))
    prefixes = [body[: body.index(b'],"tools":')] for body in sent_bodies]
    for shorter, longer in pairwise(prefixes):
        assert longer.startswith(shorter)
    tails = {body[body.index(b'],"tools":') :] for body in sent_bodies}
    assert len(tails) == 1


async def test_kept_bytes_make_no_difference(make_call: Callable[..., Call]) -> None:
    messages = history(5)
    replaced = [*messages[:3], user("another"), *messages[4:]]
    shortened = [user("[2 messages left out]", "start"), *messages[5:]]
    histories = [messages[:4], messages, messages[:3], replaced, messages, shortened, [], messages, messages[:4]]
    cache: dict[str, Any] = {}
    with_cache = await bodies(make_call, *requests_of(cache, *histories))
    without = await bodies(make_call, *[request for history in histories for request in requests_of({}, history)])
    assert with_cache == without


async def test_system_and_tools_may_change(make_call: Callable[..., Call]) -> None:
    cache: dict[str, Any] = {}
    messages = history(2)
    variants: list[dict[str, Any]] = [{}, {"system": "Be long."}, {"tools": ()}, {"system": ""}, {}]
    requests = [requests_of(cache, messages, **fields)[0] for fields in variants]
    fresh = [requests_of({}, messages, **fields)[0] for fields in variants]
    assert await bodies(make_call, *requests) == await bodies(make_call, *fresh)


class Counted(Message):
    """A message that counts how often its text is looked at."""

    looks = 0

    @property
    def text(self) -> str:
        type(self).looks += 1
        return super().text


async def test_old_messages_are_not_encoded_again(make_call: Callable[..., Call]) -> None:
    cache: dict[str, Any] = {}
    messages = [Counted("assistant", (TextBlock(f"step {number}"),)) for number in range(20)]
    await bodies(make_call, *requests_of(cache, *(messages[:length] for length in range(1, 21))))
    assert Counted.looks == 20


# --- the one second request ---


async def test_a_server_that_refuses_stream_options_is_asked_without(make_call: Callable[..., Call]) -> None:
    refusal = error(400, "Unrecognized request argument supplied: stream_options")
    async with OpenAIServer([refusal, text("one"), text("two")]) as server:
        call = make_call(server.base_url)
        await call()
        await call()
        assert call.text == "onetwo"
        assert ["stream_options" in request.json for request in server.requests] == [True, False, False]


@pytest.mark.parametrize(("status", "message"), [(400, "max_tokens is wrong"), (500, "stream_options failed")])
async def test_nothing_else_is_sent_twice(make_call: Callable[..., Call], status: int, message: str) -> None:
    async with OpenAIServer([error(status, message), text("no")]) as server:
        with pytest.raises(Exception, match=message):
            await make_call(server.base_url)()
        assert len(server.requests) == 1


async def test_stream_options_that_were_asked_for_are_not_dropped(make_call: Callable[..., Call]) -> None:
    async with OpenAIServer([error(400, "no stream_options here"), text("no")]) as server:
        with pytest.raises(InvalidRequestError, match="no stream_options here"):
            await make_call(server.base_url, options=Settings(stream_options=True))()
        assert len(server.requests) == 1


async def test_a_refusal_that_stays_is_told(make_call: Callable[..., Call]) -> None:
    async with OpenAIServer(default=error(400, "no stream_options here")) as server:
        with pytest.raises(InvalidRequestError, match="no stream_options here"):
            await make_call(server.base_url)()
        assert len(server.requests) == 2


@pytest.mark.parametrize("wire", ["chat", "responses"])
async def test_models_without_tools_are_offered_none(make_call: Callable[..., Call], wire: Any) -> None:
    request = ModelRequest("m", "", [user("hi")], (READ_FILE,))
    for tools in (None, False):
        async with OpenAIServer([error(401, "no")]) as server:
            with pytest.raises(AuthError):
                await make_call(server.base_url, options=Settings(wire=wire, tools=tools))(request)
            assert ("tools" in server.requests[0].json) is (tools is None)
