"""Histories that a crash has cut."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from openheim.agent.repair import with_every_call_answered
from openheim.messages import Message, TextBlock, ToolResultBlock, ToolUseBlock
from tests.agent.sessions import scripted_session

pytestmark = pytest.mark.anyio


def calls(*ids: str) -> Message:
    return Message("assistant", tuple(ToolUseBlock(call, "act", "{}") for call in ids), id=f"m-{ids[0]}")


def result(call: str) -> Message:
    return Message("tool", (ToolResultBlock(call, "act", "ok"),), id=f"r-{call}")


def user(text: str) -> Message:
    return Message("user", (TextBlock(text),), id=text)


def shape(messages: list[Message]) -> list[str]:
    return [
        f"{block.tool_call_id}{'!' if block.is_error else ''}" if isinstance(block, ToolResultBlock) else message.id
        for message in messages
        for block in message.content[:1]
    ]


@pytest.mark.parametrize(
    ("history", "repaired"),
    [
        ([user("a"), calls("1")], ["a", "m-1", "1!"]),
        ([user("a"), calls("1", "2"), result("2")], ["a", "m-1", "2", "1!"]),
        ([user("a"), calls("1", "2"), result("1"), user("b")], ["a", "m-1", "1", "2!", "b"]),
        ([calls("1"), calls("2"), result("2")], ["m-1", "1!", "m-2", "2"]),
        ([user("a"), calls("1"), result("1")], ["a", "m-1", "1"]),
        ([], []),
    ],
)
async def test_every_call_gets_its_answer_where_it_belongs(history: list[Message], repaired: list[str]) -> None:
    assert shape(with_every_call_answered(history)) == repaired


async def test_repair_is_the_same_every_time() -> None:
    history = [user("a"), calls("1", "2")]
    once, twice = with_every_call_answered(history), with_every_call_answered(history)
    assert [message.id for message in once] == [message.id for message in twice]
    assert with_every_call_answered(once) == once


async def test_a_call_without_an_answer_gets_one_in_the_request_only(tmp_path: Path) -> None:
    """The turn is ended as a crash would: with the call stored and nothing behind it."""
    from openheim.testing import reply_tool_calls

    class Crash(BaseException):
        pass

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
    assert roles == ["user", "assistant", None, "user", "assistant", None]
