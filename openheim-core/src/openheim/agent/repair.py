"""Makes a history acceptable to a provider again after a crash or a cut: every tool call gets an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openheim.messages import Message, ToolResultBlock

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("with_every_call_answered",)

_LOST = "Error: the outcome of this call is unknown: it was interrupted before its result was stored"


def with_every_call_answered(messages: Sequence[Message]) -> list[Message]:
    """The messages, with an error result for each call that has none, right behind the results that arrived.

    The stored history stays as it is. A made-up message has an id derived from the call's, so that it is the same in
    every request.
    """
    repaired: list[Message] = []
    unanswered: dict[str, tuple[Message, str]] = {}

    def settle() -> None:
        for call_id, (caller, name) in unanswered.items():
            repaired.append(
                Message(
                    role="tool",
                    content=(ToolResultBlock(call_id, name, _LOST, True),),
                    id=f"{caller.id}:{call_id}:lost",
                    created_at=caller.created_at,
                    turn=caller.turn,
                    step=caller.step,
                )
            )
        unanswered.clear()

    for message in messages:
        if message.role == "tool":
            for block in message.content:
                if isinstance(block, ToolResultBlock):
                    unanswered.pop(block.tool_call_id, None)
        else:
            settle()
        repaired.append(message)
        if message.role == "assistant":
            unanswered.update((call.id, (message, call.name)) for call in message.tool_uses)
    settle()
    return repaired
