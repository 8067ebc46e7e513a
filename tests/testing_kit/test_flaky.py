"""The provider that fails on purpose."""

from __future__ import annotations

import itertools

import anyio
import pytest

from openheim import Message, ModelRequest, TextBlock
from openheim.errors import IncompleteStreamError, RateLimitedError
from openheim.events import Delta, TextDelta
from openheim.messages import ThinkingBlock
from openheim.testing import Fault, FlakyProvider, Pause, ScriptedProvider, reply_text, reply_tool_calls

pytestmark = pytest.mark.anyio

REQUEST = ModelRequest("scripted", "", [Message("user", (TextBlock("hi"),))])


def hello() -> ScriptedProvider:
    return ScriptedProvider(itertools.repeat(reply_text("Hel", "lo", " you", thinking="hm")))


async def test_only_the_numbered_calls_fail() -> None:
    inner = hello()
    provider = FlakyProvider(inner, {2: Fault(RateLimitedError("slow down"))})
    assert (await provider.generate(REQUEST, lambda delta: None)).content[1] == TextBlock("Hello you")
    with pytest.raises(RateLimitedError) as caught:
        await provider.generate(REQUEST, lambda delta: None)
    assert caught.value.partial == ()
    assert len(inner.requests) == 1
    assert (await provider.generate(REQUEST, lambda delta: None)).finish == "end_turn"
    assert provider.calls == 3


async def test_a_drop_lets_some_of_the_reply_out() -> None:
    inner = hello()
    provider = FlakyProvider(inner, {1: Fault.drop(after=3)})
    deltas: list[Delta] = []
    with pytest.raises(IncompleteStreamError) as caught:
        await provider.generate(REQUEST, deltas.append)
    assert deltas[1:] == [TextDelta("Hel"), TextDelta("lo")]
    assert caught.value.partial == (ThinkingBlock("hm"), TextBlock("Hello"))
    assert inner.active == 0


async def test_a_drop_ends_an_inner_call_that_goes_on() -> None:
    inner = ScriptedProvider([reply_text("Hel", Pause(), "lo")])
    provider = FlakyProvider(inner, {1: Fault.drop(after=1)})
    with anyio.fail_after(5), pytest.raises(IncompleteStreamError):
        await provider.generate(REQUEST, lambda delta: None)
    assert inner.cancelled == 1


async def test_half_a_tool_call_is_no_partial_block() -> None:
    inner = ScriptedProvider([reply_tool_calls(("list_dir", {}), ("list_dir", {}))])
    provider = FlakyProvider(inner, {1: Fault.drop(after=1)})
    with pytest.raises(IncompleteStreamError) as caught:
        await provider.generate(REQUEST, lambda delta: None)
    assert caught.value.partial == ()


async def test_a_fault_may_only_delay() -> None:
    pause = Pause()
    inner = hello()
    provider = FlakyProvider(inner, {1: Fault(pause=pause)})
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(provider.generate, REQUEST, lambda delta: None)
            await pause.reached()
            assert inner.requests == []
            pause.release()
    assert len(inner.requests) == 1


async def test_the_rest_is_the_inner_providers() -> None:
    inner = hello()
    provider = FlakyProvider(inner, {})
    assert (provider.wire, provider.default_model) == ("scripted", "scripted")
    assert [model.id for model in await provider.models()] == ["scripted"]
    await provider.aclose()
    assert inner.closed
