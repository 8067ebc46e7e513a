"""Providers with one fault each, and two without, as objects that an entry point may name.

The faulty ones speak a small wire of their own: the request is JSON; the answer is lines, ``say WORD``, ``think WORD``,
``call NAME ARGUMENTS`` and at last ``end``.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import anyio
import anyio.lowlevel

from openheim import (
    EventAssembler,
    ModelInfo,
    ModelReply,
    ModelRequest,
    ProviderSettings,
    TextBlock,
    TextDelta,
    Usage,
    classify_error,
    hookimpl,
)
from openheim.errors import IncompleteStreamError, InvalidRequestError, ServerError
from openheim.events import ThinkingDelta, ToolCallDelta
from openheim.http import HttpClient
from openheim.messages import Block, Message, ThinkingBlock, ToolUseBlock, message_to_stored
from openheim.providers import EmitDelta
from openheim.sse import SSEEvent


class Wire:
    """A provider of the small wire, without a fault."""

    wire = "small"
    default_model = "small-1"

    def __init__(self, settings: ProviderSettings, http: HttpClient) -> None:
        self._key = settings.api_key
        self._entry = settings.name
        self._http = http

    url = "http://small/say"

    def body(self, request: ModelRequest) -> bytes:
        messages = [self.encoded(message) for message in request.messages]
        return json.dumps({"model": request.model, "system": request.system, "messages": messages}).encode()

    def encoded(self, message: Message) -> dict[str, Any]:
        stored = message_to_stored(message)
        if not self.is_own(message):
            stored.pop("opaque", None)
            stored["content"] = [block for block in stored["content"] if "thinking" not in block["type"]]
        return stored

    def is_own(self, message: Message) -> bool:
        return message.is_from(self.wire, self._entry)

    async def generate(self, request: ModelRequest, emit: EmitDelta) -> ModelReply:
        headers = {"authorization": f"Bearer {self._key}"}
        content: list[Block] = []
        headers["content-type"] = "application/json"
        async with self._http.stream("POST", self.url, headers=headers, content=self.body(request)) as answer:
            if answer.status != 200:
                raise self.refusal(answer.status, await answer.read(1000))
            text = b""
            async for chunk in answer.chunks():
                *lines, text = self.split(text, chunk)
                for line in lines:
                    if line == b"end":
                        calls = any(isinstance(block, ToolUseBlock) for block in content)
                        return self.reply(content, "tool_use" if calls else "end_turn")
                    self.take(line.decode(), content, emit)
        raise IncompleteStreamError("the stream ended before its end marker", partial=content)

    def split(self, rest: bytes, chunk: bytes) -> list[bytes]:
        return (rest + chunk).split(b"\n")

    def refusal(self, status: int, body: bytes) -> Exception:
        return classify_error(status, {}, b"")

    def reply(self, content: list[Block], finish: Any) -> ModelReply:
        return ModelReply(tuple(content), finish, Usage(1, 1))

    def take(self, line: str, content: list[Block], emit: EmitDelta) -> None:
        verb, _, rest = line.partition(" ")
        if verb == "say":
            emit(TextDelta(rest))
            content.append(TextBlock(rest))
        elif verb == "think":
            emit(ThinkingDelta(rest))
            content.append(ThinkingBlock(rest))
        elif verb == "call":
            name, _, arguments = rest.partition(" ")
            calls = sum(isinstance(block, ToolUseBlock) for block in content)
            emit(ToolCallDelta(calls, name, arguments))
            content.append(ToolUseBlock(f"c{calls}", name, arguments))
        else:
            raise ServerError("the service does not speak the small wire", partial=content)


class Plugin:
    def __init__(self, make: Callable[[ProviderSettings, HttpClient], Any]) -> None:
        self._make = make

    @hookimpl
    def openheim_create_provider(self, settings: ProviderSettings, http: HttpClient) -> Any:
        return self._make(settings, http)


class Offline:
    """A provider that makes no requests, without a fault."""

    wire = default_model = "offline"

    async def generate(self, request: ModelRequest, emit: EmitDelta) -> ModelReply:
        for word in ("Hello ", "there"):
            await anyio.lowlevel.checkpoint()
            emit(TextDelta(word))
        return ModelReply((TextBlock("Hello there"),), "end_turn")


good = Plugin(Wire)
good_offline = Plugin(lambda settings, http: Offline())


class CountsTwice(Wire):
    def reply(self, content: list[Block], finish: Any) -> ModelReply:
        return ModelReply(tuple(content), finish, Usage(2, 2))


class SlipsInTake(Wire):
    """Its assembler has a fault, which costs it a part of each stream."""

    class Assembler(EventAssembler):
        def take(self, payload: Any, event: str) -> None:
            self.parts.wrte(payload["text"])  # type: ignore[attr-defined]  # the fault

    async def generate(self, request: ModelRequest, emit: EmitDelta) -> ModelReply:
        self.Assembler(emit).feed(SSEEvent('{"text": "hm"}'))
        return await super().generate(request, emit)


class HoldsBack(Wire):
    """Passes everything on when it is over."""

    async def generate(self, request: ModelRequest, emit: EmitDelta) -> ModelReply:
        held: list[Any] = []
        reply = await super().generate(request, held.append)
        for delta in held:
            emit(delta)
        return reply


class ThinksInChunks(Wire):
    """Takes every chunk for whole lines."""

    def split(self, rest: bytes, chunk: bytes) -> list[bytes]:
        return [*chunk.split(b"\n"), b""]


class LeavesSlowly(Wire):
    async def generate(self, request: ModelRequest, emit: EmitDelta) -> ModelReply:
        try:
            return await super().generate(request, emit)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.2)
            raise


class TellsNothingApart(Wire):
    def refusal(self, status: int, body: bytes) -> Exception:
        return ServerError(f"HTTP {status}", status=status)


class SendsForeignSignatures(Wire):
    def is_own(self, message: Message) -> bool:
        return True


class SendsAnotherEntrysSignatures(Wire):
    def is_own(self, message: Message) -> bool:
        return message.wire in (None, self.wire)


class KeyInUrl(Wire):
    def __init__(self, settings: ProviderSettings, http: HttpClient) -> None:
        super().__init__(settings, http)
        self.url += f"?key={settings.api_key}"


class LooksUp(Wire):
    def __init__(self, settings: ProviderSettings, http: HttpClient) -> None:
        super().__init__(settings, http)
        with contextlib.suppress(OSError):
            socket.getaddrinfo("localhost", 80)


class CountsMessages(Wire):
    """Writes into the beginning what changes with every request."""

    def body(self, request: ModelRequest) -> bytes:
        return super().body(replace(request, system=f"{request.system} {len(request.messages)} messages follow."))


class WritesNaN(Wire):
    def body(self, request: ModelRequest) -> bytes:
        return super().body(request)[:-1] + b', "temperature": NaN}'


class BlankModel(Wire):
    default_model = " "


class OddFinish(Wire):
    def reply(self, content: list[Block], finish: Any) -> ModelReply:
        return ModelReply(tuple(content), "stop" if finish == "end_turn" else finish, Usage(1, 1))  # type: ignore[arg-type]  # the fault


class NegativeUsage(Wire):
    def reply(self, content: list[Block], finish: Any) -> ModelReply:
        return ModelReply(tuple(content), finish, Usage(-1, 1))


class NoUsage(Wire):
    def reply(self, content: list[Block], finish: Any) -> ModelReply:
        return ModelReply(tuple(content), finish)


class Rewording(Wire):
    def reply(self, content: list[Block], finish: Any) -> ModelReply:
        return super().reply([TextBlock("something else") if isinstance(b, TextBlock) else b for b in content], finish)


class NoCallIds(Wire):
    def reply(self, content: list[Block], finish: Any) -> ModelReply:
        return super().reply(
            [ToolUseBlock("", b.name, b.arguments) if isinstance(b, ToolUseBlock) else b for b in content], finish
        )


class ForgetsFinish(Wire):
    def reply(self, content: list[Block], finish: Any) -> ModelReply:
        return super().reply(content, "end_turn")


class NamesAsModels(Wire):
    async def models(self) -> list[Any]:
        return ["small-1"]


class Mutating(Wire):
    def body(self, request: ModelRequest) -> bytes:
        request.system += " Be kind."
        return super().body(request)


class Unstable(Wire):
    numbers = itertools.count()

    def body(self, request: ModelRequest) -> bytes:
        return super().body(request)[:-1] + b', "number": %d}' % next(self.numbers)


class Shared(Offline):
    """Keeps what belongs to a call on itself."""

    async def generate(self, request: ModelRequest, emit: EmitDelta) -> ModelReply:
        self.said: list[str] = []
        for word in request.messages[-1].text.split():
            await anyio.lowlevel.checkpoint()
            emit(TextDelta(word))
            self.said.append(word)
        return ModelReply((TextBlock("".join(self.said) or "?"),), "end_turn")


class ClosesOnce(Offline):
    closed = False

    async def aclose(self) -> None:
        if self.closed:
            raise RuntimeError("closed already")
        self.closed = True


class NeverWaits(Offline):
    async def generate(self, request: ModelRequest, emit: EmitDelta) -> ModelReply:
        emit(TextDelta("Hello"))
        return ModelReply((TextBlock("Hello"),), "end_turn")


class GoesOn(Wire):
    """Leaves a task behind that still speaks."""

    async def generate(self, request: ModelRequest, emit: EmitDelta) -> ModelReply:
        self.task = asyncio.ensure_future(super().generate(request, emit))
        await anyio.lowlevel.checkpoint()
        return await asyncio.shield(self.task)


class LeaksErrors(Wire):
    def refusal(self, status: int, body: bytes) -> Exception:
        return RuntimeError(f"HTTP {status}")


class QuotesTheService(Wire):
    def refusal(self, status: int, body: bytes) -> Exception:
        return ServerError(f"HTTP {status}: {body.decode()}")


class TakesItForAnAnswer(Wire):
    def refusal(self, status: int, body: bytes) -> Exception:
        return ServerError(f"HTTP {status}")

    async def generate(self, request: ModelRequest, emit: EmitDelta) -> ModelReply:
        try:
            return await super().generate(request, emit)
        except IncompleteStreamError as err:
            return self.reply(list(err.partial) or [TextBlock("?")], "end_turn")


class Picky(Wire):
    """Does not expect what histories hold."""

    def body(self, request: ModelRequest) -> bytes:
        for message in request.messages:
            for use in message.tool_uses:
                json.loads(use.arguments)["path"]
        return super().body(request)


class PickyInWords(Wire):
    """Does not take it either, and says so as it should."""

    def body(self, request: ModelRequest) -> bytes:
        if any(not message.text for message in request.messages if message.role == "user"):
            raise InvalidRequestError("there is nothing to answer")
        return super().body(request)


class ShowsItsKey(Wire):
    def __repr__(self) -> str:
        return f"ShowsItsKey({self._key})"


class LogsItsKey(Wire):
    async def generate(self, request: ModelRequest, emit: EmitDelta) -> ModelReply:
        logging.getLogger(__name__).debug("calling with %s", self._key)
        return await super().generate(request, emit)


class ListsModels(Wire):
    async def models(self) -> list[ModelInfo]:
        return [ModelInfo("small-1")]


class Faulty:
    """Each class of this module as a plugin: the entry point ``kit_providers:faulty.GoesOn`` creates a ``GoesOn``."""

    def __getattr__(self, name: str) -> Plugin:
        made = globals()[name]
        return Plugin(made if issubclass(made, Wire) else lambda settings, http: made())


faulty = Faulty()


def _heavy(settings: ProviderSettings, http: HttpClient) -> Any:
    from kit_heavy_provider import HeavyProvider

    return HeavyProvider()


heavy = Plugin(_heavy)
