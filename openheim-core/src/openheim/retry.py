"""Trying a model call again, and how long to wait before.

``Retry-After`` is read as RFC 9110 (10.2.3 and 5.6.7) defines it, with its two obsolete date forms.
"""

from __future__ import annotations

import math
import random as _random
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import anyio

from openheim.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from datetime import datetime

__all__ = ("RetryPolicy", "parse_retry_after", "retry_after_secs", "with_retries")

T = TypeVar("T")


@dataclass(slots=True, frozen=True)
class RetryPolicy:
    """How often and when.

    Args:
        attempts: calls at most, the first included.
        delays: seconds before the second call, the third and so on; the last one serves for all that follow.
        cap_secs: a service that asks to wait longer than this is not called again.
    """

    attempts: int = 4
    delays: tuple[float, ...] = (1.0, 2.0, 4.0)
    cap_secs: float = 60.0

    def delay_before(self, attempt: int, err: ProviderError, random: Callable[[], float]) -> float | None:
        """Seconds to wait before call number ``attempt``, or None if ``err`` is not to be tried again.

        A wait that the service asked for is taken as it is. Otherwise the delay of the table is multiplied by a random
        factor between 0.5 and 1.5, so that clients that failed together do not come back together.
        """
        if not err.retryable or attempt > self.attempts:
            return None
        asked = err.retry_after_secs
        if asked is not None and asked > 0:
            return asked if asked <= self.cap_secs else None
        delay = self.delays[min(attempt - 2, len(self.delays) - 1)] if self.delays else 0.0
        return delay * (0.5 + random())


async def with_retries(
    call: Callable[[], Awaitable[T]],
    *,
    shown: Callable[[], bool],
    on_retry: Callable[[int, float, ProviderError], None],
    policy: RetryPolicy | None = None,
    random: Callable[[], float] = _random.random,
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
) -> T:
    """Makes a call, and makes it again while that may help.

    Args:
        call: starts one attempt.
        shown: whether a piece of the answer has reached anybody; then a second answer must not follow.
        on_retry: called before each wait with the number of the coming attempt (from 2), the wait in seconds, and why.
        random: a number from 0 up to 1.

    Raises:
        ProviderError: what the last attempt raised.
    """
    policy = policy or RetryPolicy()
    attempt = 1
    while True:
        try:
            return await call()
        except ProviderError as err:
            attempt += 1
            delay = None if shown() else policy.delay_before(attempt, err, random)
            if delay is None:
                _explain_wait(err, policy)
                raise
            on_retry(attempt, delay, err)
        await sleep(delay)


def _explain_wait(err: ProviderError, policy: RetryPolicy) -> None:
    asked = err.retry_after_secs
    if err.retryable and asked is not None and asked > policy.cap_secs:
        err.hint = f"the service asks to wait {_duration(asked)}; try again then, or use another model"


def _duration(secs: float) -> str:
    if secs < 120:
        return f"{math.ceil(secs)} s"
    if secs < 7200:
        return f"{math.ceil(secs / 60)} min"
    return f"{math.ceil(secs / 3600)} h"


def retry_after_secs(headers: Mapping[str, str], now: datetime) -> float | None:
    """How long the headers of an answer ask to wait (``retry-after-ms``, else ``retry-after``), or None.

    Args:
        headers: with names in lower case.
        now: with a time zone.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    return parse_retry_after(headers.get("retry-after", ""), now)


def parse_retry_after(value: str, now: datetime) -> float | None:
    """Reads a ``Retry-After`` value: seconds, or any of the three HTTP date forms.

    Returns:
        Seconds from ``now``, not below 0; None for what is neither (``nan`` and ``inf`` included).
    """
    seconds = _number(value)
    return seconds if seconds is not None else _seconds_until(value.strip(), now)


def _number(value: str) -> float | None:
    if "_" in value or not value.isascii():
        return None  # Python would read them as digits.
    try:
        number = float(value)
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _seconds_until(date: str, now: datetime) -> float | None:
    # Only failures come here, so nobody else pays for importing the parser.
    from datetime import UTC
    from email.utils import parsedate_to_datetime

    try:
        then = parsedate_to_datetime(date)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return max(0.0, (then - now).total_seconds())
