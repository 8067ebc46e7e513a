"""Telling a cancellation that is meant from one that a plugin let slip."""

from __future__ import annotations

import math
import sys

import anyio

__all__ = ("being_cancelled",)


def being_cancelled() -> bool:
    """Whether the running task is being cancelled by whoever runs it.

    A plugin that awaits something cancelled, or raises the exception itself, looks the same from outside; what it
    does must not end the turn.
    """
    if anyio.current_effective_deadline() == -math.inf:
        return True
    # A program on asyncio may cancel the task without anyio's knowing.
    asyncio = sys.modules.get("asyncio")
    try:
        task = asyncio.current_task() if asyncio is not None else None
    except RuntimeError:
        return True
    return task is not None and task.cancelling() > 0
