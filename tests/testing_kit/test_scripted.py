"""The scripted provider: what it replies, records and does when it is cancelled."""

from __future__ import annotations

import itertools

import anyio
import pytest

from openheim import Message, ModelReply, ModelRequest, TextBlock, Usage
from openheim.errors import RateLimitedError
from openheim.events import Delta, TextDelta, ThinkingDelta, ToolCallDelta
from openheim.messages import RedactedThinkingBlock, ThinkingBlock, ToolUseBlock
from openheim.testing import Pause, ScriptedProvider, ScriptedReply, reply_error, reply_text, reply_tool_calls

pytestmark = pytest.mark.anyio


def request(*texts: str) -> ModelRequest:
    return ModelRequest("scripted", "", [Message("user", (TextBlock(text),)) for text in texts or ("hi",)])


async def call(provider: ScriptedProvider, *texts: str) -> tuple[ModelReply, list[Delta]]:
    deltas: list[Delta] = []
    with anyio.fail_after(5):
        return await provider.generate(request(*texts), deltas.append), deltas


async def test_replies_in_order_and_records_requests() -> None:
    provider = ScriptedProvider(["one", reply_text("t", "wo", usage=Usage(1, 2)), lambda asked: asked.messages[0].text])
    first, deltas = await call(provider)
    assert first == ModelReply((TextBlock("one"),), "end_turn")
    assert deltas == [TextDelta("one")]
    second, deltas = await call(provider)
    assert second == ModelReply((TextBlock("two"),), "end_turn", Usage(1, 2))
    assert deltas == [TextDelta("t"), TextDelta("wo")]
    third, _ = await call(provider, "echo")
    assert third.content == (TextBlock("echo"),)
    assert [asked.messages[0].text for asked in provider.requests] == ["hi", "hi", "echo"]


async def test_requests_are_recorded_as_they_were() -> None:
    provider = ScriptedProvider(itertools.repeat("ok"))
    asked = request("one")
    await provider.generate(asked, lambda delta: None)
    assert isinstance(asked.messages, list)
    asked.messages.append(Message("user", (TextBlock("two"),)))
    await provider.generate(asked, lambda delta: None)
    assert [len(recorded.messages) for recorded in provider.requests] == [1, 2]


async def test_tool_calls_get_ids_of_their_own() -> None:
    calls = (("list_dir", {}), ("read_file", '{"path": '))
    provider = ScriptedProvider([reply_tool_calls(*calls, text="I look.", thinking="hm"), reply_tool_calls(*calls)])
    reply, deltas = await call(provider)
    assert reply.finish == "tool_use"
    assert reply.content == (
        ThinkingBlock("hm"),
        TextBlock("I look."),
        ToolUseBlock("call_1_1", "list_dir", "{}"),
        ToolUseBlock("call_1_2", "read_file", '{"path": '),
    )
    assert deltas == [
        ThinkingDelta("hm"),
        TextDelta("I look."),
        ToolCallDelta(0, "list_dir", "{}"),
        ToolCallDelta(1, "read_file", '{"path": '),
    ]
    again, _ = await call(provider)
    assert [block.id for block in again.content if isinstance(block, ToolUseBlock)] == ["call_2_1", "call_2_2"]


async def test_any_block_may_stand_in_a_reply() -> None:
    steps = (RedactedThinkingBlock("x"), ThinkingBlock("a", "sig"), ThinkingBlock("b"), ToolUseBlock("mine", "t", "{}"))
    reply, _ = await call(ScriptedProvider([ScriptedReply(steps, "paused", model="m", opaque={"k": 1})]))
    assert reply == ModelReply(steps, "paused", None, "m", {"k": 1})


async def test_an_error_takes_along_what_was_said() -> None:
    error = RateLimitedError("slow down")
    provider = ScriptedProvider([reply_error(error, after="Hel"), reply_error(error), reply_error(KeyError("x"))])
    with pytest.raises(RateLimitedError) as caught:
        await call(provider)
    assert caught.value.partial == (TextBlock("Hel"),)
    with pytest.raises(RateLimitedError) as caught:
        await call(provider)
    assert caught.value.partial == ()
    with pytest.raises(KeyError):
        await call(provider)


async def test_the_end_of_the_script_is_an_error() -> None:
    provider = ScriptedProvider(["one"])
    await call(provider)
    with pytest.raises(AssertionError, match="no reply for call 2"):
        await call(provider)


async def test_a_pause_is_a_known_moment() -> None:
    pause = Pause()
    provider = ScriptedProvider([reply_text("Hel", pause, "lo")])
    deltas: list[Delta] = []
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(provider.generate, request(), deltas.append)
            await pause.reached()
            assert deltas == [TextDelta("Hel")]
            assert provider.active == 1
            pause.release()
    assert deltas == [TextDelta("Hel"), TextDelta("lo")]
    assert (provider.active, provider.cancelled) == (0, 0)


async def test_cancelled_calls_are_counted() -> None:
    pause = Pause()
    provider = ScriptedProvider([reply_text(pause, "never")])
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(provider.generate, request(), lambda delta: None)
            await pause.reached()
            tasks.cancel_scope.cancel()
    assert (provider.active, provider.cancelled) == (0, 1)


async def test_models_and_closing() -> None:
    provider = ScriptedProvider([], models=("a", "b"))
    assert [model.id for model in await provider.models()] == ["a", "b"]
    await provider.aclose()
    assert provider.closed


def test_a_pause_can_be_made_outside_of_the_event_loop() -> None:
    pause = Pause()
    provider = ScriptedProvider([reply_text(pause, "ok")])
    pause.release()
    assert anyio.run(call, provider)[0].content == (TextBlock("ok"),)
