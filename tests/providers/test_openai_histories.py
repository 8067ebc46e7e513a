"""Any history, on both of OpenAI's wires: what the service would refuse of it is sent in another form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count, repeat
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openheim.agent.repair import RepairedHistory, repaired
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
)
from openheim.providers import ModelRequest, Provider, ProviderSettings
from openheim.testing import HttpAnswer, PrefixGuard, ScriptedHttp
from openheim_provider_openai.plugin import Settings, openheim_create_provider
from tests.providers.conftest import assistant, result, user
from tests.support import openai_validator, openai_wire, responses_validator, responses_wire

PNG = ImageBlock("iVBORw0KGgo=", "image/png")
BITMAP = ImageBlock("Qk0=", "image/bmp")
IN_WORDS = "[An image of type image/bmp cannot be shown to this model.]"

OPTIONS = {
    "chat": Settings(wire="chat"),
    "strict": Settings(wire="chat", strict_roles=True, tool_id_pattern="[a-zA-Z0-9]{9}"),
    "responses": Settings(wire="responses"),
}
each_wire = pytest.mark.parametrize("wire", ["chat", "responses"])


def provider_on(wire: str) -> tuple[Provider, ScriptedHttp]:
    replies = responses_wire if wire == "responses" else openai_wire
    http = ScriptedHttp(repeat(HttpAnswer.of(replies.text("ok").body)))
    settings = ProviderSettings("mine", "openai", "https://a.example", options=OPTIONS[wire])
    provider = openheim_create_provider("openai", settings, http)
    assert provider is not None
    return provider, http


def problems(wire: str, content: bytes) -> list[str]:
    body = json.loads(content)
    if wire == "responses":
        return responses_validator.problems(body)
    if wire == "strict":
        return openai_validator.problems(body, strict_roles=True, id_pattern="[a-zA-Z0-9]{9}")
    return openai_validator.problems(body)


def sent(wire: str, *histories: Sequence[Message], cache: dict[str, Any] | None = None) -> list[bytes]:
    """The bodies of requests with these histories, each repaired and none that the service would refuse."""
    provider, http = provider_on(wire)

    async def ask() -> None:
        for history in histories:
            kept = {} if cache is None else cache
            await provider.generate(ModelRequest("m", "S", repaired(history), cache=kept), lambda delta: None)

    anyio.run(ask)
    bodies = [request.content for request in http.requests]
    for body in bodies:
        assert problems(wire, body) == []
    return bodies


def entries(body: bytes) -> list[Any]:
    """The messages or items of a body, without system text."""
    decoded = json.loads(body)
    found: list[Any] = decoded["input"] if "input" in decoded else decoded["messages"][1:]
    return found


def call(call_id: str, arguments: str = "{}") -> ToolUseBlock:
    return ToolUseBlock(call_id, "read_file", arguments)


# --- images ---


@each_wire
@pytest.mark.parametrize(
    "image",
    [BITMAP, ImageBlock("", "image/bmp"), ImageBlock("iVBORw0KGgo=", "IMAGE/BMP")],
)
def test_images_that_are_refused_are_told_in_words(wire: str, image: ImageBlock) -> None:
    history = [user("look", image), assistant(call("c1")), result("c1", "seen", image), user("and?")]
    (body,) = sent(wire, history)
    assert body.decode().count(IN_WORDS) == 2
    assert b"base64" not in body


@each_wire
@pytest.mark.parametrize(
    "image", [ImageBlock("", "image/png"), ImageBlock("no base64!", "image/png"), ImageBlock("=", "image/gif")]
)
def test_images_without_data_are_told_in_words(wire: str, image: ImageBlock) -> None:
    (body,) = sent(wire, [user(image), assistant(call("c1")), result("c1", "", image, PNG)])
    assert body.decode().count("cannot be shown to this model.]") == 2
    assert body.count(b"base64") == 1


@each_wire
def test_images_are_written_as_the_service_reads_them(wire: str) -> None:
    (body,) = sent(wire, [user(ImageBlock("iVBO\nRw0KGgo=\n", "image/JPG"))])
    assert b"data:image/jpeg;base64,iVBORw0KGgo=" in body


@each_wire
def test_an_image_that_the_assistant_made_leaves_a_word(wire: str) -> None:
    (body,) = sent(wire, [user("draw"), assistant(PNG), user("more"), assistant("Here:", PNG), user("thanks")])
    assert body.count(b"[An image was shown here.]") == 2
    assert b"base64" not in body


# --- ids of calls ---


@each_wire
def test_ids_that_come_again_are_told_apart(wire: str) -> None:
    history = [user("go")]
    for number in range(4):
        history += [
            assistant(call("c1"), call(f"own{number}")),
            result("c1", f"r{number}"),
            result(f"own{number}", "ok"),
        ]
    bodies = sent(wire, history[:4], history[:7], history, cache={})
    assert entries(sent(wire, history)[0]) == entries(bodies[-1])
    PrefixGuard(bodies).check(at_least=3)
    kept = entries(bodies[-1])
    key = "call_id" if wire == "responses" else "tool_call_id"
    outputs = {
        entry.get("output", entry.get("content")): entry[key] for entry in kept if key in entry and "name" not in entry
    }
    assert outputs["r0"] == "c1"
    assert len({outputs[f"r{number}"] for number in range(4)}) == 4


@each_wire
def test_calls_of_one_id_in_one_message_are_all_asked_and_answered(wire: str) -> None:
    calls = assistant(call("c1", '{"a":1}'), call("c1", '{"a":2}'))
    (body,) = sent(wire, [user("go"), calls, result("c1", "one"), result("c1", "two")])
    written = entries(body)
    asked = written[-3]["tool_calls"] if wire == "chat" else written[-4:-2]
    arguments = [entry["function"]["arguments"] if wire == "chat" else entry["arguments"] for entry in asked]
    assert arguments == ['{"a":1}', '{"a":2}']
    outputs = [entry["content" if wire == "chat" else "output"] for entry in written[-2:]]
    assert outputs == ["one", "two"]
    ids = [entry["id" if wire == "chat" else "call_id"] for entry in asked]
    assert ids == [entry["tool_call_id" if wire == "chat" else "call_id"] for entry in written[-2:]]
    assert len(set(ids)) == 2


@each_wire
def test_another_history_has_ids_of_its_own(wire: str) -> None:
    one = [user("go"), assistant(call("c1")), result("c1", "1"), assistant(call("c1")), result("c1", "2")]
    other = [one[0], *one[3:]]
    bodies = sent(wire, one, other, one, cache={})
    assert bodies[1] == sent(wire, other)[0]
    assert bodies[2] == bodies[0]


# --- the end ---


@each_wire
@pytest.mark.parametrize("stop_reason", ["paused", "end_turn", "error"])
def test_a_history_that_ends_with_the_assistant_goes_on(wire: str, stop_reason: str) -> None:
    history = [user("go"), assistant("I think", stop_reason=stop_reason)]
    bodies = sent(wire, history, [*history, assistant("so."), user("why?")], cache={})
    assert entries(bodies[0])[-1] == {"role": "user", "content": "Go on."}
    assert b"Go on." not in bodies[1]
    assert entries(bodies[1])[:2] == entries(bodies[0])[:2]


# --- what cannot be encoded ---


def test_kept_items_that_json_cannot_say_are_left_out() -> None:
    items = [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x", "odd": float("nan")}]
    items.append({"type": "message", "content": ["output_text"]})
    thought = assistant("hello", wire="openai-responses", provider="mine", opaque={"items": items})
    first, second = sent(
        "responses", [user("hi"), thought, user("more")], [user("hi"), thought, user("more")], cache={}
    )
    assert first == second
    assert [entry.get("type", "message") for entry in entries(first)] == ["message"] * 3


@each_wire
def test_a_message_that_fails_changes_nothing_in_later_requests(wire: str) -> None:
    provider, http = provider_on(wire)
    broken = Message("user", (TextBlock(None),))  # type: ignore[arg-type]  # What no part of openheim would make.
    first, more = user("hi"), user("more")
    cache: dict[str, Any] = {}

    async def ask() -> None:
        for _ in range(2):
            with pytest.raises(AttributeError):
                await provider.generate(ModelRequest("m", "S", [first, broken], cache=cache), lambda delta: None)
        await provider.generate(ModelRequest("m", "S", [first, more], cache=cache), lambda delta: None)

    anyio.run(ask)
    assert [request.content for request in http.requests] == sent(wire, [first, more])


# --- any history ---

texts = st.sampled_from(["", " \n", "hi", "ü \ud83e", "text \n"])
ids = st.sampled_from(["", "c1", "c2", "c:3", "ü", "x" * 70])
images = st.sampled_from([PNG, BITMAP, ImageBlock("x", "image/png"), ImageBlock("", "image/png")])
blocks: st.SearchStrategy[Block] = st.one_of(
    texts.map(TextBlock),
    st.builds(ThinkingBlock, texts, st.sampled_from([None, "", "c2ln"])),
    st.just(RedactedThinkingBlock("eA==")),
    images,
    st.builds(
        ToolUseBlock, ids, st.sampled_from(["read_file", "a.b", "ü" * 90]), st.sampled_from(["", "{", '{"a":1}', "[]"])
    ),
    st.just(UnknownBlock({"type": "odd"})),
)
results = st.builds(ToolResultBlock, ids, st.just("t"), texts, st.booleans(), st.lists(images, max_size=2).map(tuple))
messages = st.one_of(
    st.builds(Message, st.just("user"), st.lists(st.one_of(texts.map(TextBlock), images), max_size=3).map(tuple)),
    st.builds(
        Message,
        st.just("assistant"),
        st.lists(blocks, max_size=5).map(tuple),
        wire=st.sampled_from([None, "openai-chat", "openai-responses", "gemini"]),
        stop_reason=st.sampled_from(["end_turn", "paused", "max_tokens", "error"]),
    ),
    st.builds(lambda one: Message("tool", (one,)), results),
)


@given(
    history=st.lists(messages, min_size=1, max_size=12),
    cut=st.integers(1, 12),
    wire=st.sampled_from(["chat", "strict", "responses"]),
)
def test_any_history_is_accepted(history: list[Message], cut: int, wire: str) -> None:
    numbers = count()
    history = [
        Message(m.role, m.content, id=f"m{next(numbers)}", wire=m.wire, stop_reason=m.stop_reason) for m in history
    ]
    provider, http = provider_on(wire)

    async def ask() -> None:
        cache: dict[str, Any] = {}
        kept = RepairedHistory()
        for upto, of_cache in ((cut, cache), (len(history), cache), (len(history), {})):
            kept.update(history[:upto])
            if kept.messages:
                await provider.generate(ModelRequest("m", "S", kept.messages, cache=of_cache), lambda delta: None)

    anyio.run(ask)
    for request in http.requests:
        assert problems(wire, request.content) == []
    if http.requests:
        assert http.requests[-2].content == http.requests[-1].content


@each_wire
def test_200_rounds_of_tools_change_nothing_that_was_sent(wire: str) -> None:
    provider, http = provider_on(wire)
    history = [user("go")]

    async def ask() -> None:
        cache: dict[str, Any] = {}
        for number in range(200):
            # Some services count their calls anew in each reply.
            call_id = f"call_{number % 3}"
            await provider.generate(ModelRequest("m", "S", history, cache=cache), lambda delta: None)
            history.extend((assistant("I look.", call(call_id)), result(call_id, f"result {number}")))

    anyio.run(ask)
    PrefixGuard(request.content for request in http.requests).check(at_least=200)
    assert problems(wire, http.requests[-1].content) == []
