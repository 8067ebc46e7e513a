"""Plugins that answer with what is no answer: an error that names them, and nothing stored that cannot be read."""

from __future__ import annotations

import json
from collections import UserDict
from dataclasses import replace
from typing import Any

import pytest

from openheim import ToolError, ToolResult, tool
from openheim.errors import InvalidRequestError, ServerError
from openheim.messages import (
    ImageBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
    Usage,
    block_to_stored,
)
from openheim.providers import ModelReply
from openheim.testing import ScriptedProvider, reply_error, reply_tool_calls
from tests.agent.sessions import scripted_session

pytestmark = pytest.mark.anyio


class Mute(Exception):
    """Fails even to say what happened."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def raising(err: BaseException) -> Any:
    raise err


WRONG: Any = None
NUMBER: Any = 5

ODD_ANSWERS: dict[str, tuple[Any, str]] = {
    "nothing": (lambda: None, "the tool 'odd' returned NoneType"),
    "no content": (lambda: ToolResult(WRONG), "whose content is NoneType"),
    "text as content": (lambda: ToolResult("abc"), "whose content is str"),  # type: ignore[arg-type]  # wrong on purpose
    "text as a block": (lambda: ToolResult(("abc",)), "holds str"),  # type: ignore[arg-type]  # wrong on purpose
    "another block": (lambda: ToolResult((ToolUseBlock("a", "b", "{}"),)), "holds ToolUseBlock"),  # type: ignore[arg-type]  # wrong on purpose
    "no text": (lambda: ToolResult((TextBlock(WRONG),)), "TextBlock whose text is NoneType"),
    "no image": (lambda: ToolResult((ImageBlock(NUMBER, "image/png"),)), "ImageBlock whose data is int"),
    "no type": (lambda: ToolResult((ImageBlock("aGk=", WRONG),)), "ImageBlock whose mime_type is NoneType"),
    "an error without words": (lambda: raising(ToolError(WRONG)), "the tool 'odd' failed without saying why"),
    "an error with other words": (lambda: raising(ToolError(NUMBER)), "Error: 5"),
    "an error that cannot speak": (lambda: raising(Mute()), "the tool 'odd' failed: Mute"),
}


@pytest.mark.parametrize("name", ODD_ANSWERS)
async def test_an_odd_answer_of_a_tool_is_an_error_for_the_model(name: str) -> None:
    answer, words = ODD_ANSWERS[name]

    @tool
    async def odd() -> str:
        result: str = answer()
        return result

    @tool
    async def good() -> str:
        return "fine"

    script = [reply_tool_calls(("odd", {}), ("good", {})), "went on"]
    async with scripted_session(script, tools=[odd, good]) as run:
        assert (await run.session.run("go")).text == "went on"
        stored = run.stored()
    wrong, right = run.results()
    assert words in wrong.content
    assert (wrong.is_error, right.content) == (True, "fine")
    assert [message.content for message in stored] == [message.content for message in run.session.messages]


async def test_a_display_that_cannot_be_looked_at_is_left_out() -> None:
    class Odd(UserDict[str, Any]):
        def __iter__(self) -> Any:
            raise RuntimeError("no keys")

    @tool
    async def shows() -> ToolResult:
        return ToolResult((TextBlock("seen"),), Odd(title="a"))

    async with scripted_session([reply_tool_calls(("shows", {})), "ok"], tools=[shows]) as run:
        await run.session.run("go")
    assert [(event.content, event.display) for event in run.of_type("tool_result")] == [("seen", None)]


class OddMembers:
    """A tool some of whose members can no longer be read once it is offered."""

    name = "odd"
    description = ""

    def __init__(self, fault: BaseException) -> None:
        self.fault = fault
        self.looked = False

    @property
    def parameters(self) -> Any:
        if self.looked:
            raise self.fault
        self.looked = True
        return {"type": "object"}

    async def run(self, arguments: dict[str, Any], turn: Any) -> str:
        return "not reached"


@pytest.mark.parametrize("fault", [RuntimeError("gone"), SystemExit(0)])
async def test_a_tool_that_can_no_longer_be_looked_at_gives_an_error_result(fault: BaseException) -> None:
    async with scripted_session([reply_tool_calls(("odd", {})), "ok"], tools=[OddMembers(fault)]) as run:
        assert (await run.session.run("go")).text == "ok"
    assert run.results()[0].is_error


GOOD = ModelReply((TextBlock("a"),), "end_turn", Usage(1, 2), "m", {"kept": 1})
ODD_REPLIES: dict[str, tuple[Any, str]] = {
    "nothing": (None, "it returned NoneType instead of a ModelReply"),
    "text": ("hello", "it returned str"),
    "no content": (replace(GOOD, content=WRONG), "content is NoneType"),
    "text as content": (replace(GOOD, content="abc"), "content is str"),  # type: ignore[arg-type]  # wrong on purpose
    "a number": (replace(GOOD, content=(NUMBER,)), "holds int"),
    "a result": (replace(GOOD, content=(ToolResultBlock("a", "b", "c"),)), "holds ToolResultBlock"),
    "no text": (replace(GOOD, content=(TextBlock(WRONG),)), "TextBlock whose text is NoneType"),
    "no arguments": (replace(GOOD, content=(ToolUseBlock("a", "b", WRONG),)), "whose arguments is NoneType"),
    "no id": (replace(GOOD, content=(ToolUseBlock(NUMBER, "b", "{}"),)), "whose id is int"),
    "a signature": (replace(GOOD, content=(ThinkingBlock("a", NUMBER),)), "whose signature is int"),
    "unknown": (replace(GOOD, content=(UnknownBlock(NUMBER),)), "UnknownBlock whose raw is int"),
    "another end": (replace(GOOD, finish="stop"), "finish is 'stop'"),  # type: ignore[arg-type]  # wrong on purpose
    "no end": (replace(GOOD, finish=WRONG), "finish is None"),
    "usage": (replace(GOOD, usage={"input_tokens": 1}), "usage is dict"),  # type: ignore[arg-type]  # wrong on purpose
    "a count": (replace(GOOD, usage=Usage(WRONG, 1)), "whose counts are not all integers"),
    "a negative count": (replace(GOOD, usage=Usage(1, -1)), "whose counts are not all integers"),
    "a vast count": (replace(GOOD, usage=Usage(1, 10**400)), "whose counts are not all integers"),
    "model": (replace(GOOD, model=NUMBER), "model is int"),
    "opaque": (replace(GOOD, opaque=NUMBER), "opaque is int"),
    "deep opaque": (replace(GOOD, opaque={"x": json.loads("[" * 100 + "]" * 100)}), "opaque has more than 100 levels"),
}


@pytest.mark.parametrize("name", ODD_REPLIES)
async def test_an_odd_reply_is_the_provider_s_fault_and_not_stored(name: str) -> None:
    reply, words = ODD_REPLIES[name]

    class Odd(ScriptedProvider):
        async def generate(self, request: Any, emit: Any) -> ModelReply:
            answer: ModelReply = reply
            return answer

    async with scripted_session([], provider=Odd([])) as run:
        outcome = await run.session.run("go")
        assert isinstance(outcome.error, ServerError)
        assert not outcome.error.retryable
        assert outcome.error.message.startswith(f"provider {run.session.binding.provider_name!r} failed: ")
        assert words in outcome.error.message
        assert [message.role for message in run.stored()] == ["user"]


async def test_what_a_reply_may_hold_is_stored_and_loads() -> None:
    blocks = (
        ThinkingBlock("hm", "signature"),
        RedactedThinkingBlock("x"),
        ImageBlock("aGk=", "image/png"),
        UnknownBlock({"type": "hologram"}),
        TextBlock("there"),
    )

    class Rich(ScriptedProvider):
        async def generate(self, request: Any, emit: Any) -> ModelReply:
            return replace(GOOD, content=blocks)

    async with scripted_session([], provider=Rich([])) as run:
        assert (await run.session.run("go")).text == "there"
        assert run.stored()[-1].content == blocks


async def test_odd_details_of_an_error_are_left_out() -> None:
    odd: Any = (NUMBER, TextBlock(WRONG), TextBlock("so far"))
    async with scripted_session([reply_error(InvalidRequestError("no", partial=odd, usage=NUMBER))]) as run:
        outcome = await run.session.run("go")
        assert isinstance(outcome.error, InvalidRequestError)
        assert run.stored()[-1].content == (TextBlock("so far"),)
    assert outcome.usage == Usage()


def test_what_is_no_block_has_no_stored_form() -> None:
    with pytest.raises(TypeError, match="int is no block"):
        block_to_stored(NUMBER)
