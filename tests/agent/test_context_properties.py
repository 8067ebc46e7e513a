"""Whatever a conversation is like and however small the window: what requests hold."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openheim import tool
from openheim.errors import ContextOverflowError
from openheim.messages import Message, TextBlock, ToolResultBlock, Usage
from openheim.providers import ModelReply, ModelRequest
from openheim.testing import reply_tool_calls
from tests.agent.turns import Conversation, MemoryHistory, is_acceptable, size_of, texts

pytestmark = pytest.mark.slow

EXAMPLES = 5000 if os.environ.get("LONG_COUNTS", "") not in ("", "0") else 150

NOTE = re.compile(r"\[(\d+) earlier messages? omitted to fit the context window\]")
SUMMARY = "[Summary of the conversation up to here]\n"


@tool(read_only=True)
async def produce(size: int) -> str:
    """Text of a size."""
    return "r" * size


@dataclass
class Turn:
    """Sizes of the user's text, of each round's results, and of the answer."""

    question: int
    rounds: list[list[int]]
    answer: int


SIZES = st.one_of(st.integers(0, 300), st.integers(300, 6000))
TURNS = st.builds(Turn, st.integers(1, 3000), st.lists(st.lists(SIZES, min_size=1, max_size=3), max_size=4), SIZES)
CONVERSATIONS = st.lists(TURNS, min_size=1, max_size=6)


@dataclass
class Checking:
    """A provider that plays turns, refuses what is longer than ``limit``, and checks what it is sent."""

    turns: list[Turn]
    history: MemoryHistory
    #: Bytes that messages are kept within before they are sent, if that is known by now.
    planned: Callable[[], int | None] = lambda: None
    #: What is left of a result that had to be shortened, at most.
    short: int = 3072
    #: Bytes beyond which the service refuses.
    limit: int | None = None
    #: Whether it writes the summaries that it is asked for.
    summarises: bool = True
    wire: str = "checking"
    default_model: str = "checking"
    sent: list[list[Message]] = field(default_factory=list)
    refused: bool = False
    problem: AssertionError | None = None
    #: How many messages were stored when the last request was made.
    _stored: int = 0
    _script: list[Any] = field(default_factory=list)

    def play(self, turn: Turn) -> None:
        self._script = [reply_tool_calls(*[("produce", {"size": size}) for size in sizes]) for sizes in turn.rounds]
        self._script.append(turn.answer)

    async def generate(self, request: ModelRequest, emit: Any) -> ModelReply:
        if not request.tools:
            return ModelReply((TextBlock("s" * 300 if self.summarises else ""),), "end_turn", Usage(1, 1))
        try:
            self.check(request.messages)
        except AssertionError as err:
            self.problem = err  # The loop would make an error of the provider of it.
            raise
        self.sent.append(list(request.messages))
        self._stored = len(self.history.messages)
        self.refused = self.limit is not None and size_of(request.messages) > self.limit
        if self.refused:
            raise ContextOverflowError("prompt is too long")
        step = self._script.pop(0)
        if isinstance(step, int):
            return ModelReply((TextBlock("a" * max(1, step)),), "end_turn")
        return ModelReply(step.steps, "tool_use")

    def check(self, messages: Sequence[Message]) -> None:
        stored, planned = self.history.messages, self.planned()
        assert is_acceptable(messages)

        # The latest turn is whole, up to what its long results were shortened to.
        latest = max(number for number, message in enumerate(stored) if message.role == "user")
        own = messages[len(messages) - (len(stored) - latest) :]
        assert [message.id.split(":")[0] for message in own] == [message.id for message in stored[latest:]]

        # The note counts what is neither there nor summarised.
        head = [message for message in messages if SUMMARY in message.text]
        omitted = [int(number) for text in texts(messages) for number in NOTE.findall(text)]
        covered = 0
        if head:
            assert head == [messages[0]]
            record = self.history.records[-1]
            covered = next(n for n, message in enumerate(stored, 1) if message.id == record["upto"])
        assert sum(omitted) == len(stored) - (len(messages) - len(head)) - covered

        # Nothing changes as long as there is no need: the request begins as the last one did.
        if self.sent and not self.refused:
            unchanged = self.sent[-1] + stored[self._stored :]
            if planned is None or size_of(unchanged) <= planned:
                assert list(map(id, messages)) == list(map(id, unchanged))

        # What is too long has nothing left that could be shortened.
        if planned is not None and size_of(messages) > planned:
            assert len(own) == len(messages)
            results = [block for message in own for block in message.content if isinstance(block, ToolResultBlock)]
            assert all(len(result.content) <= self.short for result in results)


async def play(conversation: Sequence[Turn], provider: Checking, **options: Any) -> Conversation:
    run = Conversation(provider=provider, tools=[produce], history=provider.history, **options)
    if provider.limit is not None:
        # What refusals taught.
        provider.planned = lambda: None if run.fitter.limit is None else run.fitter.limit - DEFINITION
    for number, turn in enumerate(conversation):
        before = list(run.history.messages)
        provider.play(turn)
        outcome = await run.prompt("q" * turn.question)
        if provider.problem is not None:
            raise provider.problem
        assert outcome.error is None or isinstance(outcome.error, ContextOverflowError)
        assert list(map(id, run.history.messages[: len(before)])) == list(map(id, before))
        assert run.history.messages[len(before)].role == "user"
        if number == len(conversation) // 2:
            # Resumed in the middle: the same request is made from what was kept.
            state = json.loads(json.dumps(run.fitter.to_dict()))
            options["state"] = state
            run.fitter.update(provider.history.messages)
            last = [(message.id, message.content) for message in run.fitter.request]
            events = run.events
            run = Conversation(provider=provider, tools=[produce], history=provider.history, **options)
            run.events = events
            run.fitter.bind(run.settings())
            run.fitter.update(provider.history.messages)
            assert [(message.id, message.content) for message in run.fitter.request] == last
            provider.sent.clear()
    announced = [event.dropped for event in run.of_type("context_trimmed")]
    assert all(number > 0 for number in announced)
    return run


#: Size of the tool's definition.
DEFINITION = len(
    json.dumps(
        {"name": produce.name, "description": produce.description, "parameters": produce.parameters},
        separators=(",", ":"),
    )
)


#: Strategies, and whether there are summaries.
STRATEGIES = st.sampled_from([("trim", True), ("summarise", True), ("summarise", False)])


@settings(max_examples=EXAMPLES, deadline=None)
@given(CONVERSATIONS, st.integers(600, 5000), STRATEGIES)
def test_requests_within_a_known_window(conversation: list[Turn], window: int, strategy: tuple[str, bool]) -> None:
    context = {"window": window, "reserve_tokens": 0, "strategy": strategy[0]}
    # Nine tenths of the window at 4 bytes a token, without the tool's definition.
    room = int(window * 0.9 * 4) - DEFINITION
    provider = Checking(conversation, MemoryHistory(), planned=lambda: room, short=600, summarises=strategy[1])
    anyio.run(lambda: play(conversation, provider, context=context))


@settings(max_examples=EXAMPLES, deadline=None)
@given(CONVERSATIONS, st.integers(500, 20_000), STRATEGIES)
def test_requests_to_a_service_that_refuses(conversation: list[Turn], limit: int, strategy: tuple[str, bool]) -> None:
    provider = Checking(conversation, MemoryHistory(), limit=limit, summarises=strategy[1])
    anyio.run(lambda: play(conversation, provider, context={"strategy": strategy[0]}))
