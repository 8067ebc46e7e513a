"""What a reply and a result may take, and what slips out of plugins."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from openheim import ToolResult, tool
from openheim.agent import answers, loop
from openheim.agent.steps import DirectSteps
from openheim.errors import ServerError, StorageError
from openheim.events import TextDelta, ToolCallDelta
from openheim.messages import ImageBlock, TextBlock, ToolUseBlock, Usage
from openheim.providers import ModelReply
from openheim.testing import ScriptedProvider, reply_error, reply_text, reply_tool_calls
from tests.agent.sessions import scripted_session
from tests.agent.turns import Conversation

pytestmark = pytest.mark.anyio


class Endless:
    """Emits text without end, or one block of a given size at once."""

    wire = "endless"
    default_model = "endless"

    def __init__(self, size: int | None = None) -> None:
        self.size = size
        self.emitted = 0
        self.cancelled = False

    async def generate(self, request: Any, emit: Any) -> ModelReply:
        if self.size is not None:
            return ModelReply((TextBlock("x" * self.size),), "end_turn")
        try:
            while True:
                emit(TextDelta("word "))
                self.emitted += 1
                await anyio.lowlevel.checkpoint()
        except anyio.get_cancelled_exc_class():
            self.cancelled = True
            raise


async def test_a_reply_without_end_is_cut_and_what_came_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "MAX_REPLY_BYTES", 100_000)
    provider = Endless()
    async with scripted_session([], provider=provider) as run:
        with anyio.fail_after(20):
            outcome = await run.session.run("go")
        assert isinstance(outcome.error, ServerError)
        assert "max_tokens" in outcome.error.hint
        assert provider.cancelled
        assert 1000 < provider.emitted < 2000
        assert run.stored()[-1].text.startswith("word word")
        assert run.stored()[-1].stop_reason == "error"


async def test_a_reply_too_long_in_one_piece_is_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "MAX_REPLY_BYTES", 100_000)
    async with scripted_session([], provider=Endless(100_001)) as run:
        outcome = await run.session.run("go")
        assert isinstance(outcome.error, ServerError)
        assert [message.role for message in run.stored()] == ["user"]


@pytest.mark.parametrize("way", ["deltas", "reply"])
async def test_a_reply_with_a_flood_of_calls_is_cut(way: str) -> None:
    emitted = 0

    class Flooding(ScriptedProvider):
        async def generate(self, request: Any, emit: Any) -> ModelReply:
            nonlocal emitted
            for number in range(5000):
                if way == "deltas":
                    emit(ToolCallDelta(number, "look", "{}"))
                    await anyio.lowlevel.checkpoint()
                emitted += 1
            return ModelReply(tuple(ToolUseBlock(f"c{n}", "look", "{}") for n in range(emitted)), "tool_use")

    async with scripted_session([], provider=Flooding([])) as run:
        with anyio.fail_after(20):
            outcome = await run.session.run("go")
        assert isinstance(outcome.error, ServerError)
        assert "more than 1000 tool calls" in str(outcome.error)
        assert not outcome.error.retryable
        assert [message.role for message in run.stored()] == ["user"]
    assert emitted <= (1001 if way == "deltas" else 5000)
    assert len(run.of_type("tool_call_delta")) <= 1000


async def test_as_many_calls_as_are_allowed_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "MAX_REPLY_CALLS", 3)

    @tool(read_only=True)
    async def look() -> str:
        return "seen"

    async with scripted_session([reply_tool_calls(*[("look", {})] * 3), "ok"], tools=[look]) as run:
        outcome = await run.session.run("go")
    assert outcome.text == "ok"
    assert [result.content for result in run.results()] == ["seen"] * 3


async def test_a_turn_that_could_not_be_saved_fails_and_tells_its_answer() -> None:
    conversation = Conversation(["the answer"])
    conversation.history.unwritten = 2
    outcome = await conversation.prompt("go")
    assert isinstance(outcome.error, StorageError)
    assert "2 messages of this turn could not be saved" in str(outcome.error)
    assert (outcome.stop_reason, outcome.text) == ("end_turn", "the answer")


async def test_images_and_displays_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MAX_IMAGE_CHARACTERS", 100)
    monkeypatch.setattr(answers, "MAX_DISPLAY_CHARACTERS", 100)

    @tool
    async def picture(size: int, display: int) -> ToolResult:
        blocks = (TextBlock("seen"), ImageBlock("x" * size, "image/png"))
        return ToolResult(blocks, {"title": "y" * display} if display else {"odd": {1, 2}})

    script = [
        reply_tool_calls(
            *(("picture", {"size": size, "display": display}) for size, display in ((100, 10), (101, 200), (1, 0)))
        ),
        "ok",
    ]
    async with scripted_session(script, tools=[picture]) as run:
        await run.session.run("go")
    assert [len(result.images) for result in run.results()] == [1, 0, 1]
    assert "1 images left out" in run.results()[1].content
    shown = {event.id: event.display for event in run.of_type("tool_result")}
    assert [shown[result.tool_call_id] for result in run.results()] == [{"title": "y" * 10}, None, None]


async def stray() -> str:
    """Awaits something that somebody else has cancelled."""
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    future.cancel()
    return await future


SLIPS = [
    SystemExit(0),
    KeyboardInterrupt(),
    BaseExceptionGroup("tasks", [SystemExit(0)]),
    BaseExceptionGroup("tasks", [KeyboardInterrupt(), ValueError("odd")]),
    None,
]


@pytest.fixture
def quiet_interrupts() -> Iterator[None]:
    """Ctrl+C does not raise here, as in the command: what raises ``KeyboardInterrupt`` all the same is a plugin."""
    previous = signal.signal(signal.SIGINT, lambda *_: None)
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.mark.parametrize("number", [1, 2])
async def test_a_cancellation_that_a_tool_lets_slip_is_its_own_error(number: int) -> None:
    @tool
    async def slips() -> str:
        return await stray()

    script = [reply_tool_calls(*[("slips", {})] * number), "went on"]
    async with scripted_session(script, tools=[slips]) as run:
        with anyio.fail_after(10):
            outcome = await run.session.run("go")
    assert outcome.text == "went on"
    assert [result.is_error for result in run.results()] == [True] * number


@pytest.mark.usefixtures("quiet_interrupts")
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("slip", [slip for slip in SLIPS if slip is not None], ids=repr)
async def test_what_slips_out_of_a_tool_is_its_own_error(slip: BaseException, number: int) -> None:
    @tool
    async def slips() -> str:
        raise slip

    script = [reply_tool_calls(*[("slips", {})] * number), "went on"]
    async with scripted_session(script, tools=[slips]) as run:
        with anyio.fail_after(10):
            outcome = await run.session.run("go")
        assert outcome.text == "went on"
        assert [result.is_error for result in run.results()] == [True] * number
        assert all("the tool 'slips' " in result.content for result in run.results())
        assert len(run.stored()) == 3 + number


def raise_it(err: BaseException) -> Any:
    raise err


@pytest.mark.usefixtures("quiet_interrupts")
@pytest.mark.parametrize("fault", [RuntimeError("no"), SystemExit(0), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("kind", ["edit", "other"])
async def test_a_target_that_cannot_be_told_does_not_end_the_turn(kind: Any, fault: BaseException) -> None:
    @tool(kind=kind, target=lambda arguments, turn: raise_it(fault))
    async def act() -> str:
        return "done"

    async with scripted_session([reply_tool_calls(("act", {})), "ok"], tools=[act]) as run:
        with anyio.fail_after(10):
            assert (await run.session.run("go")).text == "ok"
    assert len(run.results()) == 1


@pytest.mark.usefixtures("quiet_interrupts")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_an_interrupt_that_is_meant_ends_the_turn_in_order(number: int) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    @tool
    async def works() -> str:
        signal.raise_signal(number)
        return "not reached"

    previous = signal.signal(number, interrupt)
    try:
        async with scripted_session([reply_tool_calls(("works", {}))], tools=[works]) as run:
            with pytest.raises(KeyboardInterrupt):
                await run.session.run("go")
            assert [message.role for message in run.stored()] == ["user", "assistant", "tool"]
            assert run.results()[0].content == "Error: cancelled by the user"
    finally:
        signal.signal(number, previous)


async def test_the_callers_own_cancellation_is_not_taken_for_a_slip() -> None:
    @tool
    async def waits() -> str:
        started.set()
        await anyio.sleep_forever()
        return ""

    started = anyio.Event()
    async with scripted_session([reply_tool_calls(("waits", {}))], tools=[waits]) as run:
        # As a program on asyncio does it, without anyio's knowing.
        task = asyncio.create_task(run.session.run("go"))
        with anyio.fail_after(10):
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
    assert run.results()[0].is_error
    assert run.events[-1].type == "turn_finished"
    assert run.events[-1].stop_reason == "cancelled"


@pytest.mark.usefixtures("quiet_interrupts")
@pytest.mark.parametrize("slip", SLIPS, ids=repr)
async def test_what_slips_out_of_a_gate_denies(slip: BaseException | None) -> None:
    class Gate:
        async def decide(self, call: Any, session: Any) -> Any:
            if slip is None:
                return await stray()
            raise slip

    @tool
    async def act() -> str:
        return "ran"

    async with scripted_session([reply_tool_calls(("act", {})), "ok"], tools=[act], gate=Gate()) as run:
        with anyio.fail_after(10):
            outcome = await run.session.run("go")
    assert outcome.text == "ok"
    assert len(outcome.denied) == 1


@pytest.mark.usefixtures("quiet_interrupts")
@pytest.mark.parametrize("slip", SLIPS, ids=repr)
async def test_what_slips_out_of_a_provider_is_its_error(slip: BaseException | None) -> None:
    class Slips(ScriptedProvider):
        async def generate(self, request: Any, emit: Any) -> ModelReply:
            if slip is None:
                await stray()
            raise slip or AssertionError

    async with scripted_session([], provider=Slips([])) as run:
        with anyio.fail_after(10):
            outcome = await run.session.run("go")
    assert isinstance(outcome.error, ServerError)
    assert not outcome.error.retryable


async def test_our_own_error_inside_a_group_is_that_error() -> None:
    error = ExceptionGroup("tasks", [ServerError("busy", retryable=False)])
    async with scripted_session([reply_error(error)]) as run:
        outcome = await run.session.run("go")
    assert outcome.error is error.exceptions[0]


async def test_usage_of_failed_calls_is_counted() -> None:
    failed = ServerError("busy", usage=Usage(100, 5))
    script = [reply_error(failed), reply_text("there", usage=Usage(1, 1))]
    async with scripted_session(script) as run:
        outcome = await run.session.run("go")
    assert outcome.usage == Usage(101, 6)


async def test_text_before_a_call_is_no_answer() -> None:
    @tool(read_only=True)
    async def look() -> str:
        return "seen"

    async with scripted_session(
        [reply_tool_calls(("look", {}), text="Let me look."), reply_text()], tools=[look]
    ) as run:
        outcome = await run.session.run("go")
    assert (outcome.stop_reason, outcome.text) == ("end_turn", "")


async def test_steps_have_keys_of_their_own() -> None:
    keys: list[tuple[str, str]] = []

    class Recording(DirectSteps):
        async def run(self, name: str, key: str, call: Any, replay: Any) -> Any:
            keys.append((name, key))
            return await call()

    @tool
    async def asks(turn: Any) -> str:
        return f"{await turn.ask('one?')} {await turn.ask('two?')}"

    script = [reply_tool_calls(("asks", {})), "ok", "again"]
    async with scripted_session(script, tools=[asks], attended=True) as run:
        run.runtime.steps = Recording()
        run.session.stream.attach(
            lambda event: (
                run.session.answer(event.ask_id, "allow", by="test") if event.type == "permission_asked" else None
            )
        )
        with anyio.fail_after(10):
            await run.session.run("go")
            await run.session.run("on")
    assert len(keys) == len(set(keys)) == 6
    assert run.results()[0].content == "True True"
