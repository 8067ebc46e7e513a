"""Old turns replaced by a summary: when the window is full, and on request."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from openheim import tool
from openheim.agent.steps import DirectSteps, T
from openheim.errors import ContextOverflowError, InvalidRequestError, ProviderError, ServerError
from openheim.messages import ImageBlock, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock, Usage
from openheim.providers import ModelRequest
from openheim.testing import Pause, reply_error, reply_text, reply_tool_calls
from openheim.tools import Replay
from tests.agent.test_context import turns
from tests.agent.turns import Conversation, MemoryHistory, is_acceptable, size_of, texts

pytestmark = pytest.mark.anyio

#: 3,600 bytes at 4 bytes a token and 90 % of the window.
SUMMARISE = {"window": 1000, "reserve_tokens": 0, "strategy": "summarise"}
TOO_LONG = reply_error(ContextOverflowError("prompt is too long"))


@tool(read_only=True)
async def produce(size: int) -> str:
    """Text of a size."""
    return "r" * size


async def test_the_oldest_turns_are_summarised_when_the_window_is_full() -> None:
    script = [reply_text("They spoke of numbers.", usage=Usage(100, 20)), reply_text("ok", usage=Usage(900, 3))]
    context = SUMMARISE | {"window": 4000}
    run = Conversation(script, history=turns(4000, 4000, 4000), tools=[produce], context=context)
    outcome = await run.prompt("x" * 4000)
    asked, sent = run.requests
    stored = run.history.messages

    # The summary is asked for without tools, of a conversation that is plain text.
    assert asked.tools == ()
    (material,) = asked.messages
    assert material.role == "user"
    assert all(f"{who} {number}" in material.text for who in ("question", "answer") for number in range(3))
    assert asked.max_tokens == 4096

    # The first request stays, with the summary behind it; the latest turn stays whole.
    assert [message.role for message in sent.messages] == ["user", "user"]
    assert sent.messages[0].content == (
        *stored[0].content,
        TextBlock("[Summary of the conversation up to here]\nThey spoke of numbers.\n[End of the summary]"),
    )
    assert sent.messages[1] is stored[6]
    assert sent.tools

    (record,) = run.history.records
    assert record == {
        "record": "compaction",
        "at": record["at"],
        "upto": stored[5].id,
        "summary": "They spoke of numbers.",
        "provider": "scripted",
        "model": "scripted",
        "usage": Usage(100, 20).to_dict(),
    }
    assert outcome.usage == Usage(1000, 23)
    assert outcome.iterations == 1
    assert [event.text for event in run.of_type("notice")] == [
        "5 earlier messages were summarised to fit the context window"
    ]
    assert [event.usage for event in run.of_type("usage")] == [Usage(900, 3)]
    assert not run.of_type("context_trimmed")
    assert not [event for event in run.events if event.type == "text_delta" and "numbers" in event.text]


async def test_as_few_turns_are_summarised_as_make_room() -> None:
    history = MemoryHistory()
    history.store("user", (TextBlock("first"),))
    history.store("assistant", (TextBlock("a" * 2900),))
    for text in ("second", "third"):
        history.store("user", (TextBlock(text * 20),))
        history.store("assistant", (TextBlock(text * 20),))
    run = Conversation(["sum", "ok"], history=history, context=SUMMARISE)
    await run.prompt("x" * 600)
    assert run.history.records[0]["upto"] == "m1"
    assert [message.id for message in run.requests[1].messages[1:]] == [f"m{number}" for number in range(2, 7)]


async def test_summaries_build_on_each_other() -> None:
    script = ["first summary", "ok", "second summary", "ok"]
    run = Conversation(script, history=turns(4000, 4000, 4000), context=SUMMARISE | {"window": 4000})
    await run.prompt("x" * 4000)
    await run.prompt("y" * 9000)
    again, sent = run.requests[2:]
    # The second is made of the first, and of what came since; not of what the first stands for.
    (material,) = again.messages
    assert "first summary" in material.text
    assert "question 0" in material.text
    assert "x" * 4000 in material.text
    assert "question 1" not in material.text
    assert texts(sent)[0].startswith("question 0")
    assert "second summary" in sent.messages[0].text
    assert "first summary" not in sent.messages[0].text
    assert [message.id for message in sent.messages[1:]] == ["m8"]


async def test_a_resumed_session_goes_on_with_its_summary() -> None:
    run = Conversation(["the summary", "ok"], history=turns(1000, 1000, 1000), context=SUMMARISE)
    await run.prompt("x" * 984)
    resumed = Conversation(["ok"], history=run.history, state=run.fitter.to_dict(), context=SUMMARISE)
    await resumed.prompt("y")
    before, after = run.requests[1].messages, resumed.requests[0].messages
    assert [(message.id, message.content) for message in after[: len(before)]] == [
        (message.id, message.content) for message in before
    ]


@pytest.mark.parametrize(
    "records",
    [
        [{"record": "compaction", "at": "", "upto": "gone", "summary": "lost"}],
        [{"record": "compaction", "upto": "m0"}],
        [{"record": "compaction", "upto": "m0", "summary": " "}],
        [{"record": "compaction", "upto": 3, "summary": {}}],
        [{"record": "turn_end", "upto": "m1", "summary": "no"}],
        [{}],
    ],
)
async def test_records_that_do_not_fit_are_left_alone(records: list[dict[str, Any]]) -> None:
    history = turns(200)
    history.records = records
    run = Conversation(["ok"], history=history)
    await run.prompt("x")
    assert list(run.requests[0].messages) == history.messages[:3]


async def test_the_latest_record_that_fits_counts() -> None:
    history = turns(200, 200)
    history.records = [
        {"record": "compaction", "upto": upto, "summary": f"upto {upto}"} for upto in ("m1", "m3", "later")
    ]
    run = Conversation(["ok"], history=history)
    await run.prompt("x")
    assert "upto m3" in run.requests[0].messages[0].text
    assert [message.id for message in run.requests[0].messages[1:]] == ["m4"]


@pytest.mark.parametrize(
    "failures",
    [
        [reply_error(InvalidRequestError("no"))],
        [reply_error(ServerError("busy"))] * 4,
        [TOO_LONG],
        [reply_error(ZeroDivisionError("a fault"))],
        [reply_text("  ")],
        [reply_text(thinking="only thought")],
        [reply_text("I will not", finish="refusal")],
    ],
)
async def test_without_a_summary_the_oldest_turns_behind_the_first_request_are_left_out(failures: list[Any]) -> None:
    run = Conversation([*failures, "ok"], history=turns(1000, 1000, 1000), context=SUMMARISE)
    outcome = await run.prompt("x" * 984)
    assert outcome.text == "ok"
    assert len(run.requests) == len(failures) + 1
    first, noted, *_rest = run.requests[-1].messages
    assert first is run.history.messages[0]
    assert noted.text.startswith("[3 earlier messages omitted to fit the context window]question 2")
    assert not run.history.records
    (notice,) = run.of_type("notice")
    assert notice.severity == "warning"
    assert "could not be summarised" in notice.text
    assert [event.dropped for event in run.of_type("context_trimmed")] == [3]
    assert len(run.of_type("retry")) == (3 if len(failures) == 4 else 0)


async def test_a_first_request_that_was_kept_stays_and_a_later_summary_stands_behind_it() -> None:
    failing = reply_text("")
    script = [failing, "ok", "ok", "a summary at last", "ok"]
    run = Conversation(script, history=turns(1000, 1000, 1000), context=SUMMARISE)
    await run.prompt("x" * 984)
    resumed = Conversation(
        provider=run.provider,
        history=run.history,
        context=SUMMARISE,
        state=json.loads(json.dumps(run.fitter.to_dict())),
    )
    await resumed.prompt("y")
    before, after = run.requests[1].messages, run.requests[2].messages
    assert [(message.id, message.content) for message in after[: len(before)]] == [
        (message.id, message.content) for message in before
    ]
    await resumed.prompt("z" * 2000)
    material, sent = run.requests[3].messages[0], run.requests[4].messages
    # What had been left out is in it as well.
    assert "answer 0" in material.text
    assert material.text.count("question 0") == 1
    assert sent[0].text.startswith("question 0") and "a summary at last" in sent[0].text


async def test_a_first_request_kept_in_vain_goes_too() -> None:
    history = MemoryHistory()
    history.store("user", (TextBlock("f" * 3000),))
    history.store("assistant", (TextBlock("a" * 1000),))
    run = Conversation([reply_text(""), "ok"], history=history, context=SUMMARISE)
    await run.prompt("x" * 1000)
    assert texts(run.requests[1]) == ["[2 earlier messages omitted to fit the context window]" + "x" * 1000]


async def test_what_a_summary_cost_counts_even_if_it_is_none() -> None:
    script = [reply_text("", usage=Usage(100, 1)), reply_text("ok", usage=Usage(10, 1))]
    run = Conversation(script, history=turns(1000, 1000, 1000), context=SUMMARISE)
    assert (await run.prompt("x" * 984)).usage == Usage(110, 2)


async def test_a_summary_that_fails_is_not_tried_in_every_round() -> None:
    calls = [reply_tool_calls(("produce", {"size": 300})) for _ in range(3)]
    script = [reply_error(InvalidRequestError("no")), *calls, "ok", reply_error(InvalidRequestError("no")), "ok"]
    run = Conversation(script, history=turns(1000), tools=[produce], context=SUMMARISE)
    # It does not fit by itself.
    await run.prompt("x" * 4000)
    assert len(run.of_type("notice")) == 1
    await run.prompt("x" * 4000)
    assert len(run.of_type("notice")) == 2


async def test_a_service_that_refuses_is_sent_a_summary() -> None:
    script = [TOO_LONG, "the summary", "ok"]
    run = Conversation(script, history=turns(1000, 1000, 1000), context={"strategy": "summarise"})
    assert (await run.prompt("x")).text == "ok"
    assert "the summary" in run.requests[2].messages[0].text
    assert size_of(run.requests[2].messages) <= 0.75 * size_of(run.requests[0].messages)


async def test_turns_are_left_out_behind_a_summary_that_is_not_enough() -> None:
    history = turns(200, 1500, 1500)
    history.records = [{"record": "compaction", "upto": "m1", "summary": "the summary"}]
    run = Conversation(["ok"], history=history, context=SUMMARISE | {"strategy": "trim"})
    await run.prompt("x" * 600)
    head, noted, *rest = texts(run.requests[0])
    assert head.startswith("question 0") and "the summary" in head
    assert noted.startswith("[2 earlier messages omitted to fit the context window]question 2")
    assert len(rest) == 2


async def test_a_first_request_that_leaves_no_room_goes_last() -> None:
    history = MemoryHistory()
    history.store("user", (TextBlock("f" * 3000),))
    history.store("assistant", (TextBlock("a" * 1000),))
    run = Conversation(["sum", "ok", "ok"], history=history, context=SUMMARISE)
    await run.prompt("x" * 1000)
    assert texts(run.requests[1]) == ["[2 earlier messages omitted to fit the context window]" + "x" * 1000]
    state = run.fitter.to_dict()
    resumed = Conversation(["ok"], history=history, context=SUMMARISE, state=state)
    await resumed.prompt("y")
    assert list(resumed.requests[0].messages[0].content) == list(run.requests[1].messages[0].content)


async def test_a_summary_left_out_in_vain_is_taken_back() -> None:
    history = turns(4000, 500, 500)
    history.records = [{"record": "compaction", "upto": "m1", "summary": "the summary"}]
    run = Conversation([TOO_LONG, TOO_LONG, TOO_LONG, "ok"], history=history)
    assert isinstance((await run.prompt("x")).error, ContextOverflowError)
    assert texts(run.requests[2]) == ["[6 earlier messages omitted to fit the context window]x"]
    await run.prompt("y")
    head, *rest = run.requests[3].messages
    assert head.id == run.requests[0].messages[0].id
    assert [message.id for message in rest] == ["m2", "m3", "m4", "m5", "m6", "m7"]


async def test_a_part_that_is_too_long_is_summarised_by_its_ends() -> None:
    run = Conversation(["sum"], history=turns(*[2000] * 20), context=SUMMARISE | {"window": 8000})
    await run.compact()
    (material,) = run.requests[0].messages
    assert size_of([material]) + len(run.requests[0].system) <= 28_800
    assert "question 0" in material.text
    assert "bytes left out here; the middle of the conversation" in material.text


async def test_a_summary_has_a_bound() -> None:
    run = Conversation(["s" * 100_000, "ok"], history=turns(5000, 5000, 5000), context=SUMMARISE | {"window": 4000})
    await run.prompt("x" * 2000)
    assert len(run.history.records[0]["summary"]) <= 14_400 // 8


async def test_calls_results_and_images_are_told_of_as_text() -> None:
    history = MemoryHistory()
    history.store("user", (TextBlock("look"), ImageBlock("aGk=", "image/png")))
    call = ToolUseBlock("c1", "read_file", '{"path": "a"}')
    history.store("assistant", (ThinkingBlock("hidden", "sig"), TextBlock("I read."), call))
    history.store("tool", (ToolResultBlock("c1", "read_file", "no such file", is_error=True),))
    history.store("assistant", (TextBlock("It is not there."),))
    history.store("user", (TextBlock("thanks"),))
    run = Conversation(["sum"], history=history)
    await run.compact()
    (material,) = run.requests[0].messages
    assert material.text.split("\n\n[End of the conversation]")[0] == (
        "[user]\nlook\n\n[user]\n(an image)\n\n[assistant]\nI read.\n\n"
        '[call of read_file] {"path": "a"}\n\n[result of read_file, which failed]\nno such file\n\n'
        "[assistant]\nIt is not there."
    )


async def test_compacting_on_request() -> None:
    run = Conversation([reply_text("all of it", usage=Usage(7, 7)), "ok"], history=turns(200, 200, 200))
    before = list(run.history.messages)
    result = await run.compact()
    assert result is not None
    assert (result.compaction.summary, result.messages, result.usage) == ("all of it", 3, Usage(7, 7))
    assert run.history.messages == before
    await run.prompt("x")
    sent = run.requests[1].messages
    assert is_acceptable(sent)
    assert texts(sent)[0].startswith("question 0")
    assert [message.id for message in sent[1:]] == ["m4", "m5", "m6"]


@pytest.mark.parametrize("history", [turns(), turns(200)])
async def test_there_may_be_nothing_to_compact(history: MemoryHistory) -> None:
    run = Conversation([], history=history)
    assert await run.compact() is None
    assert not history.records


async def test_compacting_twice_has_nothing_to_do() -> None:
    run = Conversation(["all of it"], history=turns(200, 200))
    assert await run.compact() is not None
    assert await run.compact() is None


async def test_compacting_that_fails_changes_nothing() -> None:
    run = Conversation([reply_error(InvalidRequestError("no")), "ok"], history=turns(200, 200))
    with pytest.raises(ProviderError):
        await run.compact()
    await run.prompt("x")
    assert list(run.requests[1].messages) == run.history.messages[:5]


async def test_compacting_mends_what_a_crash_left() -> None:
    history = turns(200)
    history.store("user", (TextBlock("go"),))
    history.store("assistant", (ToolUseBlock("c1", "produce", "{}"),))
    history.store("user", (TextBlock("again"),))
    run = Conversation(["sum", "ok"], history=history)
    await run.compact()
    assert history.records[0]["upto"] == "m3"
    await run.prompt("x")
    resumed = Conversation(["ok"], history=history)
    await resumed.prompt("y")
    assert [message.id for message in resumed.requests[0].messages[1:]] == ["m4", "m5", "m6", "m7"]


async def test_cancel_while_a_summary_is_written() -> None:
    pause = Pause()
    script = [reply_text(pause, "never"), "ok"]
    run = Conversation(script, history=turns(1000, 1000, 1000), context=SUMMARISE)
    async with anyio.create_task_group() as group:

        async def prompt() -> None:
            assert (await run.prompt("x" * 984)).stop_reason == "cancelled"

        group.start_soon(prompt)
        with anyio.fail_after(10):
            await pause.reached()
            run.loop.cancel()
    assert not run.history.records
    assert run.provider.cancelled == 1


async def test_a_summary_is_a_step_of_its_own() -> None:
    class Recording(DirectSteps):
        def __init__(self) -> None:
            self.steps: list[tuple[str, str, str]] = []

        async def run(self, name: str, key: str, call: Callable[[], Awaitable[T]], replay: Replay) -> T:
            self.steps.append((name, key, replay))
            return await call()

    steps = Recording()
    script = ["sum", TOO_LONG, "sum", "ok"]
    run = Conversation(script, history=turns(*[400] * 8), context=SUMMARISE, steps=steps)
    await run.prompt("x" * 984)
    names = [(name, key) for name, key, _ in steps.steps]
    assert names == [("compaction", "m11"), ("model", "1.1"), ("compaction", "m15"), ("model", "1.1.1")]
    assert {replay for *_, replay in steps.steps} == {"safe"}


async def test_a_summary_is_asked_of_the_session_s_own_model() -> None:
    def summary(request: ModelRequest) -> str:
        assert (request.model, request.max_tokens, request.thinking) == ("mine", 100, "off")
        return "sum"

    script = [summary, "ok"]
    run = Conversation(script, history=turns(1000, 1000, 1000), context=SUMMARISE, model="mine", max_tokens=100)
    assert (await run.prompt("x" * 984)).text == "ok"
    assert run.history.records[0]["model"] == "mine"


async def test_a_summary_is_not_asked_for_at_greater_length_than_the_model_can_write() -> None:
    run = Conversation(["sum"], history=turns(10, 10, 10), context={"max_output_tokens": 900})
    assert await run.compact()
    (asked,) = run.requests
    assert (asked.max_tokens, asked.max_output_tokens) == (900, 900)
