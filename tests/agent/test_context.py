"""Requests that are kept within the model's window."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from openheim import tool
from openheim.agent.context import ContextFitter
from openheim.agent.window import ContextSettings
from openheim.errors import ContextOverflowError, ServerError
from openheim.messages import ImageBlock, Message, TextBlock, ThinkingBlock, ToolResultBlock, Usage
from openheim.providers import ModelReply, ModelRequest
from openheim.testing import reply_error, reply_text, reply_tool_calls
from tests.agent.sessions import scripted_session
from tests.agent.turns import Conversation, MemoryHistory, is_acceptable, size_of, texts

pytestmark = pytest.mark.anyio

#: 3,600 bytes at 4 bytes a token and 90 % of the window.
WINDOW = {"window": 1000, "reserve_tokens": 0}
TOO_LONG = reply_error(ContextOverflowError("prompt is too long", status=400))


@tool(read_only=True)
async def produce(size: int) -> str:
    """Text of a size."""
    return ("0123456789" * (size // 10 + 1))[:size]


def turns(*sizes: int) -> MemoryHistory:
    """A history of turns, each of a question and an answer that take this many bytes together."""
    history = MemoryHistory()
    for number, size in enumerate(sizes):
        history.store("user", (TextBlock(f"question {number}".ljust(size // 2 - 16, ".")),))
        history.store("assistant", (TextBlock(f"answer {number}".ljust(size - size // 2 - 16, ".")),))
    return history


# --- a known window ---


@pytest.mark.parametrize(("excess", "sent", "dropped"), [(0, 5, []), (1, 3, [2])])
async def test_the_oldest_turns_are_left_out_beyond_nine_tenths_of_the_window(
    excess: int, sent: int, dropped: list[int]
) -> None:
    run = Conversation(["ok"], history=turns(1600, 1000), context=WINDOW)
    await run.prompt("x" * (1000 - 16 + excess))
    (request,) = run.requests
    assert len(request.messages) == sent
    assert [event.dropped for event in run.of_type("context_trimmed")] == dropped
    assert [event.type for event in run.events][: 1 + len(dropped)] == ["iteration_start"] + ["context_trimmed"] * len(
        dropped
    )


async def test_what_was_reported_changes_what_a_token_is_taken_for() -> None:
    run = Conversation([reply_text("ok", usage=Usage(300, 5, 300, 600)), "ok"], context=WINDOW)
    await run.prompt("x" * (2400 - 16))
    assert run.fitter.bytes_per_token == 2400 / 1200
    # 1,800 bytes fit now, so the first turn has to go.
    await run.prompt("y")
    assert texts(run.requests[1]) == ["[2 earlier messages omitted to fit the context window]y"]


@pytest.mark.parametrize(("tokens", "ratio"), [(1, 8.0), (100_000, 1.0), (0, 4.0)])
async def test_what_is_learned_has_bounds(tokens: int, ratio: float) -> None:
    run = Conversation([reply_text("ok", usage=Usage(tokens))])
    await run.prompt("x" * 1000)
    assert run.fitter.bytes_per_token == ratio


@pytest.mark.parametrize(
    ("settings", "max_tokens", "tokens"),
    [
        ({"window": 200_000}, None, 180_000 - 8192),
        ({"window": 8000}, None, 7200 - 800),
        ({"window": 200_000}, 16_000, 180_000 - 16_000),
        ({"window": 8000}, 16_000, 7200 - 4000),
        ({"window": 8000, "reserve_tokens": 100}, 16_000, 7200 - 100),
        ({}, 16_000, None),
    ],
)
async def test_room_is_kept_for_the_reply(settings: dict[str, Any], max_tokens: int | None, tokens: int | None) -> None:
    assert ContextSettings(**settings).request_tokens(max_tokens) == tokens


def definition_size(spec: Any) -> int:
    fields = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return len(json.dumps(fields, separators=(",", ":")))


async def test_system_text_and_tools_are_counted() -> None:
    async def messages_sent(system: str, size: int) -> int:
        run = Conversation(["ok"], history=turns(200), context=WINDOW, tools=[produce], system=system)
        await run.prompt("x" * size)
        return len(run.requests[0].messages)

    (spec,) = Conversation(tools=[produce]).toolbox.specs
    room = 3600 - 200 - 16 - definition_size(spec)
    assert [await messages_sent("", size) for size in (room, room + 1)] == [3, 1]
    assert [await messages_sent("sö" * 100, size) for size in (room - 300, room - 299)] == [3, 1]


async def test_an_image_counts_the_same_whatever_its_length() -> None:
    async def messages_sent(size: int, *images: ImageBlock) -> int:
        context = {"window": 10_000, "reserve_tokens": 0}
        run = Conversation(["ok"], history=turns(200), context=context)
        await run.prompt([*images, TextBlock("x" * size)])
        return len(run.requests[0].messages)

    small, large = ImageBlock("aGk=", "image/png"), ImageBlock("A" * 1_000_000, "image/png")
    room = 36_000 - 200 - 16 - 2 * 6000
    assert [await messages_sent(size, small, large) for size in (room, room + 1)] == [3, 1]


async def test_thinking_and_signatures_are_counted() -> None:
    history = turns(200)
    history.store("assistant", (ThinkingBlock("t" * 500, "s" * 500), TextBlock("more")))
    run = Conversation(["ok", "ok"], history=history, context=WINDOW)
    await run.prompt("x" * (3600 - 200 - 1020 - 2 * 16))
    assert len(run.requests[0].messages) == 4
    await run.prompt("y")
    assert len(run.requests[1].messages) == 3


# --- what is left out ---


async def test_a_cut_is_kept_until_room_is_needed_again() -> None:
    run = Conversation(["ok"] * 6, history=turns(1000, 1000, 1000), context=WINDOW)
    for number in range(6):
        await run.prompt(f"{number}".ljust(400, "."))
    # 3,416 bytes fit; 3,850 do not, and are brought down to 2,700 at most; then 3,640 do not.
    assert [len(request.messages) for request in run.requests] == [7, 5, 7, 9, 11, 11]
    assert [event.dropped for event in run.of_type("context_trimmed")] == [4, 6]
    for earlier, later in zip(run.requests[1:4], run.requests[2:5], strict=True):
        # The same objects, so that the bytes made of them serve again.
        assert list(map(id, later.messages[: len(earlier.messages)])) == list(map(id, earlier.messages))


async def test_the_note_is_a_block_of_its_own_and_the_message_gets_an_id_of_its_own() -> None:
    run = Conversation(["ok"], history=turns(2000, 1000), context=WINDOW)
    await run.prompt([TextBlock("x" * 800), ImageBlock("aGk=", "image/png")])
    (first,) = run.requests[0].messages
    stored = run.history.messages[-2]
    assert first.content == (TextBlock("[4 earlier messages omitted to fit the context window]"), *stored.content)
    assert first.id != stored.id


async def test_a_single_turn_is_sent_whole_even_if_it_does_not_fit() -> None:
    run = Conversation(["ok"], context=WINDOW)
    await run.prompt("x" * 10_000)
    assert texts(run.requests[0]) == ["x" * 10_000]
    assert not run.of_type("context_trimmed")


async def test_old_results_are_shortened_before_turns_are_left_out() -> None:
    script = [reply_tool_calls(("produce", {"size": 6000})), "done", "two", "three"]
    run = Conversation(script, tools=[produce], context={"window": 3000, "reserve_tokens": 0})
    await run.prompt("one " * 100)
    await run.prompt("two " * 500)
    await run.prompt("three " * 600)
    before, after = run.requests[2].messages, run.requests[3].messages
    assert len(after) == len(before) + 2
    assert after[0] is before[0]
    (whole,), (short,) = before[2].content, after[2].content
    assert isinstance(whole, ToolResultBlock) and isinstance(short, ToolResultBlock)
    assert len(whole.content) == 6000
    assert len(short.content) <= 400
    assert short.content.startswith("0123456789" * 10)
    assert short.content.endswith("0123456789" * 5)
    assert "of 6000 bytes left out here; this is an old result" in short.content
    assert after[2].id != before[2].id
    assert not run.of_type("context_trimmed")
    assert run.history.messages[2].content == (whole,)


async def test_results_of_the_turn_before_stay_whole_where_older_ones_make_room() -> None:
    calls = [reply_tool_calls(("produce", {"size": size})) for size in (3000, 6000)]
    script = [calls[0], "done", calls[1], "done", "ok"]
    run = Conversation(script, tools=[produce], context={"window": 3000, "reserve_tokens": 0})
    for text in ("one", "two", "three " * 300):
        await run.prompt(text)
    # Shortening both would bring the request down to the low mark; it fits without.
    assert [len(text) > 400 for text in texts(run.requests[-1]) if "0123" in text] == [False, True]
    assert not run.of_type("context_trimmed")


async def test_images_of_old_results_are_left_out_with_a_note() -> None:
    images = (ImageBlock("aGk=", "image/png"),) * 2
    history = MemoryHistory()
    history.store("user", (TextBlock("look"),))
    call = await _call(history, images)
    history.store("assistant", (TextBlock("seen"),))
    history.store("user", (TextBlock("and"),))
    history.store("assistant", (TextBlock("yes"),))
    run = Conversation(["ok"], history=history, context={"window": 4000, "reserve_tokens": 0})
    await run.prompt("x" * 3000)
    (result,) = run.requests[0].messages[2].content
    assert result == ToolResultBlock(
        call, "look", "a cat\n[2 images of this old result left out to fit the context window]"
    )


async def _call(history: MemoryHistory, images: tuple[ImageBlock, ...]) -> str:
    from openheim.messages import ToolUseBlock

    history.store("assistant", (ToolUseBlock("c1", "look", "{}"),))
    history.store("tool", (ToolResultBlock("c1", "look", "a cat", images=images),))
    return "c1"


async def test_a_long_turn_goes_on_with_its_older_results_shortened() -> None:
    script = [*(reply_tool_calls(("produce", {"size": 5000})) for _ in range(30)), "done"]
    run = Conversation(script, tools=[produce], context={"window": 8000, "reserve_tokens": 0})
    assert (await run.prompt("go")).text == "done"
    for request in run.requests:
        assert is_acceptable(request.messages)
        assert size_of(request.messages) <= 28_800 - definition_size(*request.tools)
        # The latest result is as the tool gave it.
        assert request.messages[-1] is run.history.messages[len(request.messages) - 1]
    assert [len(request.messages) for request in run.requests] == list(range(1, 63, 2))


async def test_results_of_one_reply_that_fill_the_window_are_shortened_too() -> None:
    script = [reply_tool_calls(*[("produce", {"size": 8000})] * 6), "done"]
    run = Conversation(script, tools=[produce], context={"window": 8000, "reserve_tokens": 0})
    await run.prompt("go")
    sizes = [len(text) for text in texts(run.requests[1])[2:]]
    # Only as many as needed.
    assert sum(size <= 500 for size in sizes) == 3
    assert sizes[-3:] == [8000, 8000, 8000]


# --- a service that refuses ---


async def test_a_request_that_is_refused_is_sent_again_with_three_quarters() -> None:
    run = Conversation([TOO_LONG, TOO_LONG, "ok"], history=turns(*[1000] * 10))
    outcome = await run.prompt("x" * 984)
    assert outcome.text == "ok"
    sizes = [size_of(request.messages) for request in run.requests]
    assert sizes[0] == 11_000
    assert sizes[1] <= sizes[0] * 0.75 < sizes[1] + 1000
    assert sizes[2] <= sizes[1] * 0.75 < sizes[2] + 1000
    assert [event.dropped for event in run.of_type("context_trimmed")] == [6, 12]
    assert outcome.iterations == 1
    assert run.fitter.limit == int(sizes[1] * 0.75)


async def test_the_limit_that_a_refusal_taught_holds_for_the_session() -> None:
    run = Conversation([TOO_LONG, *["ok"] * 10], history=turns(*[1000] * 10))
    for number in range(10):
        await run.prompt(f"{number}".ljust(984, "."))
    assert all(size_of(request.messages) <= 8250 for request in run.requests[1:])
    assert len(run.requests) == 11


async def test_after_two_refusals_the_turn_fails_and_says_what_to_do() -> None:
    run = Conversation([TOO_LONG, TOO_LONG, TOO_LONG, "ok"], history=turns(*[1000] * 10))
    outcome = await run.prompt("x")
    assert len(run.requests) == 3
    assert isinstance(outcome.error, ContextOverflowError)
    assert outcome.error.status == 400
    assert "prompt is too long" in outcome.error.message
    assert "start a new session or compact" in outcome.error.hint
    # Sending less has not helped, so that was not it: the next turn has everything again.
    await run.prompt("y")
    assert len(run.requests[3].messages) == 22
    assert run.fitter.limit is None


async def test_a_refusal_is_final_when_nothing_can_be_left_out() -> None:
    run = Conversation([TOO_LONG, "ok"])
    outcome = await run.prompt("x" * 10_000)
    assert len(run.requests) == 1
    assert isinstance(outcome.error, ContextOverflowError)
    assert [message.role for message in run.history.messages] == ["user"]
    assert (await run.prompt("shorter")).text == "ok"


async def test_a_refusal_behind_a_part_of_the_reply_is_final() -> None:
    error = reply_error(ContextOverflowError("prompt is too long"), after="So")
    run = Conversation([error], history=turns(1000))
    outcome = await run.prompt("x")
    assert isinstance(outcome.error, ContextOverflowError)
    assert run.history.messages[-1].text == "So"


async def test_refusals_and_retries_go_together() -> None:
    busy = reply_error(ServerError("busy"))
    run = Conversation([busy, TOO_LONG, busy, "ok"], history=turns(1000, 1000))
    assert (await run.prompt("x")).text == "ok"
    assert [len(request.messages) for request in run.requests] == [5, 5, 3, 3]


async def test_each_call_may_be_refused_twice() -> None:
    calls = reply_tool_calls(("produce", {"size": 10}))
    script = [TOO_LONG, TOO_LONG, calls, TOO_LONG, TOO_LONG, "ok"]
    run = Conversation(script, tools=[produce], history=turns(*[1000] * 20))
    assert (await run.prompt("x")).text == "ok"


# --- what is kept ---


async def test_another_model_starts_with_everything() -> None:
    run = Conversation([TOO_LONG, "ok", "ok"], history=turns(1000, 1000))
    await run.prompt("x")
    run.options["model"] = "larger"
    await run.prompt("y")
    assert [len(request.messages) for request in run.requests] == [5, 3, 7]
    assert run.requests[2].messages[0] is run.history.messages[0]


async def test_a_resumed_session_sends_what_it_sent() -> None:
    context = {"window": 3000, "reserve_tokens": 0}
    script = [reply_tool_calls(("produce", {"size": 6000})), "done", *["ok"] * 3]
    run = Conversation(script, tools=[produce], context=context, history=turns(3000, 3000))
    for text in ("one", "two " * 500, "three " * 600, "four"):
        await run.prompt(text)
    last = run.requests[-1].messages
    assert last[0].text.startswith("[4 earlier messages omitted to fit the context window]")
    assert [len(text) for text in texts(last)[2:3]] < [500]

    state = json.loads(json.dumps(run.fitter.to_dict()))
    resumed = Conversation(["ok"], tools=[produce], context=context, history=run.history, state=state)
    await resumed.prompt("five")
    sent = resumed.requests[0].messages
    assert [(message.id, message.content) for message in sent[: len(last)]] == [
        (message.id, message.content) for message in last
    ]
    assert not resumed.of_type("context_trimmed")
    assert resumed.fitter.bytes_per_token == run.fitter.bytes_per_token


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"binding": "x", "bytes_per_token": "4", "ceiling_bytes": -1, "shortened_upto": 3, "first_kept": None},
        {"binding": ["scripted", "scripted", None], "shortened_upto": "gone", "first_kept": "gone"},
        {"first_kept": "m1"},  # Not the user's.
        {"bytes_per_token": 1e9, "later": {"key": 1}},
    ],
)
async def test_a_state_that_does_not_fit_is_left_alone(state: dict[str, Any]) -> None:
    run = Conversation(["ok"], history=turns(1000), state=state)
    assert (await run.prompt("x")).text == "ok"
    assert len(run.requests[0].messages) == 3
    assert run.fitter.bytes_per_token <= 8


async def test_stored_history_is_never_changed() -> None:
    script = ["first answer", "second answer", TOO_LONG, "third answer"]
    async with scripted_session(script) as run:
        await run.session.run("first")
        await run.session.run("second")
        path = run.runtime.store.log_path(run.session.id)
        before = path.read_bytes()
        await run.session.run("third")
        assert path.read_bytes().startswith(before)
        assert [message.text for message in run.stored()] == [
            "first",
            "first answer",
            "second",
            "second answer",
            "third",
            "third answer",
        ]
    assert len(run.provider.requests[3].messages) < len(run.provider.requests[2].messages)
    assert [event.dropped for event in run.of_type("context_trimmed")] == [4]


async def test_context_usage_is_kept_when_a_turn_reports_none() -> None:
    usage = Usage(10, 2, 3, 4)
    async with scripted_session([reply_text("a", usage=usage), "b"]) as run:
        for prompt in ("one", "two"):
            await run.session.run(prompt)
            assert run.session.meta.context_usage == usage
        session_id, store = run.session.id, run.runtime.store
    # The runtime is gone, and no session is needed to read it.
    assert store.load(session_id).meta.context_usage == usage


# --- cost ---


class CountingList(list[Message]):
    """Counts the messages that are read from it."""

    reads = 0

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        self.reads += len(found) if isinstance(key, slice) else 1
        return found

    def __iter__(self) -> Any:
        self.reads += len(self)
        return super().__iter__()


class Looking:
    """A provider that asks for one tool ``rounds`` times and notes what a request had cost until it was made."""

    wire = "looking"
    default_model = "looking"

    def __init__(self, rounds: int, note: Any) -> None:
        self.requests: list[Sequence[Message]] = []
        self._rounds = rounds
        self._note = note

    async def generate(self, request: ModelRequest, emit: Any) -> ModelReply:
        self.requests.append(request.messages)
        self._note()
        if len(self.requests) > self._rounds:
            return ModelReply((TextBlock("done"),), "end_turn")
        return ModelReply(reply_tool_calls(("produce", {"size": 500})).steps, "tool_use")  # type: ignore[arg-type]  # no pauses


@pytest.mark.parametrize("window", [None, 1_000_000, 8000])
async def test_the_cost_of_a_round_does_not_grow(window: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    from openheim.agent import context
    from openheim.agent.sizes import message_size

    measured = 0
    costs: list[tuple[int, int]] = []

    def counting(message: Message) -> int:
        nonlocal measured
        measured += 1
        return message_size(message)

    def note() -> None:
        costs.append((history.messages.reads, measured))

    monkeypatch.setattr(context, "message_size", counting)
    history: Any = MemoryHistory()
    history.messages = CountingList()
    run = Conversation(provider=Looking(200, note), tools=[produce], history=history, context={"window": window})
    await run.prompt("go")
    assert len(run.requests) == 201
    per_round = [
        (reads - before_reads, sizes - before_sizes) for (before_reads, before_sizes), (reads, sizes) in pairwise(costs)
    ]
    if window == 8000:
        # Results are short already, so nothing helps; it costs nothing to find out again.
        assert size_of(run.fitter.request) > 28_800
    # Two new messages, and two looks at the end of the list.
    assert set(per_round) == {(4, 2)}


def test_many_cuts_cost_as_much_as_the_messages() -> None:
    from openheim.agent import context

    fitter = ContextFitter()
    history = MemoryHistory()
    measured = []
    original = context.message_size
    context.message_size = lambda message: measured.append(1) or original(message)  # type: ignore[func-returns-value]  # None goes on
    try:
        run = Conversation(history=history, context=WINDOW)
        run.fitter = fitter
        for _ in range(500):
            history.store("user", (TextBlock("x" * 300),))
            fitter.bind(run.settings())
            fitter.update(history.messages)
            room = fitter.exceeded()
            if room is not None:
                assert fitter.leave_out_turns(room)
            history.store("assistant", (TextBlock("y" * 300),))
    finally:
        context.message_size = original
    assert len(measured) == 999
