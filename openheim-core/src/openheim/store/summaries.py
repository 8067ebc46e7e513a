"""The summary that a session goes on with, for those who show sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from openheim.messages import Message

__all__ = ("Summary", "summary_in_force")


class Summary(NamedTuple):
    """What the model is given in place of messages.

    Args:
        messages: how many of the session's first ones it stands for; the first request is given beside it.
    """

    messages: int
    text: str


def summary_in_force(messages: Sequence[Message], records: Sequence[Mapping[str, Any]]) -> Summary | None:
    """The summary that requests hold, or None if they hold the messages themselves."""
    compactions = [record for record in records if record.get("record") == "compaction"]
    if not compactions:
        return None
    # Most sessions were never compacted, and need none of the agent to be shown.
    from openheim.agent.compaction import compaction_in

    places = {message.id: number for number, message in enumerate(messages, 1)}
    for compaction in map(compaction_in, reversed(compactions)):
        if compaction is not None and compaction.upto in places:
            return Summary(places[compaction.upto], compaction.summary)
    return None
