"""What is sent: bodies of requests, that the service would take them, and that they grow without changing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count, pairwise
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openheim.agent.repair import RepairedHistory, repaired
from openheim.errors import InvalidRequestError
from openheim.messages import (
    Block,
    ImageBlock,
    Message,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
    message_from_stored,
)
from openheim.providers import ModelRequest, ProviderSettings, ToolSpec
from openheim.testing import HttpAnswer, PrefixGuard, ScriptedHttp
from openheim_provider_anthropic.plugin import Settings, openheim_create_provider
from tests.providers.conftest import CASES, KEY, Call, assistant, user, user_says
from tests.support.anthropic_server import AnthropicServer
from tests.support.anthropic_validator import problems
from tests.support.anthropic_wire import block, message, models, text, tool_calls

pytestmark = pytest.mark.anyio

WIRE = "anthropic-messages"
READ_FILE = ToolSpec("read_file", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
PNG = ImageBlock("iVBORw0KGgo=", "image/png")
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"encrypted_content": "e"}]}

MakeCall = Callable[..., Call]


def result(call_id: str, content: str, *images: ImageBlock, is_error: bool = False) -> Message:
    return Message("tool", (ToolResultBlock(call_id, "read_file", content, is_error, images),))


def call(call_id: str = "toolu_1", arguments: str = '{"path": "a.md"}', name: str = "read_file") -> ToolUseBlock:
    return ToolUseBlock(call_id, name, arguments)


async def sent_bytes(make_call: MakeCall, request: ModelRequest, **fields: Any) -> bytes:
    """The body of the request that goes out, which is one that the service would take."""
    async with AnthropicServer([text("ok")]) as server:
        await make_call(server.base_url, "anthropic", **fields)(request)
        return server.prompts[0].body


async def sent(make_call: MakeCall, request: ModelRequest, **fields: Any) -> Any:
    return json.loads(await sent_bytes(make_call, request, **fields))


async def sent_messages(make_call: MakeCall, *messages: Message, **fields: Any) -> list[Any]:
    """The messages that go out, without marks."""
    fields.setdefault("options", Settings(cache=False))
    body = await sent(make_call, ModelRequest("m", "", repaired(messages), (READ_FILE,)), **fields)
    wire: list[Any] = body["messages"]
    return wire


# --- whole bodies ---


async def test_the_smallest_body(make_call: MakeCall) -> None:
    assert await sent_bytes(make_call, user_says("hi"), options=Settings(cache=False)) == (
        b'{"model":"m-test","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],'
        b'"max_tokens":16000,"stream":true}'
    )


async def test_a_body_with_everything(make_call: MakeCall) -> None:
    request = ModelRequest(
        model="claude-sonnet-4-6",
        system="Be brief.",
        messages=[
            user("What is in a.md?"),
            assistant(ThinkingBlock("let me look", "c2ln"), "I look.", call(), wire=WIRE),
            result("toolu_1", "hello"),
            user("And?"),
        ],
        tools=(READ_FILE,),
        max_tokens=500,
        thinking="low",
    )
    assert await sent_bytes(make_call, request) == (
        b'{"model":"claude-sonnet-4-6",'
        b'"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],'
        b'"tools":[{"name":"read_file","description":"Reads a file.",'
        b'"input_schema":{"type":"object","properties":{"path":{"type":"string"}}},'
        b'"cache_control":{"type":"ephemeral"}}],'
        b'"messages":[{"role":"user","content":[{"type":"text","text":"What is in a.md?",'
        b'"cache_control":{"type":"ephemeral"}}]},'
        b'{"role":"assistant","content":[{"type":"thinking","thinking":"let me look","signature":"c2ln"},'
        b'{"type":"text","text":"I look."},'
        b'{"type":"tool_use","id":"toolu_1","name":"read_file","input":{"path":"a.md"}}]},'
        b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"hello"},'
        b'{"type":"text","text":"And?","cache_control":{"type":"ephemeral"}}]}],'
        b'"max_tokens":500,"thinking":{"type":"adaptive"},"output_config":{"effort":"low"},"stream":true}'
    )


async def test_headers(make_call: MakeCall) -> None:
    async with AnthropicServer(default=text("ok")) as server:
        await make_call(server.base_url, "anthropic", api_key=KEY)()
        options = Settings(extra_headers={"Anthropic-Beta": "a-2026-01-01", "anthropic-version": "2026-10-21"})
        await make_call(server.base_url, "anthropic", options=options)()
        with_key, without = server.prompts
    assert (with_key.method, with_key.path) == ("POST", "/v1/messages")
    assert with_key.headers["x-api-key"] == KEY
    assert with_key.headers["anthropic-version"] == "2023-06-01"
    assert "x-api-key" not in without.headers
    assert without.headers["anthropic-beta"] == "a-2026-01-01"
    assert without.headers["anthropic-version"] == "2026-10-21"


async def test_fields_of_the_user(make_call: MakeCall) -> None:
    options = Settings(extra_body={"metadata": {"user_id": "u"}, "output_config": {"effort": "max"}})
    body = await sent(make_call, user_says("hi", response_schema={"type": "string"}), options=options)
    assert body["metadata"] == {"user_id": "u"}
    assert body["output_config"] == {
        "effort": "max",
        "format": {"type": "json_schema", "schema": {"type": "string"}},
    }


async def test_the_cap_on_replies(make_call: MakeCall) -> None:
    assert (await sent(make_call, user_says("hi")))["max_tokens"] == 16_000
    assert (await sent(make_call, user_says("hi"), max_tokens=8))["max_tokens"] == 8
    assert (await sent(make_call, user_says("hi", max_tokens=7), max_tokens=8))["max_tokens"] == 7
    request = user_says("hi")
    request.model = "claude-3-5-haiku-latest"
    assert (await sent(make_call, request))["max_tokens"] == 8192
    # What the service has listed goes before what is known of the name.
    assert (await sent(make_call, user_says("hi", max_output_tokens=900)))["max_tokens"] == 900
    assert (await sent(make_call, user_says("hi", max_output_tokens=900, max_tokens=7)))["max_tokens"] == 7
    assert (await sent(make_call, user_says("hi", max_output_tokens=90_000)))["max_tokens"] == 16_000


async def test_the_service_itself_says_what_a_model_takes(make_call: MakeCall) -> None:
    types = {"adaptive": {"supported": False}, "enabled": {"supported": True}, "disabled": {"supported": True}}
    entry = {
        "id": "m-test",
        "max_tokens": 4000,
        "capabilities": {
            "thinking": {"supported": True, "types": types},
            "effort": {"supported": False},
            "structured_outputs": {"supported": False},
        },
    }
    async with AnthropicServer(default=text("ok"), models=[models(entry)]) as server:
        ask = make_call(server.base_url, "anthropic")
        await ask.provider.models()  # type: ignore[attr-defined]  # not part of the protocol
        await ask(user_says("hi", thinking="high", response_schema={"type": "string"}))
    body = server.prompts[0].json
    assert body["max_tokens"] == 4000
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2000}
    assert "output_config" not in body


async def test_a_request_that_cannot_be_written_spoils_nothing(make_call: MakeCall) -> None:
    cache: dict[str, Any] = {}
    async with AnthropicServer([text("ok")]) as server:
        bad = make_call(
            server.base_url, "anthropic", options=Settings.model_construct(extra_body={"top_p": float("nan")})
        )
        with pytest.raises(InvalidRequestError, match="a field of the request cannot be sent as JSON") as kept:
            await bad(ModelRequest("m", "", [user("x")], cache=cache))
        odd = ToolSpec("odd", "", {"properties": {"a": {"default": float("inf")}}})
        with pytest.raises(InvalidRequestError, match="the schema of tool 'odd'") as kept_too:
            await make_call(server.base_url, "anthropic")(ModelRequest("m", "", [user("x")], (odd,), cache=cache))
        await make_call(server.base_url, "anthropic")(ModelRequest("m", "", [user("x"), user("y")], cache=cache))
    assert len(server.prompts[0].json["messages"][0]["content"]) == 2
    del kept, kept_too


# --- thinking ---

SUMMARIZED = {"type": "adaptive", "display": "summarized"}


@pytest.mark.parametrize(
    ("model", "thinking", "expected"),
    [
        ("claude-sonnet-4-6", None, {"thinking": {"type": "adaptive"}}),
        ("claude-sonnet-4-6", "adaptive", {"thinking": {"type": "adaptive"}}),
        ("claude-sonnet-4-6", "off", {"thinking": {"type": "disabled"}}),
        (
            "claude-sonnet-4-6",
            "high",
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
        ),
        (
            "claude-sonnet-4-6",
            2000,
            {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 18_000},
        ),
        ("claude-sonnet-4-6", "2000", {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 18_000}),
        ("claude-sonnet-4-6", 5, {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 17_024}),
        ("claude-sonnet-4-6", 0, {"thinking": {"type": "disabled"}}),
        # Models that think within a budget only.
        ("claude-haiku-4-5", None, {}),
        ("claude-haiku-4-5-20251001", "adaptive", {"thinking": {"type": "enabled", "budget_tokens": 8192}}),
        ("anthropic/claude-haiku-4.5", "low", {"thinking": {"type": "enabled", "budget_tokens": 4096}}),
        (
            "claude-opus-4-20250514",
            "max",
            {"thinking": {"type": "enabled", "budget_tokens": 16_000}, "max_tokens": 32_000},
        ),
        (
            "claude-opus-4-5",
            "medium",
            {"thinking": {"type": "enabled", "budget_tokens": 8192}, "output_config": {"effort": "medium"}},
        ),
        # Models that take no budget, and hide what they think unless asked.
        ("claude-opus-4-7", None, {"thinking": SUMMARIZED}),
        ("claude-opus-5", "off", {"thinking": {"type": "disabled"}}),
        ("claude-sonnet-5-5", "off", {"thinking": {"type": "between_tools"}}),
        ("claude-opus-5", 10_000, {"thinking": SUMMARIZED, "output_config": {"effort": "medium"}}),
        # Models that always think.
        ("claude-opus-5-5", "off", {"output_config": {"effort": "low"}}),
        ("claude-fable-5", "none", {"output_config": {"effort": "low"}}),
        ("claude-mythos-preview", 4000, {"thinking": {"type": "enabled", "budget_tokens": 4000}}),
        # Models that never do.
        ("claude-3-5-sonnet-20241022", None, {}),
        ("claude-3-5-sonnet-20241022", "high", {}),
        ("claude-3-opus-20240229", "off", {"max_tokens": 4096}),
        # Models of others.
        ("glm-5", None, {}),
        ("kimi-k2", "adaptive", {"thinking": {"type": "adaptive"}}),
        ("kimi-k2", "high", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
        ("anthropic/claude-opus-latest", None, {"thinking": {"type": "adaptive"}}),
        ("kimi-k3", "off", {"thinking": {"type": "disabled"}}),
    ],
)
async def test_thinking(make_call: MakeCall, model: str, thinking: Any, expected: dict[str, Any]) -> None:
    request = user_says("hi", thinking=thinking)
    request.model = model
    body = await sent(make_call, request)
    assert {key: body[key] for key in ("thinking", "output_config") if key in body} == {
        key: value for key, value in expected.items() if key != "max_tokens"
    }
    if "max_tokens" in expected:
        assert body["max_tokens"] == expected["max_tokens"]
    from_entry = user_says("hi")
    from_entry.model = model
    assert await sent(make_call, from_entry, thinking=thinking) == body


async def test_a_budget_needs_room(make_call: MakeCall) -> None:
    request = user_says("hi", thinking=5000, max_tokens=5000)
    request.model = "claude-sonnet-4-5"
    ask = make_call("http://127.0.0.1:9/v1", "anthropic")
    with pytest.raises(
        InvalidRequestError, match="thinking may take 5000 tokens, and the whole reply only 5000"
    ) as err:
        await ask(request)
    assert "max_tokens" in err.value.hint
    request.max_tokens = 5001
    assert (await sent(make_call, request))["thinking"] == {"type": "enabled", "budget_tokens": 5000}


async def test_a_word_that_is_no_thinking(make_call: MakeCall) -> None:
    with pytest.raises(InvalidRequestError, match=r"'turbo'.*adaptive"):
        await make_call("http://127.0.0.1:9/v1", "anthropic")(user_says("hi", thinking="turbo"))


@pytest.mark.parametrize(
    ("begins", "thinks"),
    [
        ((ThinkingBlock("hm", "c2ln"), call()), True),
        ((RedactedThinkingBlock("eA=="), call()), True),
        (("I look.", call()), False),
        ((ThinkingBlock("hm"), call()), False),
    ],
)
async def test_a_turn_without_its_thinking_goes_on_without(
    make_call: MakeCall, begins: tuple[Block | str, ...], thinks: bool
) -> None:
    turn = [
        user("look"),
        assistant(*begins, wire=WIRE),
        result("toolu_1", "x"),
        assistant(call("t2")),
        result("t2", "y"),
    ]
    request = ModelRequest("claude-sonnet-4-5", "", turn, (READ_FILE,), thinking=4000)
    assert (await sent(make_call, request))["thinking"]["type"] == ("enabled" if thinks else "disabled")
    # The next turn thinks again, and models that decide themselves do not mind.
    request.messages = [*turn, assistant("It is y."), user("And now?")]
    assert (await sent(make_call, request))["thinking"]["type"] == "enabled"
    request = ModelRequest("claude-opus-4-6", "", turn, (READ_FILE,))
    assert (await sent(make_call, request))["thinking"]["type"] == "adaptive"


async def test_a_turn_of_another_wire_goes_on_without_thinking(make_call: MakeCall) -> None:
    mixed = [
        user("look"),
        assistant(ThinkingBlock("hm", "c2ln"), call(), wire=WIRE),
        result("toolu_1", "x"),
        assistant(ThinkingBlock("hm", "other"), call("t2"), wire="openai-responses"),
        result("t2", "y"),
    ]
    request = ModelRequest("claude-sonnet-4-5", "", mixed, (READ_FILE,), thinking=4000)
    body = await sent(make_call, request)
    assert body["thinking"] == {"type": "disabled"}
    assert [part["type"] for part in body["messages"][3]["content"]] == ["tool_use"]
    request.model = "claude-opus-4-6"
    assert (await sent(make_call, request))["thinking"] == {"type": "adaptive"}


# --- messages ---


async def test_signed_and_redacted_thinking_goes_back_in_order(make_call: MakeCall) -> None:
    blocks: tuple[Block, ...] = (
        ThinkingBlock("one", "c2lnLTE="),
        RedactedThinkingBlock("b3A="),
        ThinkingBlock("", "c2lnLTI="),
        TextBlock("Go."),
        ThinkingBlock("two", "c2lnLTM="),
        call(),
    )
    for wire in (WIRE, None):
        sent = await sent_messages(make_call, user("x"), assistant(*blocks, wire=wire), result("toolu_1", "ok"))
        assert sent[1]["content"][:5] == [
            {"type": "thinking", "thinking": "one", "signature": "c2lnLTE="},
            {"type": "redacted_thinking", "data": "b3A="},
            {"type": "thinking", "thinking": "", "signature": "c2lnLTI="},
            {"type": "text", "text": "Go."},
            {"type": "thinking", "thinking": "two", "signature": "c2lnLTM="},
        ]
    sent = await sent_messages(make_call, user("x"), assistant(*blocks, wire="gemini"), result("toolu_1", "ok"))
    assert [part["type"] for part in sent[1]["content"]] == ["text", "tool_use"]


async def test_what_another_entry_signed_stays_here(make_call: MakeCall) -> None:
    """A session that moves from one entry of this kind to another: each service takes back only its own."""
    made = {"kimi": {"a2ltaQ==", "a2ltaTI="}, "mine": {"bWluZQ==", "bWluZTI="}}
    history = [user("x")]
    for entry, (signature, data) in ((entry, sorted(made[entry])) for entry in made):
        extra = {"text": {"0": {"citations": [{"cited_text": entry}]}}, "container": {"id": entry}}
        blocks = (
            ThinkingBlock("hm", signature),
            RedactedThinkingBlock(data),
            UnknownBlock(SEARCH),
            UnknownBlock(FOUND),
        )
        history.append(assistant(*blocks, entry, call(f"of_{entry}"), wire=WIRE, provider=entry, opaque=extra))
        history.append(result(f"of_{entry}", "ok"))
    body = await sent(make_call, ModelRequest("claude-sonnet-4-5", "", history, (READ_FILE,), thinking=4000))
    assert problems(body, issued=made["mine"]) == []
    assert [block["type"] for block in body["messages"][1]["content"]] == ["text", "tool_use"]
    assert "citations" not in body["messages"][1]["content"][0]
    assert [block["type"] for block in body["messages"][3]["content"]][:2] == ["thinking", "redacted_thinking"]
    assert body["messages"][3]["content"][4]["citations"] == [{"cited_text": "mine"}]
    assert body["container"] == "mine"
    # Before it has answered itself, it has no thinking to begin the turn with, and no container.
    body = await sent(make_call, ModelRequest("claude-sonnet-4-5", "", history[:3], (READ_FILE,), thinking=4000))
    assert problems(body, issued=made["mine"]) == []
    assert body["thinking"] == {"type": "disabled"}
    assert "container" not in body


async def test_what_another_entry_has_paused_is_not_gone_on_with(make_call: MakeCall) -> None:
    paused = assistant("Looking", wire=WIRE, provider="kimi", stop_reason="paused")
    sent = await sent_messages(make_call, user("x"), paused)
    assert sent[-1] == {"role": "user", "content": [{"type": "text", "text": "Go on."}]}


async def test_thinking_that_cannot_be_sent(make_call: MakeCall) -> None:
    unsigned = await sent_messages(make_call, user("x"), assistant(ThinkingBlock("hm"), "Yes."), user("y"))
    assert unsigned[1]["content"] == [{"type": "text", "text": "Yes."}]
    # No message may end with thinking, and none may be empty.
    at_the_end = await sent_messages(
        make_call, user("x"), assistant(ThinkingBlock("hm", "c2ln"), RedactedThinkingBlock("e")), user("y")
    )
    assert at_the_end == [
        {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]},
    ]


async def test_results_and_text_are_one_message(make_call: MakeCall) -> None:
    sent = await sent_messages(
        make_call,
        user("look"),
        assistant(call("t1"), call("t2")),
        result("t1", "a", PNG),
        result("t2", " ", is_error=True),
        user("and?", PNG, "yes"),
    )
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG.data}}
    assert sent[2] == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a"}, image]},
            {"type": "tool_result", "tool_use_id": "t2", "content": "(no output)", "is_error": True},
            {"type": "text", "text": "and?"},
            image,
            {"type": "text", "text": "yes"},
        ],
    }


async def test_images_that_cannot_be_shown(make_call: MakeCall) -> None:
    sent = await sent_messages(
        make_call,
        user(ImageBlock("PHN2Zz4=", "image/svg+xml"), ImageBlock("eA==", "image/JPG")),
        assistant(PNG, call()),
        result("toolu_1", "", ImageBlock("", "image/png"), PNG),
    )
    assert [part["type"] for part in sent[0]["content"]] == ["text", "image"]
    assert "image/svg+xml" in sent[0]["content"][0]["text"]
    assert sent[0]["content"][1]["source"]["media_type"] == "image/jpeg"
    assert [part["type"] for part in sent[1]["content"]] == ["text", "tool_use"]
    assert [part["type"] for part in sent[2]["content"][0]["content"]] == ["text", "image"]


@pytest.mark.parametrize("arguments", ["", "[1]", '{"path": "a', "null", '{"a": NaN}', "[" * 100_000])
async def test_arguments_that_are_no_object(make_call: MakeCall, arguments: str) -> None:
    sent = await sent_messages(make_call, user("x"), assistant(call(arguments=arguments)), result("toolu_1", "no"))
    assert sent[1]["content"][0]["input"] == {}


async def test_ids_of_calls(make_call: MakeCall) -> None:
    odd = ("call:1|x", "ü", "a" * 65, " ")
    blocks = [call(one) for one in odd]
    sent = await sent_messages(make_call, user("x"), assistant(*blocks), *(result(one, one or "-") for one in odd))
    ids = [part["id"] for part in sent[1]["content"]]
    assert len(set(ids)) == len(odd)
    assert [part["tool_use_id"] for part in sent[2]["content"]] == ids


async def test_ids_used_twice(make_call: MakeCall) -> None:
    history = [
        user("x"),
        assistant(call("c1"), call("c1")),
        result("c1", "one"),
        assistant(call("c1")),
        result("c1", "two"),
        user("y"),
    ]
    sent = await sent_messages(make_call, *history)
    assert sent[1]["content"][0]["id"] == "c1"
    second = sent[3]["content"][0]["id"]
    assert second != "c1"
    assert sent[4]["content"][0] == {"type": "tool_result", "tool_use_id": second, "content": "two"}
    assert await sent_messages(make_call, *history) == sent


async def test_names_of_tools(make_call: MakeCall) -> None:
    tools = (ToolSpec("datei.lesen/ü", "Liest.", {}), READ_FILE)
    request = user_says("hi", tools=tools)
    async with AnthropicServer([tool_calls(("x", {}))]) as server:
        server._script.clear()

        def reply(request: Any) -> Any:
            return tool_calls((request.json["tools"][0]["name"], {}), ("read_file", {}), ("unknown", {}))

        server._chosen = reply
        ask = make_call(server.base_url, "anthropic")
        got = await ask(request)
    assert [one.name for one in got.content if isinstance(one, ToolUseBlock)] == [tools[0].name, "read_file", "unknown"]
    sent = await sent_messages(make_call, user("x"), assistant(call(name=tools[0].name)), result("toolu_1", "ok"))
    assert sent[1]["content"][0]["name"] == server.prompts[0].json["tools"][0]["name"]


async def test_calls_without_tools(make_call: MakeCall) -> None:
    body = await sent(make_call, ModelRequest("m", "", [user("x"), assistant(call()), result("toolu_1", "ok")]))
    assert body["tool_choice"] == {"type": "none"}
    assert len(body["tools"]) == 1


async def test_both_ends_are_the_users(make_call: MakeCall) -> None:
    assert [message["role"] for message in await sent_messages(make_call)] == ["user"]
    assert [message["role"] for message in await sent_messages(make_call, user(UnknownBlock({"type": "new"})))] == [
        "user"
    ]
    body = await sent(make_call, ModelRequest("m", "", [user(" "), assistant("Hello."), user(" ")]))
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]


async def test_system_text_in_the_conversation(make_call: MakeCall) -> None:
    sent = await sent_messages(make_call, user("x"), Message("system", (TextBlock("Be brief."),)), assistant("Yes."))
    assert sent[0]["content"][1] == {"type": "text", "text": "Be brief."}


# --- tools of the service ---


async def test_tools_of_the_service(make_call: MakeCall) -> None:
    options = Settings(server_tools=({"type": "web_search_20250305", "name": "web_search", "max_uses": 3},))
    body = await sent(make_call, user_says("hi", tools=(READ_FILE,)), options=options)
    assert [tool["name"] for tool in body["tools"]] == ["read_file", "web_search"]
    assert ["cache_control" in tool for tool in body["tools"]] == [False, True]


async def test_a_paused_reply_goes_back_as_it_is_and_goes_on(make_call: MakeCall) -> None:
    cited = {"type": "web_search_result_location", "url": "https://a.example", "encrypted_index": "e"}
    first = message(
        block("text", "I search."),
        block("server_tool_use", '{"query"', ': "x"}', id="srvtoolu_1", name="web_search"),
        finish="pause_turn",
    )
    delta = {"type": "content_block_delta", "delta": {"type": "citations_delta", "citation": cited}}
    text_block = block("text", "It is so.")
    second = message(
        block("web_search_tool_result", **{k: v for k, v in FOUND.items() if k != "type"}),
        [*text_block[:2], delta, text_block[2]],
    )
    async with AnthropicServer([first, second, text("Bye.")]) as server:
        ask = make_call(server.base_url, "anthropic")
        messages = [user("search x")]
        cache: dict[str, Any] = {}
        for finish in ("paused", "end_turn"):
            reply = await ask(ModelRequest("m-test", "", messages, cache=cache))
            assert reply.finish == finish
            messages = [
                *messages,
                assistant(*reply.content, wire=WIRE, stop_reason=reply.finish, opaque=reply.opaque),
            ]
        await ask(ModelRequest("m-test", "", [*messages, user("Thanks.")], cache=cache))
    assert server.prompts[1].json["messages"][1]["content"] == [{"type": "text", "text": "I search."}, SEARCH]
    assert server.prompts[2].json["messages"][1]["content"] == [
        {"type": "text", "text": "I search."},
        SEARCH,
        FOUND,
        {"type": "text", "text": "It is so.", "citations": [cited]},
    ]


@pytest.mark.parametrize("warm", [True, False])
async def test_a_call_of_the_service_that_gets_no_result_any_more(make_call: MakeCall, warm: bool) -> None:
    paused = assistant("I search. ", UnknownBlock(SEARCH), wire=WIRE, stop_reason="paused")
    cache: dict[str, Any] = {}
    async with AnthropicServer(default=text("ok")) as server:
        ask = make_call(server.base_url, "anthropic", options=Settings(cache=False))
        if warm:
            await ask(ModelRequest("m", "", [user("x"), paused], cache=cache))
        await ask(ModelRequest("m", "", [user("x"), paused, user("Never mind.")], cache=cache))
        await ask(ModelRequest("m", "", [user("x"), paused, user("Never mind."), user("So?")], cache=cache))
    for request in server.prompts[-2:]:
        assert request.json["messages"][1]["content"] == [{"type": "text", "text": "I search."}]


async def test_blocks_that_nobody_knows(make_call: MakeCall) -> None:
    new = UnknownBlock({"type": "web_fetch_tool_result", "tool_use_id": "s", "content": {}})
    broken = UnknownBlock({"type": "tool_use", "id": 5})
    own = await sent_messages(make_call, user("x"), assistant("a", new, broken, wire=WIRE), user("y"))
    assert own[1]["content"][1:] == [dict(new.raw)]
    for wire, block_ in (("gemini", new), (None, UnknownBlock({"type": "hologram"}))):
        other = await sent_messages(make_call, user("x"), assistant("a", block_, wire=wire), user("y"))
        assert other[1]["content"] == [{"type": "text", "text": "a"}]


async def test_who_called_goes_back_with_the_call(make_call: MakeCall) -> None:
    caller = {"type": "code_execution_20260120", "tool_id": "srvtoolu_2"}
    first = message(
        block("tool_use", "{}", id="t1", name="read_file", caller={"type": "direct"}),
        block("tool_use", "{}", id="t2", name="read_file", caller=caller),
        finish="tool_use",
        end={"container": {"id": "container_1", "expires_at": "2026-12-01T00:00:00Z"}},
    )
    async with AnthropicServer([first, text("ok")]) as server:
        ask = make_call(server.base_url, "anthropic")
        reply = await ask(user_says("x", tools=(READ_FILE,)))
        turn = [
            user("x"),
            assistant(*reply.content, wire=WIRE, opaque=reply.opaque),
            result("t1", "a"),
            result("t2", "b"),
        ]
        await ask(ModelRequest("m", "", turn, (READ_FILE,)))
    body = server.prompts[1].json
    assert ["caller" in part for part in body["messages"][1]["content"]] == [False, True]
    assert body["messages"][1]["content"][1]["caller"] == caller
    assert body["container"] == "container_1"
    assert "container" not in await sent(make_call, ModelRequest("m", "", [*turn, user("And?")], (READ_FILE,)))


# --- the form of the reply ---

ANSWER = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}


async def test_a_schema_for_the_reply(make_call: MakeCall) -> None:
    body = await sent(make_call, user_says("hi", response_schema=ANSWER))
    assert body["output_config"]["format"] == {
        "type": "json_schema",
        "schema": {
            "type": "object",
            "properties": {"n": {"type": "integer", "description": "minimum: 1"}},
            "required": ["n"],
            "additionalProperties": False,
        },
    }
    assert "system" not in body


@pytest.mark.parametrize(
    ("model", "schema"),
    [
        ("claude-3-5-haiku-latest", ANSWER),
        ("claude-sonnet-4-6", {"type": "object", "additionalProperties": {"type": "integer"}}),
        ("claude-sonnet-4-6", {"$ref": "#/$defs/t", "$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}}}}),
    ],
)
async def test_a_schema_that_has_to_be_told_in_words(make_call: MakeCall, model: str, schema: dict[str, Any]) -> None:
    request = ModelRequest(model, "Be brief.", [user("x")], response_schema=schema)
    body = await sent(make_call, request)
    assert "format" not in body.get("output_config", {})
    assert body["system"][0]["text"] == "Be brief."
    assert json.loads(body["system"][1]["text"].partition("\n")[2]) == schema
    assert ["cache_control" in block for block in body["system"]] == [True, False]


# --- marks of the cache ---


def marked(body: Any) -> list[int]:
    """The messages with a mark on their last block."""
    return [place for place, one in enumerate(body["messages"]) if "cache_control" in one["content"][-1]]


async def test_marks(make_call: MakeCall) -> None:
    turn = [user("a"), assistant("b"), user("c"), assistant(call()), result("toolu_1", "d", PNG)]
    body = await sent(make_call, ModelRequest("m", "S", turn, (READ_FILE,)))
    assert marked(body) == [2, 4]
    assert "cache_control" in body["system"][0]
    assert "cache_control" in body["tools"][0]
    hour = await sent(make_call, ModelRequest("m", "S", turn, (READ_FILE,)), options=Settings(cache="1h"))
    assert hour["messages"][4]["content"][-1]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    none = await sent_bytes(make_call, ModelRequest("m", "S", turn, (READ_FILE,)), options=Settings(cache=False))
    assert b"cache_control" not in none
    assert json.loads(without_marks(json.dumps(body, separators=(",", ":")).encode())) == json.loads(none)


def without_marks(body: bytes) -> bytes:
    return re.sub(rb',"cache_control":\{[^}]*\}', b"", body)


async def test_a_request_is_the_one_before_and_more(make_call: MakeCall) -> None:
    """200 rounds with tools: nothing that was sent changes, but for the marks."""
    history = RepairedHistory()
    stored = [user("go")]
    cache: dict[str, Any] = {}
    bodies: list[bytes] = []

    async with AnthropicServer(default=text("ok")) as server:
        ask = make_call(server.base_url, "anthropic")
        for number in range(200):
            history.update(stored)
            await ask(ModelRequest("m", "Be brief.", history.messages, (READ_FILE,), cache=cache))
            ids = [f"toolu_{number}_{one}" for one in range(1 + number % 3)]
            stored = [*stored, assistant(ThinkingBlock("hm", "c2ln"), *map(call, ids), wire=WIRE)]
            stored = [*stored, *(result(one, f"line {number}") for one in ids)]
            if number % 20 == 19:
                stored = [*stored, user("go on")]
        bodies = [request.body for request in server.prompts]
    PrefixGuard(bodies).check(at_least=200)
    for body in map(json.loads, bodies[-3:]):
        assert problems(body) == []
    for before, after in pairwise(map(json.loads, bodies[1:])):
        # The mark that was the last stays, so that what is behind it is found.
        assert marked(after)[0] == marked(before)[1]


# --- histories of any kind ---


def stored_cases() -> list[Any]:
    found = []
    for path in sorted((CASES / "requests").glob("*.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        if case["wire"] == "anthropic":
            found.append(pytest.param(case, id=case["case"]))
    return found


def test_there_are_cases() -> None:
    assert len(stored_cases()) >= 6


@pytest.mark.parametrize("case", stored_cases())
async def test_case(case: dict[str, Any], make_call: MakeCall) -> None:
    history = [message_from_stored(one) for one in case["history"]]
    if case.get("then_user"):
        history.append(user(case["then_user"]))
    sent = await sent_messages(make_call, *history)
    # The validator of the server has looked at calls, results, blanks and arguments; what is left is this.
    for check in case["checks"]:
        if isinstance(check, str):
            assert check in CHECKED_BY_THE_VALIDATOR
        elif "synthetic_result_for" in check:
            (made_up,) = [
                part
                for one in sent
                for part in one["content"]
                if part.get("tool_use_id") == check["synthetic_result_for"]
            ]
            assert made_up["is_error"] is check["is_error"]
        elif "path_equals" in check:
            path, value = check["path_equals"]
            found: Any = {"messages": sent}
            for key in re.findall(r"\w+", path):
                found = found[int(key)] if key.isdigit() else found[key]
            assert found == value
        else:
            assert check == {"last_role": "user"}
            assert sent[-1]["role"] == "user"


CHECKED_BY_THE_VALIDATOR = (
    "every_call_answered_in_next_message",
    "no_result_without_call",
    "no_blank_text",
    "roles_alternate",
    "arguments_are_json_objects",
)

texts = st.sampled_from(["", " \n", "hi", "ü \ud83e", "text \n"])
ids = st.sampled_from(["", "c1", "c2", "c:3", "ü"])
images = st.sampled_from([PNG, ImageBlock("x", "image/bmp"), ImageBlock("", "image/png")])
blocks = st.one_of(
    texts.map(TextBlock),
    st.builds(ThinkingBlock, texts, st.sampled_from([None, "", "c2ln"])),
    st.just(RedactedThinkingBlock("eA==")),
    images,
    st.builds(
        ToolUseBlock, ids, st.sampled_from(["read_file", "a.b", "ü" * 90]), st.sampled_from(["", "{", '{"a":1}'])
    ),
    st.sampled_from([UnknownBlock(SEARCH), UnknownBlock(FOUND), UnknownBlock({"type": "tool_use"})]),
)
results = st.builds(ToolResultBlock, ids, st.just("t"), texts, st.booleans(), st.lists(images, max_size=2).map(tuple))
messages = st.one_of(
    st.builds(Message, st.just("user"), st.lists(st.one_of(texts.map(TextBlock), images), max_size=3).map(tuple)),
    st.builds(
        Message,
        st.just("assistant"),
        st.lists(blocks, max_size=5).map(tuple),
        wire=st.sampled_from([None, WIRE, "gemini"]),
        provider=st.sampled_from([None, "m", "kimi"]),
        stop_reason=st.sampled_from(["end_turn", "paused", "max_tokens", "error"]),
    ),
    st.builds(lambda one: Message("tool", (one,)), results),
)


@given(history=st.lists(messages, max_size=12), cut=st.integers(0, 12), thinking=st.sampled_from([None, "off", 2000]))
def test_any_history_is_accepted(history: list[Message], cut: int, thinking: Any) -> None:
    numbers = count()
    history = [replace(m, id=f"m{next(numbers)}") for m in history]
    http = ScriptedHttp([HttpAnswer.of(text("ok").body)] * 3)
    provider = openheim_create_provider("anthropic", ProviderSettings("m", "anthropic", "https://a.example"), http)
    assert provider is not None
    ends: Sequence[Message] = [Message("user", (TextBlock("go on"),), id="end")]

    async def ask() -> None:
        cache: dict[str, Any] = {}
        kept = RepairedHistory()
        for upto, of_cache in ((cut, cache), (len(history), cache), (len(history), {})):
            part = history[:upto]
            # Whether a pause behind mere text can go on is the service's to say.
            ended = upto < len(history) and not any(one.stop_reason == "paused" for one in part)
            kept.update(part if ended else [*part, *ends])
            request = ModelRequest("claude-sonnet-4-5", "S", kept.messages, (), thinking=thinking, cache=of_cache)
            await provider.generate(request, lambda delta: None)

    anyio.run(ask)
    for sent in http.requests:
        assert problems(json.loads(sent.content)) == []
    assert http.requests[1].content == http.requests[2].content
