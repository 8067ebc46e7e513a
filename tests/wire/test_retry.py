"""Retries: what is tried again, when, and how long a service may ask to wait."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from openheim.errors import AuthError, ProviderError, RateLimitedError, ServerError
from openheim.retry import RetryPolicy, parse_retry_after, retry_after_secs, with_retries

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Model:
    """Fails with these errors one after the other, then answers."""

    def __init__(self, *failures: ProviderError) -> None:
        self.failures = list(failures)
        self.calls = 0
        self.waits: list[float] = []
        self.retries: list[tuple[int, float, ProviderError]] = []
        self.shown = False

    async def call(self) -> str:
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        return "answer"

    async def wait(self, secs: float) -> None:
        self.waits.append(secs)

    async def ask(self, policy: RetryPolicy | None = None, random: Callable[[], float] = lambda: 0.5) -> str:
        return await with_retries(
            self.call,
            shown=lambda: self.shown,
            on_retry=lambda attempt, delay, err: self.retries.append((attempt, delay, err)),
            policy=policy,
            random=random,
            sleep=self.wait,
        )


async def test_an_answer_needs_no_second_call() -> None:
    model = Model()
    assert await model.ask() == "answer"
    assert (model.calls, model.waits) == (1, [])


async def test_four_calls_with_growing_waits() -> None:
    failures = [ServerError(f"failure {number}") for number in range(3)]
    model = Model(*failures)
    assert await model.ask() == "answer"
    assert model.waits == [1.0, 2.0, 4.0]
    assert model.retries == [(2, 1.0, failures[0]), (3, 2.0, failures[1]), (4, 4.0, failures[2])]


async def test_the_last_failure_is_raised() -> None:
    model = Model(*(ServerError(f"failure {number}") for number in range(9)))
    with pytest.raises(ServerError, match="failure 3"):
        await model.ask()
    assert model.calls == 4


@pytest.mark.parametrize(("drawn", "factor"), [(0.0, 0.5), (0.25, 0.75), (0.999999, 1.499999)])
async def test_waits_are_spread_around_the_table(drawn: float, factor: float) -> None:
    model = Model(*(ServerError("failure") for _ in range(3)))
    await model.ask(random=lambda: drawn)
    assert model.waits == pytest.approx([1.0 * factor, 2.0 * factor, 4.0 * factor])


async def test_what_a_retry_cannot_mend_is_raised_at_once() -> None:
    model = Model(AuthError("no"))
    with pytest.raises(AuthError):
        await model.ask()
    assert (model.calls, model.retries) == (1, [])


async def test_nothing_is_tried_again_once_something_was_shown() -> None:
    model = Model(ServerError("failure"))
    model.shown = True
    with pytest.raises(ServerError):
        await model.ask()
    assert model.calls == 1


async def test_other_errors_are_none_of_its_business() -> None:
    async def call() -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await with_retries(call, shown=lambda: False, on_retry=lambda *_: None)


async def test_a_wait_that_the_service_asks_for_is_taken_as_it_is() -> None:
    model = Model(RateLimitedError("slow down", retry_after_secs=7.5), RateLimitedError("again", retry_after_secs=60))
    assert await model.ask() == "answer"
    assert model.waits == [7.5, 60]


async def test_a_wait_of_nothing_falls_back_on_the_table() -> None:
    model = Model(RateLimitedError("slow down", retry_after_secs=0.0))
    await model.ask()
    assert model.waits == [1.0]


@pytest.mark.parametrize(("secs", "words"), [(61, "61 s"), (600, "10 min"), (86400, "24 h")])
async def test_a_wait_above_the_cap_is_told_and_not_waited(secs: float, words: str) -> None:
    model = Model(RateLimitedError("slow down", retry_after_secs=secs))
    with pytest.raises(RateLimitedError) as caught:
        await model.ask()
    assert (model.calls, model.waits) == (1, [])
    assert f"asks to wait {words}" in str(caught.value)


async def test_policies_can_be_changed() -> None:
    model = Model(*(ServerError("failure") for _ in range(5)))
    assert await model.ask(RetryPolicy(attempts=6, delays=(0.5, 3.0))) == "answer"
    assert model.waits == [0.5, 3.0, 3.0, 3.0, 3.0]


@pytest.mark.parametrize(
    ("value", "secs"),
    [
        ("12", 12),
        (" 4 ", 4),
        ("1.5", 1.5),
        ("0", 0),
        ("-3", 0),
        ("Fri, 02 Jan 2026 03:04:35 GMT", 30),
        ("Friday, 02-Jan-26 03:04:25 GMT", 20),
        ("Fri Jan  2 03:04:35 2026", 30),
        ("Fri, 02 Jan 2026 03:04:00 GMT", 0),
        ("nan", None),
        ("inf", None),
        ("-inf", None),
        ("1e999", None),
        ("1_0", None),
        ("٣", None),
        ("soon", None),
        ("Fri, 32 Jan 2026 03:04:00 GMT", None),
        ("", None),
    ],
)
def test_forms_of_retry_after(value: str, secs: float | None) -> None:
    assert parse_retry_after(value, NOW) == secs


def test_milliseconds_come_first() -> None:
    assert retry_after_secs({"retry-after-ms": "1500", "retry-after": "9"}, NOW) == 1.5
    assert retry_after_secs({"retry-after-ms": "soon", "retry-after": "9"}, NOW) == 9
    assert retry_after_secs({}, NOW) is None
