"""How the loop does anything that could be recorded or replayed.

The loop never awaits a model, a tool or a question by itself, and takes ids and time from here too. A recorder, a
replayer or a durable engine can stand in for :class:`DirectSteps` without touching the loop.
"""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from openheim.tools import Replay

__all__ = ("DirectSteps", "Steps", "timestamp")

T = TypeVar("T")


class Steps(Protocol):
    """A runner of steps."""

    async def run(self, name: str, key: str, call: Callable[[], Awaitable[T]], replay: Replay) -> T:
        """Runs one step.

        Args:
            name: what kind of step: ``model``, ``tool``, ``permission``, ``compaction``.
            key: tells the steps of one session apart; the same in every replay.
            call: does the work.
            replay: whether the work may be done again when its outcome was lost.
        """
        ...

    def new_id(self) -> str: ...

    def now(self) -> datetime: ...

    def random(self) -> float:
        """From 0 (included) to 1 (excluded)."""
        ...


class DirectSteps:
    """Just does the work."""

    async def run(self, name: str, key: str, call: Callable[[], Awaitable[T]], replay: Replay) -> T:
        return await call()

    def new_id(self) -> str:
        return uuid.uuid4().hex

    def now(self) -> datetime:
        return datetime.now(UTC)

    def random(self) -> float:
        return random.random()


def timestamp(steps: Steps) -> str:
    """Now, in RFC 3339 with milliseconds."""
    return steps.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
