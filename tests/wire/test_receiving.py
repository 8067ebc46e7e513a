"""Replies put together from streams, whatever the wire: what is odd, cut or endless in them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from openheim import assembling, receiving
from openheim.assembling import EventAssembler
from openheim.errors import MalformedToolCallError, ProviderError, ServerError
from openheim.events import TextDelta
from openheim.http import HttpClient
from openheim.messages import TextBlock, ThinkingBlock, ToolUseBlock, Usage
from openheim.providers import ModelReply
from openheim.receiving import read_reply
from openheim.reply_parts import CallPart
from openheim.sse import SSEEvent
from tests.support.replies import HOLD, Reply, raw
from tests.support.server import ScriptedServer

pytestmark = pytest.mark.anyio


class Assembler(EventAssembler):
    """A wire whose events say each thing by its own name."""

    def take(self, payload: dict[str, Any], event: str) -> None:
        if "usage" in payload:
            self.usage = Usage(payload["usage"])
        if "text" in payload:
            self.parts.write(payload["text"])
        if "thinking" in payload:
            self.parts.write(payload["thinking"], thinking=True)
        if "signature" in payload:
            self.parts.sign(payload["signature"])
        if "call" in payload:
            call = CallPart()
            call.id, call.name, call.signature = payload["call"]
            self.parts.begin_call(call)
            self.parts.call_piece(call, call.add_arguments(payload.get("arguments", "")))
        if "finish" in payload:
            self.finish = payload["finish"]


def events(*payloads: dict[str, Any]) -> bytes:
    return b"".join(b"data: %s\n\n" % json.dumps(payload).encode() for payload in payloads)


async def received(reply: Reply, assembler: type[EventAssembler] = Assembler, timeout_secs: float = 10) -> ModelReply:
    def classified(response: Any, body: bytes) -> ProviderError:
        return ServerError("classified", status=response.status)

    def release(delta: Any) -> None:
        if delta == TextDelta("on "):
            server.release()

    http = HttpClient(proxy="")
    async with ScriptedServer([reply]) as server:
        with anyio.fail_after(30):
            try:
                async with http.stream("GET", server.url, timeout_secs=timeout_secs) as response:
                    return await read_reply(response, assembler(release), classified)
            finally:
                await http.aclose()


def fed(*payloads: Any) -> Assembler:
    assembler = Assembler(lambda delta: None)
    for payload in payloads:
        assembler.feed(SSEEvent(json.dumps(payload)))
    return assembler


# --- when a reply is complete ---


async def test_a_reason_for_the_end_with_every_piece_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiving, "_LAST_SECS", 0)
    pieces = [{"text": text, "finish": "end_turn"} for text in ("and ", "on ", "to the end")]
    stream = Reply((events(*pieces[:2]), HOLD, events(pieces[2])), headers={"content-type": "text/event-stream"})
    assert (await received(stream)).content == (TextBlock("and on to the end"),)


async def test_a_stream_that_stays_open_after_its_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiving, "_LAST_SECS", 0)
    stream = raw(events({"text": "all"}, {"finish": "end_turn"}, {"usage": 3})).ending("stall")
    reply = await received(stream)
    assert (reply.content, reply.usage) == ((TextBlock("all"),), Usage(3))


async def test_a_stream_that_goes_on_slowly_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comments have a limit, which begins anew with each piece of the reply."""
    monkeypatch.setattr(receiving, "_QUIET_SECS", 0)
    pieces = [part for word in "abcdefgh" for part in (b": still here\n\n", events({"text": word}))]
    stream = raw([*pieces, events({"finish": "end_turn"})]).slow(0.05)
    assert (await received(stream, timeout_secs=0.6)).content == (TextBlock("abcdefgh"),)


# --- odd values ---


@pytest.mark.parametrize("odd", [1, True, ["a"], {"a": 1}, None])
def test_what_is_no_text_is_left_out(odd: Any) -> None:
    assembler = fed(
        {"text": "a"}, {"text": odd}, {"thinking": odd}, {"signature": odd}, {"text": "b", "finish": "other"}
    )
    assert assembler.reply().content == (TextBlock("ab"),)


@pytest.mark.parametrize("odd", [1, ["a"], {"a": 1}, None])
def test_a_call_whose_id_is_no_text_gets_one(odd: Any) -> None:
    (call,) = fed({"call": [odd, "look", odd], "arguments": "{}", "finish": "tool_use"}).reply().content
    assert isinstance(call, ToolUseBlock)
    assert call.id.startswith("call_") and len(call.id) == 29
    assert call.signature is None


@pytest.mark.parametrize("odd", [1, ["a"], None, ""])
def test_a_call_whose_name_is_no_text_names_no_tool(odd: Any) -> None:
    with pytest.raises(MalformedToolCallError):
        fed({"call": ["c", odd, None], "finish": "tool_use"}).reply()


# --- failures keep what had come ---


class Faulty(Assembler):
    """Its reply cannot be put together."""

    def reply(self) -> ModelReply:
        raise TypeError("odd")


NAMELESS = {"call": ["c", "", None], "finish": "tool_use"}


@pytest.mark.parametrize(
    ("assembler", "last", "end", "kind"),
    [
        (Faulty, {"finish": "end_turn"}, "clean", "server_error"),
        (Faulty, {"finish": "end_turn"}, "reset", "server_error"),
        (Assembler, NAMELESS, "clean", "malformed_tool_call"),
        (Assembler, NAMELESS, "reset", "malformed_tool_call"),
        (Assembler, {}, "reset", "connection"),
    ],
)
async def test_failures_keep_what_had_come(assembler: type[Assembler], last: Any, end: Any, kind: str) -> None:
    stream = raw(events({"text": "so far", "usage": 7}, last)).ending(end)
    with pytest.raises(ProviderError) as caught:
        await received(stream, assembler=assembler)
    assert caught.value.kind == kind
    assert caught.value.partial == (TextBlock("so far"),)
    assert caught.value.usage == Usage(7)


# --- bounds ---


@pytest.mark.parametrize("text", ["t", ""])
def test_what_is_not_shown_is_bounded_beside_what_is(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembling, "_MAX_SILENT", 100_000)
    event = {"signature": "x" * 10_000, **({"thinking": text} if text else {})}
    assert fed(*[event] * 9).partial()
    with pytest.raises(ServerError, match="no part of the text"):
        fed(*[event] * 12)


def test_what_is_shown_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembling, "_MAX_SILENT", 100)
    pieces: Sequence[Any] = [{"thinking": "ä" * 5000, "id": "x" * 300}, {"thinking": "a"}] * 100
    (block,) = fed(*pieces).partial()
    assert isinstance(block, ThinkingBlock) and len(block.thinking) == 500_100


async def test_a_call_with_a_name_of_unlikely_length() -> None:
    with pytest.raises(MalformedToolCallError, match="1024 characters"):
        await received(raw(events({"call": ("a", "x" * 2_000, None)}, {"finish": "tool_use"})))


async def test_a_call_with_an_id_of_unlikely_length_gets_another() -> None:
    reply = await received(raw(events({"call": ("x" * 2_000, "read", None)}, {"finish": "tool_use"})))
    block = reply.content[0]
    assert isinstance(block, ToolUseBlock) and 1 < len(block.id) < 100


def test_a_fault_in_take_is_placed_at_debug_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "openheim.assembling")
    fed({"call": 5, "text": "canary"}, ["canary"])
    shown = [record.getMessage() for record in caplog.records if record.levelname == "DEBUG"]
    assert shown and all("canary" not in text for text in shown)
    assert re.fullmatch(r"taking a part of the stream raised AttributeError at .*assembling\.py:\d+", shown[-1])
