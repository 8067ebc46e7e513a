"""What a watcher that joins a session is told of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openheim.events import Delta, PermissionAsked
    from openheim.messages import Message

__all__ = ("Snapshot",)


@dataclass(slots=True, frozen=True)
class Snapshot:
    """What a watcher that joins has to know: everything up to ``seq``.

    Args:
        messages: the conversation so far.
        partial: deltas of the reply that is being received.
        questions: that wait for an answer.
        running: whether a turn is running.
    """

    seq: int
    messages: tuple[Message, ...]
    partial: tuple[Delta, ...]
    questions: tuple[PermissionAsked, ...]
    running: bool
