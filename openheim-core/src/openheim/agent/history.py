"""The messages that a turn goes on from and adds to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openheim.messages import Block, Message, Role

__all__ = ("TurnHistory",)


class TurnHistory(Protocol):
    """The loop's view of the session's messages; the session provides one.

    ``messages`` are those stored, in order, ``turn`` the number of the running turn. :meth:`store` adds a message and
    puts it on disk as far as that works, and :meth:`acknowledge` tells watchers about those that are there.
    """

    messages: list[Message]
    turn: int

    @property
    def unwritten(self) -> int:
        """Messages that are not on disk, since that failed so far."""
        ...

    def store(self, role: Role, content: Sequence[Block], **details: Any) -> Message:
        """Adds a message, which is on disk afterwards unless that fails.

        Args:
            details: further arguments of :class:`~openheim.messages.Message`.
        """
        ...

    def store_record(self, record: Mapping[str, Any]) -> None:
        """Puts a record (see :mod:`openheim.store`) behind the messages."""
        ...

    def acknowledge(self) -> None:
        """Tells watchers of the messages stored since the last time."""
        ...

    def unique_call_id(self, wanted: str) -> str:
        """An id that no earlier call of the session had: the one wanted, if that is free and not blank."""
        ...
