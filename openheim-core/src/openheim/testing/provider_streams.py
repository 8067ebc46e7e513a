"""The part of the provider contract that is about streams: their order, their pieces, and leaving them."""

from __future__ import annotations

import logging
import random
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel

from openheim.messages import TextBlock, ThinkingBlock, ToolUseBlock
from openheim.testing.provider_suite import ProviderSuite, limit, make_call
from openheim.testing.reply_checks import check_streamed_calls, runs_of
from openheim.testing.scripted import Pause

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pytest

    from openheim.events import Delta
    from openheim.plugins.host import PluginHost
    from openheim.providers import ModelReply, Provider, ProviderSettings
    from openheim.testing.http import HttpAnswer

__all__ = ("StreamChecks",)

#: Places at which a body is cut in two, and ways in which it is cut by chance.
_PLACES = 64
_CHANCES = 40

#: Rounds of the event loop that leaving an exchange may take: many more than it needs, and none waits for anything.
_ROUNDS = 200


class StreamChecks(ProviderSuite):
    async def test_deltas_make_the_reply(
        self, host: PluginHost, settings: ProviderSettings, provider: Provider
    ) -> None:
        """What was streamed, in order, is what the reply holds."""
        for reply, deltas in (
            await make_call(provider, self._request(provider)),
            await self._tool_reply(host, settings, provider),
        ):
            assert runs_of(deltas) == runs_of(_said(reply)), "the streamed text and thinking differ from the reply's"
            check_streamed_calls(deltas, reply)

    async def test_nothing_is_skipped(
        self, host: PluginHost, settings: ProviderSettings, provider: Provider, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A fault in ``take`` of an assembler looks as if the service had sent something odd, and is passed over."""
        caplog.set_level(logging.DEBUG, "openheim.assembling")
        await make_call(provider, self._request(provider))
        await self._tool_reply(host, settings, provider)
        skipped = [record.getMessage() for record in caplog.records if record.name == "openheim.assembling"]
        skipped = [text for text in skipped if text.startswith(("skipped ", "taking "))]
        assert not skipped, f"a part of a plain conversation was skipped: {'; '.join(skipped)}"

    async def test_pieces_are_passed_on_as_they_come(self, host: PluginHost, settings: ProviderSettings) -> None:
        """Not held back until the end: whoever watches sees the reply grow."""
        if self.answer is None:
            return
        body = _Watched(_body(self.answer))
        provider = host.create_provider(self.name, settings, self._http(replace(self.answer, body=body)))
        places: list[int] = []
        with limit("generate did not end"):
            await provider.generate(self._request(provider), lambda delta: places.append(body.place))
        assert places, "a greeting was answered without a delta"
        if len(places) > 1:
            assert places[0] < places[-1], "all deltas came at once, when the stream had ended"

    async def test_bytes_may_be_cut_anywhere(self, host: PluginHost, settings: ProviderSettings) -> None:
        """Networks cut a stream in the middle of lines, characters and numbers."""
        for answer in self._answers():
            body = _body(answer)
            whole = await self._replies_to(host, settings, answer, [body])
            for pieces in _cuts(body):
                cut = await self._replies_to(host, settings, answer, pieces)
                assert cut == whole, f"the reply is another when the body comes in these pieces: {_shown(pieces)}"

    async def _replies_to(
        self, host: PluginHost, settings: ProviderSettings, answer: HttpAnswer, pieces: Sequence[bytes]
    ) -> list[Any]:
        provider = host.create_provider(self.name, settings, self._http(replace(answer, body=tuple(pieces))))
        reply, deltas = await make_call(provider, self._request(provider, self.tool_prompt))
        # A call without an id may get one by chance.
        content = [replace(block, id="") if isinstance(block, ToolUseBlock) else block for block in reply.content]
        return [content, reply.finish, reply.usage, reply.model, reply.opaque, runs_of(deltas)]

    async def test_cancelled_before_it_starts(self, provider: Provider) -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await provider.generate(self._request(provider), lambda delta: None)
        assert scope.cancelled_caught, "generate ran to its end though it was cancelled; it has to await something"

    async def test_cancelled_in_the_middle(self, host: PluginHost, settings: ProviderSettings) -> None:
        """It ends at once, closes its exchange, and nothing goes on in the background."""
        pause = Pause()
        http = self._http(None if self.answer is None else self.answer.cut(pause))
        provider = host.create_provider(self.name, settings, http)
        tasks_before = {task.id for task in anyio.get_running_tasks()}
        deltas: list[Delta] = []
        with limit("generate did not end after it was cancelled"):
            async with anyio.create_task_group() as tasks:

                def emit(delta: Delta) -> None:
                    deltas.append(delta)
                    if self.answer is None:
                        tasks.cancel_scope.cancel()

                tasks.start_soon(provider.generate, self._request(provider), emit)
                if self.answer is not None:
                    await pause.reached()
                    tasks.cancel_scope.cancel()
        seen = len(deltas)
        pause.release()
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        assert len(deltas) == seen, "deltas came after generate had ended"
        assert http.active == 0, "the exchange with the service is still open"
        left = [task.name for task in anyio.get_running_tasks() if task.id not in tasks_before]
        assert not left, f"tasks are left running: {left}"

    async def test_cancelling_waits_for_nothing(self, host: PluginHost, settings: ProviderSettings) -> None:
        """Users see a turn end within a tenth of a second: nothing may be waited for on the way out."""
        pause, ended, scope = Pause(), anyio.Event(), anyio.CancelScope()
        http = self._http(None if self.answer is None else self.answer.cut(pause))
        provider = host.create_provider(self.name, settings, http)

        def emit(delta: Delta) -> None:
            if self.answer is None:
                scope.cancel()

        async def generate() -> None:
            with scope:
                await provider.generate(self._request(provider), emit)
            ended.set()

        with limit("generate did not end after it was cancelled"):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(generate)
                if self.answer is None:
                    await ended.wait()
                    return
                await pause.reached()
                scope.cancel()
                for _ in range(_ROUNDS):
                    await anyio.lowlevel.checkpoint()
                in_time, still_open = ended.is_set(), http.active
        assert in_time and not still_open, "generate waits for something before it closes its exchange and ends"


class _Watched(tuple[bytes, ...]):
    """A body in single bytes that knows how far it was read."""

    place: int

    def __new__(cls, body: bytes) -> _Watched:
        made = super().__new__(cls, (body[at : at + 1] for at in range(len(body))))
        made.place = 0
        return made

    def __iter__(self) -> Iterator[bytes]:
        for piece in super().__iter__():
            self.place += 1
            yield piece


def _said(reply: ModelReply) -> list[TextBlock | ThinkingBlock]:
    return [block for block in reply.content if isinstance(block, TextBlock | ThinkingBlock)]


def _body(answer: HttpAnswer) -> bytes:
    return b"".join(piece for piece in answer.body if isinstance(piece, bytes))


def _cuts(body: bytes) -> Iterator[list[bytes]]:
    """The body in single bytes, cut in two at places all over it, and cut by chance, the same each time."""
    yield [body[at : at + 1] for at in range(len(body))]
    step = max(1, len(body) // _PLACES)
    for place in range(1, len(body), step):
        yield [body[:place], body[place:]]
    chance = random.Random(len(body))
    for _ in range(_CHANCES):
        edges = sorted(chance.randrange(len(body) + 1) for _ in range(chance.randint(1, 12)))
        # Equal edges make empty pieces, which are harmless too.
        yield [body[start:end] for start, end in pairwise([0, *edges, len(body)])]


def _shown(pieces: Sequence[bytes]) -> str:
    return "in single bytes" if len(pieces) > 20 else repr(list(pieces))[:400]
