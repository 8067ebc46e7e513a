"""Histories that a crash has cut, or that were damaged otherwise."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openheim.agent.repair import RepairedHistory, repaired
from openheim.messages import (
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
    Usage,
)
from tests.agent.sessions import scripted_session
from tests.agent.turns import is_acceptable

pytestmark = pytest.mark.anyio


def calls(*ids: str) -> Message:
    return Message("assistant", tuple(ToolUseBlock(call, "act", "{}") for call in ids), id=f"m-{ids[0]}")


def result(call: str) -> Message:
    return Message("tool", (ToolResultBlock(call, "act", "ok"),), id=f"r-{call}")


def user(text: str) -> Message:
    return Message("user", (TextBlock(text),), id=text)


def said(text: str) -> Message:
    return Message("assistant", (TextBlock(text),), id=text)


def shape(messages: list[Message]) -> list[str]:
    return [
        f"{block.tool_call_id}{'!' if block.is_error else ''}" if isinstance(block, ToolResultBlock) else message.id
        for message in messages
        for block in message.content[:1]
    ]


@pytest.mark.parametrize(
    ("history", "sent"),
    [
        ([user("a"), calls("1")], ["a", "m-1", "1!"]),
        ([user("a"), calls("1", "2"), result("2")], ["a", "m-1", "1!", "2"]),
        ([user("a"), calls("1", "2"), result("1"), user("b")], ["a", "m-1", "1", "2!", "b"]),
        ([user("a"), calls("1"), calls("2"), result("2")], ["a", "m-1", "1!", "m-2", "2"]),
        ([user("a"), calls("1"), result("1")], ["a", "m-1", "1"]),
        ([user("a"), calls("1"), user(" "), result("1"), user("b")], ["a", "m-1", "1", "b"]),
        ([], []),
    ],
)
async def test_every_call_gets_its_answer_where_it_belongs(history: list[Message], sent: list[str]) -> None:
    assert shape(repaired(history)) == sent


@pytest.mark.parametrize(
    ("history", "sent"),
    [
        # A result without a call.
        ([user("a"), result("9"), said("b"), user("c")], ["a", "b", "c"]),
        ([result("9")], []),
        # A second result for one call.
        ([user("a"), calls("1"), result("1"), result("1"), user("b")], ["a", "m-1", "1", "b"]),
        # A result before its call, and one behind the next message.
        ([user("a"), result("1"), calls("1"), user("b")], ["a", "m-1", "1!", "b"]),
        ([user("a"), calls("1"), user("b"), result("1"), said("c")], ["a", "m-1", "1!", "b", "c"]),
        # The same id again, in another reply.
        ([user("a"), calls("1"), result("1"), calls("1"), result("1")], ["a", "m-1", "1", "m-1:wanted", "1-1"]),
    ],
)
async def test_every_answer_has_its_call(history: list[Message], sent: list[str]) -> None:
    assert shape(repaired(history)) == sent


def call_ids(messages: list[Message]) -> list[str]:
    return [call.id for message in messages for call in message.tool_uses]


@pytest.mark.parametrize(
    ("history", "asked", "answered"),
    [
        ([calls("1", "1"), result("1"), result("1")], ["1", "1-1"], ["1", "1-1"]),
        # One of the two has no answer: the first that is there belongs to the first call.
        ([calls("1", "1"), result("1")], ["1", "1-1"], ["1", "1-1!"]),
        ([calls("1", "1"), result("1"), result("1"), result("1")], ["1", "1-1"], ["1", "1-1"]),
        # Answers of calls with ids of their own stand between.
        (
            [calls("1", "2", "1"), result("2"), result("1"), result("1")],
            ["1", "2", "1-1"],
            ["1", "2", "1-1"],
        ),
        # The new id is taken already, before and behind.
        (
            [calls("1-1"), result("1-1"), calls("1", "1"), result("1"), result("1")],
            ["1-1", "1", "1-2"],
            ["1-1", "1", "1-2"],
        ),
        ([calls("1", "1", "1-1"), result("1-1")], ["1", "1-1", "1-1-1"], ["1!", "1-1!", "1-1-1"]),
        (
            [calls("1", "1"), result("1"), result("1"), calls("1", "1"), result("1"), result("1")],
            ["1", "1-1", "1-2", "1-3"],
            ["1", "1-1", "1-2", "1-3"],
        ),
    ],
)
async def test_calls_of_one_id_are_all_kept(history: list[Message], asked: list[str], answered: list[str]) -> None:
    sent = repaired([user("a"), *history, user("b")])
    assert call_ids(sent) == asked
    assert [name for name in shape(sent) if name.rstrip("!") in asked] == answered
    assert is_acceptable(sent)


async def test_answers_of_one_id_go_to_its_calls_in_order() -> None:
    twice = Message(
        "assistant", tuple(ToolUseBlock("1", "act", f'{{"n":{n}}}') for n in (1, 2)), id="m", usage=Usage(7)
    )
    results = tuple(ToolResultBlock("1", "act", text) for text in ("one", "two"))
    for answers in (
        [Message("tool", results, id="r")],
        [Message("tool", (block,), id=block.content) for block in results],
    ):
        _, caller, *sent = repaired([user("a"), twice, *answers])
        assert [(block.id, block.arguments) for block in caller.tool_uses] == [("1", '{"n":1}'), ("1-1", '{"n":2}')]
        said = [(block.tool_call_id, block.content) for message in sent for block in message.content]
        assert said == [("1", "one"), ("1-1", "two")]
        assert caller.usage == Usage(7)
        ids = [message.id for message in (caller, *sent)]
        assert len(set(ids)) == len(ids)
        assert "m" not in ids


async def test_results_that_share_a_message_are_told_apart() -> None:
    both = Message("tool", (*result("1").content, *result("2").content, *result("1").content), id="r")
    *_, answer = repaired([user("a"), calls("1"), both])
    assert answer.content == result("1").content
    assert answer.id != "r"
    assert both.content[1:2] == result("2").content


@pytest.mark.parametrize(
    ("message", "is_sent"),
    [
        (Message("user", (), id="x"), False),
        (Message("user", (TextBlock(" \n "), TextBlock("")), id="x"), False),
        (Message("assistant", (TextBlock(""),), id="x"), False),
        (Message("assistant", (ThinkingBlock(" "), TextBlock("")), id="x"), False),
        (Message("assistant", (ThinkingBlock("", "signature"),), id="x"), True),
        (Message("assistant", (TextBlock(""),), id="x", opaque={"kept": 1}), True),
        (Message("assistant", (ThinkingBlock("hm"),), id="x"), True),
        (Message("user", (TextBlock(""), ImageBlock("aGk=", "image/png")), id="x"), True),
        (Message("user", (UnknownBlock({"type": "hologram"}),), id="x"), True),
    ],
)
async def test_a_message_without_content_is_not_sent(message: Message, is_sent: bool) -> None:
    history = [user("a"), message, user("b")]
    assert repaired(history) == ([history[0], message, history[2]] if is_sent else [history[0], history[2]])


async def test_what_begins_with_the_model_gets_a_beginning() -> None:
    history = [result("0"), said("hello"), user("a")]
    first, *rest = repaired(history)
    assert first.role == "user"
    assert first.text == "[The beginning of this conversation is missing.]"
    assert rest == history[1:]
    assert [message.id for message in repaired(history)] == [message.id for message in repaired(history)]


MESSAGES = st.one_of(
    st.sampled_from(["a", "b", " ", ""]).map(user),
    st.sampled_from(["c", "\n"]).map(lambda text: said(text)),
    st.lists(st.sampled_from(["1", "2", "1-1"]), min_size=1, max_size=3).map(lambda ids: calls(*ids)),
    st.sampled_from(["1", "2", "3", "1-1"]).map(result),
    st.lists(st.sampled_from("12"), max_size=3).map(
        lambda ids: Message("tool", tuple(block for call in ids for block in result(call).content), id="r")
    ),
)


@given(st.lists(MESSAGES), st.data())
def test_any_history_can_be_sent(history: list[Message], data: st.DataObject) -> None:
    sent = repaired(history)
    assert not sent or is_acceptable(sent)
    ids = call_ids(sent)
    assert len(set(ids)) == len(ids)
    assert repaired(sent) == sent
    # Piece by piece, with a request after each piece.
    growing = RepairedHistory()
    position = 0
    while position < len(history):
        position = data.draw(st.integers(position + 1, len(history)))
        before = list(growing.messages)
        assert growing.update(history[:position]) == len(before)
        assert growing.messages[: len(before)] == before
        assert not growing.messages or is_acceptable(growing.messages)


async def test_another_history_is_repaired_from_its_beginning() -> None:
    history = RepairedHistory()
    history.update([user("a"), said("b"), user("c")])
    for other in ([user("d"), said("e"), user("f")], [user("g")]):
        assert history.update(other) == 0
        assert history.messages == other


async def test_repair_is_the_same_every_time() -> None:
    history = [user("a"), calls("1", "2")]
    once, twice = repaired(history), repaired(history)
    assert [message.id for message in once] == [message.id for message in twice]
    assert repaired(once) == once


async def test_results_whose_call_was_damaged_are_left_out_of_requests() -> None:
    """A line of the history that cannot be read any more may be the one with the calls."""
    from openheim.testing import reply_tool_calls

    script = [reply_tool_calls(("act", {}), ("act", {})), "fine", "on"]
    async with scripted_session(script) as run:
        await run.session.run("go")
        session_id, provider = run.session.id, run.provider
        run.runtime.close_session(run.session)
        path = run.runtime.store.log_path(session_id)
        lines = path.read_bytes().splitlines(keepends=True)
        assert b"tool_use" in lines[2]
        path.write_bytes(b"".join([*lines[:2], lines[2].replace(b'{"role"', b'{"rXle', 1), *lines[3:]]))
        again = run.runtime.load_session(session_id, provider=provider)
        assert again.warnings == ("line 3 of the history cannot be read and is skipped",)
        assert (await again.run("on")).text == "on"
    sent = provider.requests[-1].messages
    assert [(message.role, message.text) for message in sent] == [("user", "go"), ("assistant", "fine"), ("user", "on")]


async def test_a_call_without_an_answer_gets_one_in_the_request_only(tmp_path: Path) -> None:
    """The turn is ended as a crash would: with the call stored and nothing behind it."""
    from openheim.testing import reply_tool_calls

    class Crash(GeneratorExit):
        """What no part of the loop takes for a failure of the gate."""

    class Gate:
        async def decide(self, call: object, session: object) -> object:
            raise Crash

    from openheim import tool

    @tool
    async def act() -> str:
        return "ran"

    script = [reply_tool_calls(("act", {})), "fine"]
    async with scripted_session(script, tools=[act], gate=Gate()) as run:
        with pytest.raises(Crash):
            await run.session.run("go")
        before = run.runtime.store.log_path(run.session.id).read_bytes()
        assert (await run.session.run("on")).text == "fine"
        after = run.runtime.store.log_path(run.session.id).read_bytes()
    sent = run.provider.requests[1].messages
    assert [message.role for message in sent] == ["user", "assistant", "tool", "user"]
    assert sent[2].content[0].is_error
    assert after.startswith(before)
    roles = [json.loads(line).get("role") for line in after.splitlines()]
    assert roles == [None, "user", "assistant", None, "user", "assistant", None]


async def test_a_stored_history_with_calls_of_one_id_is_sent_whole_and_the_same_in_every_round(tmp_path: Path) -> None:
    """As another program may have written it; both calls were run and answered."""
    from openheim.store.operations.importing import import_session
    from openheim.testing import ScriptedReply

    def said(role: str, *content: dict[str, object]) -> dict[str, object]:
        return {"role": role, "content": content}

    call = {"type": "tool_use", "id": "call_0", "name": "act", "arguments": "{}"}
    answer = {"type": "tool_result", "tool_call_id": "call_0", "tool_name": "act"}
    given = [
        said("user", {"type": "text", "text": "go"}),
        said("assistant", call, call),
        said("tool", {**answer, "content": "one"}),
        said("tool", {**answer, "content": "two"}),
        said("assistant", {"type": "text", "text": "done"}),
    ]
    # The service gives the same id to its next calls, twice in one reply.
    again = ScriptedReply(tuple(ToolUseBlock("call_0", "act", "{}") for _ in range(2)), "tool_use")
    async with scripted_session([again, "fine", "on"]) as run:
        meta = import_session(run.runtime.store, json.loads(json.dumps({"messages": given})), cwd=str(tmp_path))
        session = run.runtime.load_session(meta.id, provider=run.provider)
        assert (await session.run("more")).text == "fine"
        run.runtime.close_session(session)
        session = run.runtime.load_session(meta.id, provider=run.provider)
        assert (await session.run("on")).text == "on"
    requests = [request.messages for request in run.provider.requests]
    assert len(requests) == 3
    answers = [block for message in requests[0] for block in message.content if isinstance(block, ToolResultBlock)]
    assert [(block.tool_call_id, block.content) for block in answers] == [("call_0", "one"), ("call_0-1", "two")]
    assert is_acceptable(requests[-1])
    assert len(set(call_ids(requests[-1]))) == 4
    for earlier, later in pairwise(requests):
        assert [(message.id, message.content) for message in later[: len(earlier)]] == [
            (message.id, message.content) for message in earlier
        ]
