"""Who is told the bodies of requests: nobody, unless somebody asked."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ("body_watcher", "watching_bodies")

#: Told the body of every request that is made while it is set.
body_watcher: ContextVar[Callable[[bytes], None] | None] = ContextVar("body_watcher", default=None)


@contextmanager
def watching_bodies(watcher: Callable[[bytes], None]) -> Iterator[None]:
    """Has ``watcher`` told of the requests that this task makes meanwhile."""
    token = body_watcher.set(watcher)
    try:
        yield
    finally:
        body_watcher.reset(token)
