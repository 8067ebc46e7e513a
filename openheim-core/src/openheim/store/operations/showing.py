"""A session as one JSON object, as REST and ``openheim sessions show`` give it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim.messages import Message, ToolResultBlock, block_to_stored, message_to_stored
from openheim.store.summaries import summary_in_force

if TYPE_CHECKING:
    from openheim.messages import Block
    from openheim.store.history import StoredSession

__all__ = ("conversation",)


def conversation(session: StoredSession, *, full: bool = False) -> dict[str, Any]:
    """``meta`` and ``messages``, and ``summary`` where the model is given one in place of the first ``messages``.

    Args:
        full: everything that is stored, records too; otherwise the fields that every reader knows.
    """
    shown: dict[str, Any] = {"meta": session.meta.to_dict(full=full)}
    if full:
        shown["messages"] = [message_to_stored(message) for message in session.messages]
        shown["records"] = session.records
    else:
        shown["messages"] = [_plain(message) for message in session.messages]
    summary = summary_in_force(session.messages, session.records)
    if summary is not None:
        shown["summary"] = {"messages": summary.messages, "text": summary.text}
    return shown


def _plain(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": [_plain_block(block) for block in message.content]}


def _plain_block(block: Block) -> dict[str, Any]:
    stored = block_to_stored(block)
    if isinstance(block, ToolResultBlock):
        stored.pop("images", None)
    return stored
