"""A session's stream: numbers, watchers, subscriptions that fall behind."""

from __future__ import annotations

import anyio
import pytest

from openheim.events import Event, Notice, TextDelta, ThinkingDelta, ToolCallDelta, WatcherDropped
from openheim.runtime.stream import JOINED_CHARACTERS, EventStream

pytestmark = pytest.mark.anyio


def notice(text: str) -> Notice:
    return Notice("info", text)


async def test_events_are_numbered_and_reach_every_watcher() -> None:
    stream = EventStream(100)
    first: list[Event] = []
    second: list[Event] = []
    stream.attach(first.append)
    stream.publish(notice("a"))
    stream.attach(second.append)
    stream.publish(notice("b"))
    stream.detach(second.append)
    assert [event.seq for event in first] == [101, 102]
    assert [event.seq for event in second] == [102]


async def test_a_watcher_that_raises_is_dropped_and_the_others_go_on() -> None:
    stream = EventStream(0)
    seen: list[Event] = []

    def broken(event: Event) -> None:
        raise ValueError("no")

    stream.attach(broken)
    stream.attach(seen.append)
    stream.publish(notice("a"))
    stream.publish(notice("b"))
    assert len(seen) == 2


async def test_observers_see_everything_but_deltas() -> None:
    seen: list[str] = []
    stream = EventStream(0, lambda event: seen.append(event.type))
    stream.publish(TextDelta("x"))
    stream.publish(ThinkingDelta("x"))
    stream.publish(notice("a"))
    assert seen == ["notice"]


async def test_a_subscription_iterates_and_ends_when_closed() -> None:
    stream = EventStream(0)
    subscription = stream.subscribe()
    texts: list[str] = []

    async def read() -> None:
        texts.extend([event.text async for event in subscription if isinstance(event, Notice)])

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            stream.publish(notice("a"))
            await anyio.wait_all_tasks_blocked()
            stream.publish(notice("b"))
            stream.close()
    assert texts == ["a", "b"]


async def test_deltas_that_were_not_taken_are_joined() -> None:
    stream = EventStream(0)
    subscription = stream.subscribe()
    for piece in ("a", "b", "c"):
        stream.publish(TextDelta(piece))
    stream.publish(ThinkingDelta("t"))
    stream.publish(TextDelta("d"))
    held = subscription.pending()
    assert [(event.type, getattr(event, "text", ""), event.seq) for event in held] == [
        ("text_delta", "abc", 3),
        ("thinking_delta", "t", 4),
        ("text_delta", "d", 5),
    ]


async def test_joined_deltas_have_a_bound_and_lose_nothing() -> None:
    stream = EventStream(0)
    subscription = stream.subscribe()
    for number in range(5000):
        stream.publish(TextDelta(f"{number:05}"))
    held = [event for event in subscription.pending() if isinstance(event, TextDelta)]
    assert max(len(event.text) for event in held) < JOINED_CHARACTERS + 5
    assert "".join(event.text for event in held) == "".join(f"{number:05}" for number in range(5000))


def shown(event: Event) -> tuple[object, ...]:
    assert isinstance(event, ToolCallDelta)
    return event.index, event.name, event.arguments, event.seq


async def test_pieces_of_calls_are_joined_by_call() -> None:
    stream = EventStream(0)
    subscription = stream.subscribe()
    for index, name, arguments in (
        (0, "f", ""),
        (0, "f", "a"),
        (1, "g", "x"),
        (0, "", "b"),
        (1, "g", "y"),
        (1, "g", "z"),
    ):
        stream.publish(ToolCallDelta(index, name, arguments))
    assert [shown(event) for event in subscription.pending()] == [(0, "f", "ab", 4), (1, "g", "xyz", 6)]


async def test_pieces_of_calls_are_not_joined_across_anything_else() -> None:
    stream = EventStream(0)
    subscription = stream.subscribe()
    between: list[Event] = [TextDelta("t"), notice("n"), ThinkingDelta("h")]
    for event in between:
        stream.publish(ToolCallDelta(0, "f", "a"))
        stream.publish(event)
    stream.publish(ToolCallDelta(0, "f", "a"))
    held = subscription.pending()
    assert [event.type for event in held if event not in between] == ["tool_call_delta"] * 4
    assert [event.seq for event in held] == [1, 2, 3, 4, 5, 6, 7]


async def test_a_joined_piece_is_the_watchers_own() -> None:
    stream = EventStream(0)
    seen: list[Event] = []
    stream.attach(seen.append)
    stream.subscribe()
    stream.publish(ToolCallDelta(0, "f", "a"))
    stream.publish(ToolCallDelta(0, "f", "b"))
    assert [shown(event) for event in seen] == [(0, "f", "a", 1), (0, "f", "b", 2)]


@pytest.mark.parametrize("calls", [1, 3])
async def test_long_arguments_do_not_drop_a_slow_watcher(calls: int) -> None:
    stream = EventStream(0)
    subscription = stream.subscribe(capacity=64)
    for number in range(20_000):
        stream.publish(ToolCallDelta(number % calls, f"f{number % calls}", f"{number:05}"))
    held = [event for event in subscription.pending() if isinstance(event, ToolCallDelta)]
    assert max(len(event.arguments) for event in held) < JOINED_CHARACTERS + 5
    assert [event.seq for event in held] == sorted(event.seq for event in held)
    for index in range(calls):
        written = "".join(event.arguments for event in held if event.index == index)
        assert written == "".join(f"{number:05}" for number in range(index, 20_000, calls))
        assert {event.name for event in held if event.index == index} == {f"f{index}"}


async def test_more_calls_at_a_time_than_are_joined_still_have_a_bound() -> None:
    stream = EventStream(0)
    subscription = stream.subscribe(capacity=100)
    for number in range(200):
        stream.publish(ToolCallDelta(number, "f", "a"))
    assert [event.type for event in subscription.pending()][-1] == "watcher_dropped"


async def test_a_watcher_that_falls_behind_is_dropped_with_a_marker() -> None:
    stream = EventStream(0)
    subscription = stream.subscribe(capacity=3)
    other: list[Event] = []
    stream.attach(other.append)
    for number in range(5):
        stream.publish(notice(str(number)))
    with anyio.fail_after(10):
        events = [event async for event in subscription]
    assert events == [WatcherDropped(4, 4)]
    assert len(other) == 5
