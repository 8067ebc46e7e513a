"""What is sent: bodies of requests, which the service would take, and that they grow without changing."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openheim.agent.repair import RepairedHistory, repaired
from openheim.errors import InvalidRequestError
from openheim.http import HttpClient
from openheim.messages import (
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
from openheim.providers import ModelRequest, ToolSpec
from openheim.testing import PrefixGuard
from openheim.testing.conversations import odd_conversations
from openheim_provider_gemini.body import request_body
from openheim_provider_gemini.plugin import Settings
from tests.providers.conftest import CASES, KEY
from tests.providers.gemini import READ_FILE, asking, assistant, call_of, result, sent, serving, user
from tests.support.gemini_server import GeminiServer
from tests.support.gemini_validator import problems
from tests.support.gemini_wire import text

pytestmark = pytest.mark.anyio

RAN = {"executableCode": {"code": "1", "language": "PYTHON"}}
NOT_WRITABLE = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "score": float("nan")}}
STAND_IN = "skip_thought_signature_validator"
PNG = ImageBlock("iVBORw0KGgo=", "image/png")
BMP = ImageBlock("iVBORw0KGgo=", "image/bmp")
OLDER = "gemini-2.5-flash"


def body_of(request: ModelRequest) -> dict[str, Any]:
    body = json.loads(request_body(request, {}, "mine"))
    assert isinstance(body, dict)
    return body


def contents_of(*messages: Message, model: str = "gemini-3-pro") -> list[Any]:
    """The contents that are made of these messages, which the service would take."""
    body = body_of(asking(*messages, model=model))
    assert problems(body, model=model) == []
    contents = body["contents"]
    assert isinstance(contents, list)
    return contents


def call(call_id: str, signature: str | None = None, name: str = "read_file", arguments: str = "{}") -> ToolUseBlock:
    return ToolUseBlock(call_id, name, arguments, signature)


# --- whole requests ---


async def test_the_smallest_request(http: HttpClient) -> None:
    async with serving(text("ok")) as server:
        await call_of(server.base_url, http, api_key=KEY)(asking(model="m-test"))
        (request,) = server.requests
    assert request.body == b'{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}'
    assert (request.method, request.path) == ("POST", "/v1beta/models/m-test:streamGenerateContent?alt=sse")
    assert request.headers["x-goog-api-key"] == KEY
    assert request.headers["content-type"] == "application/json"
    assert KEY not in request.path
    assert "authorization" not in request.headers


async def test_a_request_with_everything(http: HttpClient) -> None:
    request = asking(
        user("What is in a.md?"),
        assistant("I look.", call("c1", "c2ln", arguments='{"path": "a.md"}')),
        result("c1", "hello"),
        model=OLDER,
        system="Be brief.",
        tools=(READ_FILE,),
        max_tokens=500,
        thinking=2048,
    )
    assert await sent(http, request) == {
        "contents": [
            {"role": "user", "parts": [{"text": "What is in a.md?"}]},
            {
                "role": "model",
                "parts": [
                    {"text": "I look."},
                    {
                        "functionCall": {"id": "c1", "name": "read_file", "args": {"path": "a.md"}},
                        "thoughtSignature": "c2ln",
                    },
                ],
            },
            {
                "role": "user",
                "parts": [{"functionResponse": {"id": "c1", "name": "read_file", "response": {"result": "hello"}}}],
            },
        ],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "read_file",
                        "description": "Reads a file.",
                        "parametersJsonSchema": READ_FILE.parameters,
                    }
                ]
            }
        ],
        "generationConfig": {
            "maxOutputTokens": 500,
            "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 2048},
        },
    }


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("models/gemini-3-pro", "models/gemini-3-pro"),
        ("tunedModels/mine", "tunedModels/mine"),
        ("a b?key=c#d", "models/a%20b%3Fkey%3Dc%23d"),
    ],
)
async def test_the_model_in_the_address(http: HttpClient, model: str, path: str) -> None:
    async with GeminiServer(default=text("ok")) as server:
        await call_of(server.base_url, http)(asking(model=model))
        assert server.requests[0].path == f"/v1beta/{path}:streamGenerateContent?alt=sse"


async def test_settings_of_the_entry(http: HttpClient) -> None:
    options = Settings(
        extra_headers={"X-Team": "a"},
        extra_body={
            "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
            "generationConfig": {"temperature": 0.5, "maxOutputTokens": 9},
        },
    )
    async with serving(text("ok")) as server:
        made = call_of(server.base_url, http, max_tokens=8, thinking="low", options=options)
        await made(asking(model="gemini-3-flash"))
        (request,) = server.requests
    assert request.headers["x-team"] == "a"
    assert request.json["safetySettings"] == options.extra_body["safetySettings"]
    thinking = {"includeThoughts": True, "thinkingLevel": "LOW"}
    assert request.json["generationConfig"] == {"maxOutputTokens": 9, "temperature": 0.5, "thinkingConfig": thinking}


async def test_the_form_of_the_reply(http: HttpClient) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "exclusiveMinimum": 0}}, "$schema": "x"}
    body = await sent(http, asking(response_schema=schema, model="gemini-3-pro", tools=(READ_FILE,)))
    assert body["generationConfig"]["responseMimeType"] == "application/json"
    assert body["generationConfig"]["responseJsonSchema"] == {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}},
    }
    # Older models take tools or a form, not both.
    in_words = await sent(http, asking(response_schema=schema, model=OLDER, tools=(READ_FILE,), system="Be brief."))
    assert "responseJsonSchema" not in in_words["generationConfig"]
    said = in_words["systemInstruction"]["parts"][0]["text"]
    assert said.startswith("Be brief.\n\n")
    assert json.loads(said[said.index("{") :]) == schema
    alone = await sent(http, asking(response_schema=schema, model=OLDER))
    assert "responseJsonSchema" in alone["generationConfig"]


async def test_what_has_no_form_in_json_is_refused_before_it_is_sent(http: HttpClient) -> None:
    odd: Any = {"type": "object", "properties": {"a": {"type": "number", "minimum": float("nan")}}}
    async with GeminiServer() as server:
        with pytest.raises(InvalidRequestError, match="schema of tool 'odd'"):
            await call_of(server.base_url, http)(asking(tools=(ToolSpec("odd", "", odd),)))
        assert server.requests == []


# --- turns ---


def test_results_of_one_reply_are_one_content_in_order() -> None:
    contents = contents_of(
        user("go"),
        assistant(call("c1", "c2ln"), call("c2"), call("c3", name="list_dir")),
        result("c1", "one"),
        result("c2", "two", is_error=True),
        result("c3", "", name="list_dir"),
        user("and now?"),
    )
    assert [content["role"] for content in contents] == ["user", "model", "user"]
    assert contents[2]["parts"] == [
        {"functionResponse": {"id": "c1", "name": "read_file", "response": {"result": "one"}}},
        {"functionResponse": {"id": "c2", "name": "read_file", "response": {"error": "two"}}},
        {"functionResponse": {"id": "c3", "name": "list_dir", "response": {"result": "(no output)"}}},
        {"text": "and now?"},
    ]


def test_signatures_go_back_on_their_parts() -> None:
    opaque = {
        "signatures": [
            {"block": 0, "start": 4, "end": 8, "signature": "dGV4dA=="},
            {"block": 1, "start": 0, "end": 0, "signature": "ZW1wdHk="},
            {"block": 3, "signature": "aW1hZ2U="},
            {"block": 4, "start": 0, "end": 0, "signature": "bGFzdA=="},
        ]
    }
    contents = contents_of(
        user("go"),
        assistant("one two three", ThinkingBlock("hm", "dGhvdWdodA=="), call("c1", "Y2FsbA=="), PNG, opaque=opaque),
        result("c1", "ok"),
    )
    assert contents[1]["parts"] == [
        {"text": "one "},
        {"text": "two ", "thoughtSignature": "dGV4dA=="},
        {"text": "three"},
        {"text": "", "thoughtSignature": "ZW1wdHk="},
        {"text": "hm", "thought": True, "thoughtSignature": "dGhvdWdodA=="},
        {"functionCall": {"id": "c1", "name": "read_file", "args": {}}, "thoughtSignature": "Y2FsbA=="},
        {"inlineData": {"mimeType": "image/png", "data": PNG.data}, "thoughtSignature": "aW1hZ2U="},
        {"text": "", "thoughtSignature": "bGFzdA=="},
    ]


@pytest.mark.parametrize(
    "opaque",
    [
        {},
        {"signatures": "x"},
        {"signatures": [1, {}, {"block": "0"}, {"block": 0}, {"block": 0, "signature": 1}]},
        {"signatures": [{"block": 0, "start": 3, "end": 99, "signature": "c2ln"}]},
        {"signatures": [{"block": 0, "start": -1, "end": 2, "signature": "c2ln"}]},
        {"signatures": [{"block": 0, "start": 2, "end": 1, "signature": "c2ln"}]},
        {"signatures": [{"block": 7, "start": 0, "end": 0, "signature": "c2ln"}]},
        {"items": [{"encrypted": "c2ln"}]},
    ],
)
def test_opaque_items_that_do_not_fit_are_left_out(opaque: Any) -> None:
    (_, content, _) = contents_of(user("go"), assistant("answer", opaque=opaque), user("on"))
    assert content["parts"] == [{"text": "answer"}]


@pytest.mark.parametrize("wire", ["anthropic", "openai-chat", None])
@pytest.mark.parametrize("model", ["gemini-3-pro", OLDER, "m-test"])
def test_foreign_calls_get_the_stand_in_on_the_first_one(wire: str | None, model: str) -> None:
    signature = "c2ln" if wire else None
    contents = contents_of(
        user("go"),
        assistant(ThinkingBlock("hm", "eA=="), call("c1", signature), call("c2", signature), wire=wire),
        result("c1", "ok"),
        result("c2", "ok"),
        assistant(call("c3"), wire=wire),
        result("c3", "ok"),
        model=model,
    )
    signed = [[part.get("thoughtSignature") for part in content["parts"]] for content in contents]
    assert signed == [[None], [STAND_IN, None], [None, None], [STAND_IN], [None]]


def test_a_signature_of_a_history_that_names_no_wire_is_taken_for_our_own() -> None:
    contents = contents_of(user("go"), assistant(call("c1", "c2ln"), wire=None), result("c1", "ok"))
    assert contents[1]["parts"][0]["thoughtSignature"] == "c2ln"


def test_what_another_entry_signed_stays_here() -> None:
    """A session that moves from one entry of this kind to another: each service takes back only its own."""
    ran = UnknownBlock({"type": "gemini_part", "part": {"executableCode": {"code": "1", "language": "PYTHON"}}})
    blocks = (ThinkingBlock("hm", "dGhvdWdodA=="), ran, call("c1", "Y2FsbA=="))
    spans = {"signatures": [{"block": 0, "start": 0, "end": 4, "signature": "dGV4dA=="}]}
    history = [
        user("go"),
        assistant("said", *blocks, provider="other", opaque=spans),
        result("c1", "ok"),
        assistant("said", *blocks, provider="mine", opaque=spans),
        result("c1", "ok"),
    ]
    cache: dict[str, Any] = {}
    for entry, foreign, own in (("mine", 1, 3), ("other", 3, 1), ("mine", 1, 3)):
        for model in ("gemini-3-pro", OLDER):
            body = json.loads(request_body(asking(*history, model=model, cache=cache), {}, entry))
            assert problems(body, model=model) == []
            said, called = body["contents"][foreign]["parts"]
            assert said == {"text": "said"}
            assert called["thoughtSignature"] == STAND_IN
            signatures = [part.get("thoughtSignature") for part in body["contents"][own]["parts"]]
            assert signatures == ["dGV4dA==", "dGhvdWdodA==", None, "Y2FsbA=="]


def test_own_calls_without_a_signature_need_the_stand_in_only_for_newer_models() -> None:
    messages = [user("go"), assistant(call("c1"), call("c2", "c2ln")), result("c1", "a"), result("c2", "b")]
    newer = contents_of(*messages, model="gemini-3-pro")
    assert [part.get("thoughtSignature") for part in newer[1]["parts"]] == [STAND_IN, "c2ln"]
    older = contents_of(*messages, model=OLDER)
    assert [part.get("thoughtSignature") for part in older[1]["parts"]] == [None, "c2ln"]


def test_thinking_and_items_of_others_are_left_out() -> None:
    foreign = UnknownBlock({"type": "gemini_part", "part": {"executableCode": {"code": "1", "language": "PYTHON"}}})
    thoughts = (ThinkingBlock("hm", "c2ln"), RedactedThinkingBlock("eA=="), foreign)
    contents = contents_of(
        user("go"), assistant(*thoughts, "said", wire="anthropic", opaque={"signatures": []}), user("on")
    )
    assert contents[1]["parts"] == [{"text": "said"}]
    own = contents_of(user("go"), assistant(ThinkingBlock("hm"), foreign, "said"), user("on"))
    assert own[1]["parts"] == [{"executableCode": {"code": "1", "language": "PYTHON"}}, {"text": "said"}]


@pytest.mark.parametrize("arguments", ['{"path": ', "[1]", "", "null", '{"a": NaN}', '"x"', "[" * 100_000])
def test_arguments_that_are_no_object_become_an_empty_one(arguments: str) -> None:
    contents = contents_of(user("go"), assistant(call("c1", arguments=arguments)), result("c1", "bad", is_error=True))
    assert contents[1]["parts"][0]["functionCall"]["args"] == {}


def test_blank_messages_say_so_or_are_left_out() -> None:
    contents = contents_of(user(" \n"), assistant(" ", ThinkingBlock("hm")), user("on", "\t"))
    assert contents == [{"role": "user", "parts": [{"text": "(no text)"}, {"text": "on"}]}]


def test_images() -> None:
    messages = [user("look", PNG), assistant(call("c1")), result("c1", "", PNG, ImageBlock("", "image/png"))]
    picture = {"inlineData": {"mimeType": "image/png", "data": PNG.data}}
    newer, older = contents_of(*messages), contents_of(*messages, model=OLDER)
    assert newer[0]["parts"] == [{"text": "look"}, picture]
    unseen = "[An image of type image/png cannot be shown to this model.]"  # It is empty.
    answer = {"id": "c1", "name": "read_file", "response": {"result": unseen}}
    assert newer[2]["parts"] == [{"functionResponse": answer | {"parts": [picture]}}]
    assert older[2]["parts"] == [{"functionResponse": answer}, picture]


@pytest.mark.parametrize("model", ["gemini-3-pro", OLDER])
def test_images_that_the_service_does_not_take_are_named(model: str) -> None:
    images = [
        BMP,
        ImageBlock(PNG.data, "image/gif"),
        ImageBlock("no base64", "image/webp"),
        ImageBlock(PNG.data, "IMAGE/JPG"),
        ImageBlock(PNG.data, ""),
    ]
    unseen = [
        f"[An image of type {name} cannot be shown to this model.]"
        for name in ("image/bmp", "image/gif", "image/webp", "unknown")
    ]
    jpeg = {"inlineData": {"mimeType": "image/jpeg", "data": PNG.data}}
    contents = contents_of(
        user("look", *images), assistant(BMP, call("c1")), result("c1", "seen", *images), assistant(), model=model
    )
    texts = [{"text": text} for text in unseen]
    assert contents[0]["parts"] == [{"text": "look"}, *texts[:3], jpeg, texts[3]]
    assert contents[1]["parts"][0] == texts[0]
    assert contents[2]["parts"][0]["functionResponse"]["response"] == {"result": "\n".join(["seen", *unseen])}


def test_calls_of_one_id_get_numbers_in_pairs_with_their_results() -> None:
    history = [user("go")]
    for number, name in enumerate(["read_file", "list_dir", "read_file"]):
        calls = (call("c1"), call("c1-2"), call("c1", name=name))
        history += [assistant(*calls), result("c1", f"{number}", name="?"), result("c1-2", "x"), result("c1", "more")]
    history = repaired(history)
    contents = contents_of(*history)
    called = [
        [(part["functionCall"]["id"], part["functionCall"]["name"]) for part in contents[at]["parts"]]
        for at in (1, 3, 5)
    ]
    assert [[name for _, name in calls] for calls in called] == [
        ["read_file", "read_file", name] for name in ("read_file", "list_dir", "read_file")
    ]
    assert len({call_id for calls in called for call_id, _ in calls}) == 9
    answered = [[part["functionResponse"] for part in contents[at]["parts"]] for at in (2, 4, 6)]
    assert [[(answer["id"], answer["name"]) for answer in answers] for answers in answered] == called
    said = [[answer["response"]["result"] for answer in answers] for answers in answered]
    assert said == [[str(number), "x", "more"] for number in range(3)]
    # They are the same whatever was sent before, and stay so as the conversation goes on.
    cache: dict[str, Any] = {}
    bodies = [request_body(asking(*history[:upto], cache=cache), {}, "mine") for upto in (5, 9, 13)]
    assert json.loads(bodies[-1])["contents"] == contents
    PrefixGuard(bodies).check(at_least=3)


@pytest.mark.parametrize("stop_reason", ["paused", "end_turn"])
def test_the_users_word_is_the_last(stop_reason: str) -> None:
    cache: dict[str, Any] = {}
    paused = [user("go"), assistant("Looking", wire="anthropic-messages", stop_reason=stop_reason)]
    body = json.loads(request_body(asking(*paused, cache=cache), {}, "mine"))
    assert problems(body) == []
    assert body["contents"][-1] == {"role": "user", "parts": [{"text": "Go on."}]}
    longer = json.loads(request_body(asking(*paused, user("yes"), cache=cache), {}, "mine"))
    assert longer["contents"] == [*body["contents"][:2], {"role": "user", "parts": [{"text": "yes"}]}]


def test_what_cannot_be_written_or_is_no_signature_is_left_out() -> None:
    blocks = (UnknownBlock({"type": "gemini_part", "part": NOT_WRITABLE}), ThinkingBlock("hm", "no base64"))
    opaque = {"signatures": [{"block": 2, "start": 0, "end": 4, "signature": "no base64"}]}
    contents = contents_of(
        user("go"), assistant(*blocks, "said", call("c1", "no base64"), opaque=opaque), result("c1", "ok")
    )
    called = {"functionCall": {"id": "c1", "name": "read_file", "args": {}}, "thoughtSignature": STAND_IN}
    assert contents[1]["parts"] == [{"text": "said"}, called]


def test_names_of_tools_are_mapped_in_calls_results_and_declarations() -> None:
    tool = ToolSpec("mcp.server/größe", "", {"type": "object"})
    request = asking(
        user("go"), assistant(call("c1", name=tool.name)), result("c1", "ok", name=tool.name), tools=(tool, READ_FILE)
    )
    body = body_of(request)
    assert problems(body, model="gemini-3-pro") == []
    (declared, _) = body["tools"][0]["functionDeclarations"]
    assert declared == {"name": declared["name"], "description": tool.name}
    assert body["contents"][1]["parts"][0]["functionCall"]["name"] == declared["name"]
    assert body["contents"][2]["parts"][0]["functionResponse"]["name"] == declared["name"]


@pytest.mark.parametrize("conversation", sorted(odd_conversations()))
@pytest.mark.parametrize("model", ["gemini-3-pro", OLDER])
def test_odd_conversations_are_taken(conversation: str, model: str) -> None:
    contents_of(*odd_conversations()[conversation], model=model)


# --- any history ---

TEXTS = st.sampled_from(["", " ", "a", "two\nlines", "größe 🙂", "\ud83d"])
SIGNATURES = st.sampled_from([None, "c2ln", "", "no base64"])
IMAGES = st.sampled_from([(), (PNG,), (BMP, PNG), (ImageBlock("?", "image/png"), ImageBlock("", ""))])
CALLS = st.builds(
    ToolUseBlock,
    st.sampled_from(["", "c1", "c1-2", "c2", "c3"]),
    st.sampled_from(["read_file", "mcp.a b", "größe", "9lives"]),
    st.sampled_from(["{}", '{"a": 1}', '{"a"', "[]", ""]),
    SIGNATURES,
)
REPLIES = st.builds(
    lambda blocks, wire, provider, stop: Message(
        "assistant", tuple(blocks), wire=wire, provider=provider, stop_reason=stop
    ),
    st.lists(
        st.one_of(
            st.builds(TextBlock, TEXTS),
            st.builds(ThinkingBlock, TEXTS, SIGNATURES),
            st.just(RedactedThinkingBlock("eA==")),
            st.sampled_from([PNG, BMP]),
            st.sampled_from([UnknownBlock({"type": "gemini_part", "part": part}) for part in (RAN, NOT_WRITABLE, {})]),
            CALLS,
        ),
        max_size=5,
    ),
    st.sampled_from([None, "gemini", "anthropic"]),
    st.sampled_from([None, "mine", "other"]),
    st.sampled_from([None, "paused", "end_turn"]),
)
RESULTS = st.builds(
    lambda call_id, said, is_error, images: Message(
        "tool", (ToolResultBlock(call_id, "read_file", said, is_error, images),)
    ),
    st.sampled_from(["", "c1", "c1-2", "c2", "c3", "c9"]),
    TEXTS,
    st.booleans(),
    IMAGES,
)
USERS = st.builds(
    lambda said, images: Message("user", (*map(TextBlock, said), *images)),
    st.lists(TEXTS, max_size=2),
    IMAGES,
)


@settings(max_examples=300, deadline=None)
@given(
    history=st.lists(st.one_of(USERS, REPLIES, RESULTS), max_size=10),
    model=st.sampled_from(["gemini-3-pro", OLDER]),
    cut=st.integers(0, 10),
    at=st.integers(0, 10),
)
def test_any_history_that_was_repaired_is_taken(history: list[Message], model: str, cut: int, at: int) -> None:
    messages = repaired(history) or [user("go on")]
    body = body_of(asking(*messages, model=model))
    assert problems(body, model=model) == []
    # What was kept from a shorter request, or from another history, makes no difference.
    warm = asking(*messages[:cut], model=model)
    request_body(warm, {}, "mine")
    assert json.loads(request_body(asking(*messages, model=model, cache=warm.cache), {}, "mine")) == body
    other = asking(*messages[:at], user("another"), *messages[at:], model=model, cache=warm.cache)
    request_body(other, {}, "mine")
    assert json.loads(request_body(asking(*messages, model=model, cache=warm.cache), {}, "mine")) == body


# --- kept bytes ---


def long_history(length: int) -> list[Message]:
    messages = [user("start")]
    for number in range(length):
        messages.append(assistant(f"step {number}", call(f"c{number}", "c2ln", arguments='{"path": "é"}')))
        messages.append(result(f"c{number}", f"result {number}", *([PNG] if number % 3 == 0 else [])))
    return messages


def test_what_was_sent_is_sent_again_to_the_byte() -> None:
    messages = long_history(6)
    cache: dict[str, Any] = {}
    bodies = [
        request_body(
            asking(*messages[:length], cache=cache, tools=(READ_FILE,), system="Be brief."), {"store": False}, "mine"
        )
        for length in range(1, len(messages) + 1, 2)
    ]
    ends = [body.index(b'],"systemInstruction":') for body in bodies]
    assert all(longer.startswith(shorter[:end]) for (shorter, longer), end in zip(pairwise(bodies), ends, strict=False))
    assert len({body[end:] for body, end in zip(bodies, ends, strict=True)}) == 1


def test_a_request_is_the_one_before_and_more() -> None:
    """200 rounds with tools, ids used again among them: nothing that was sent changes."""
    history, cache, bodies = RepairedHistory(), {}, []
    stored = [user("go")]
    for number in range(200):
        history.update(stored)
        request = asking(*history.messages, model="gemini-3-pro", cache=cache, tools=(READ_FILE,), system="Be brief.")
        bodies.append(request_body(request, {"store": False}, "mine"))
        ids = [f"c{number % 50}_{one}" for one in range(1 + number % 3)]
        stored = [*stored, assistant(ThinkingBlock("hm", "c2ln"), *(call(one, "c2ln") for one in ids))]
        stored = [*stored, *(result(one, f"line {number}") for one in ids)]
        if number % 20 == 19:
            stored = [*stored, user("go on")]
    PrefixGuard(bodies).check(at_least=200)
    assert problems(json.loads(bodies[-1]), model="gemini-3-pro") == []


def test_kept_bytes_make_no_difference() -> None:
    messages = long_history(5)
    replaced = [*messages[:3], user("another"), *messages[4:]]
    cache: dict[str, Any] = {}
    for history in [messages[:4], messages, messages[:3], replaced, messages, messages[4:], messages]:
        for model in ("gemini-3-pro", OLDER):
            fields: dict[str, Any] = {"model": model, "system": f"of {len(history)}"}
            warm = request_body(asking(*history, cache=cache, **fields), {}, "mine")
            assert warm == request_body(asking(*history, **fields), {}, "mine")


# --- cases ---

CASE_NAMES = ("rq13", "rq15", "rq16")


@pytest.mark.parametrize("name", CASE_NAMES)
def test_case(name: str) -> None:
    case = json.loads((CASES / "requests" / f"{name}.json").read_text(encoding="utf-8"))
    functions = [tool["function"] for tool in case.get("tools", ())]
    tools = tuple(ToolSpec(one["name"], one["description"], one["parameters"]) for one in functions)
    started = time.monotonic()
    messages = [message_from_stored(raw) for raw in case["history"]]
    body = body_of(asking(*messages, tools=tools, model="gemini-3-pro"))
    took = time.monotonic() - started
    assert problems(body, model="gemini-3-pro") == []
    for wanted in case["checks"]:
        check_case(wanted, body, took)


def check_case(wanted: Any, body: dict[str, Any], took: float) -> None:
    name, value = next(iter(wanted.items())) if isinstance(wanted, dict) else (wanted, True)
    contents = body["contents"]
    calls = [[part for part in content["parts"] if "functionCall" in part] for content in contents]
    results = [[part for part in content["parts"] if "functionResponse" in part] for content in contents]
    declared = [one for tool in body.get("tools", ()) for one in tool["functionDeclarations"]]
    match name:
        case "parts_of_results_equal_parts_of_calls":
            assert [len(parts) for parts in calls if parts] == [len(parts) for parts in results if parts]
        case "calls_in_one_content":
            assert sum(map(bool, calls)) == 1
        case "path_equals":
            found: Any = body
            for step in value[0].replace("[", ".").replace("]", "").split("."):
                found = found[int(step)] if step.isdecimal() else found[step]
            assert found == value[1]
        case "tool_count":
            assert len(declared) == value
        case "every_array_has_items":
            arrays = [node for one in declared for node in nodes_of(one) if node.get("type") == "array"]
            assert arrays
            assert all("items" in node for node in arrays)
        case "body_is_finite_json":
            assert json.loads(json.dumps(body)) == body
        case "max_seconds":
            assert took < 10 * value  # Generous: that it ends is the point.
        case _:
            pytest.fail(f"no such check: {name}")


def nodes_of(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from nodes_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from nodes_of(inner)


async def test_a_call_is_made_while_others_are(http: HttpClient) -> None:
    async with GeminiServer(default=text("ok")) as server:
        made = call_of(server.base_url, http)
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(made, asking())
        assert server.problems == []
        assert len(server.prompts) == 3
