"""A summary that stands for the older part of a conversation, in requests only.

It is kept as a record of the history, so that a session that is resumed goes on with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("Compaction", "compaction_in")


@dataclass(slots=True, frozen=True)
class Compaction:
    """``summary`` stands for everything up to the message with the id ``upto``, except the first request."""

    upto: str
    summary: str

    def as_text(self) -> str:
        """As it stands in requests, behind the first request."""
        return f"[Summary of the conversation up to here]\n{self.summary}\n[End of the summary]"


def compaction_in(record: Mapping[str, Any]) -> Compaction | None:
    """The compaction that a record of the history tells of, or None if it tells of something else."""
    match record:
        case {"record": "compaction", "upto": str(upto), "summary": str(summary)} if upto and summary.strip():
            return Compaction(upto, summary)
    return None
