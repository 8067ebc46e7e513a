"""Checks of one reply and the deltas that came before it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, get_args

from openheim.events import TextDelta, ThinkingDelta, ToolCallDelta
from openheim.messages import Finish, RedactedThinkingBlock, TextBlock, ThinkingBlock, ToolUseBlock

if TYPE_CHECKING:
    from collections.abc import Iterable

    from openheim.events import Delta
    from openheim.messages import Block
    from openheim.providers import ModelReply

__all__ = ("check_shape", "check_streamed_calls", "runs_of")


def check_shape(reply: ModelReply) -> None:
    assert isinstance(reply.content, tuple), "the content is no tuple"
    legal = TextBlock | ThinkingBlock | RedactedThinkingBlock | ToolUseBlock
    for block in reply.content:
        assert isinstance(block, legal), f"a {type(block).__name__} has no place in a reply"
        assert not isinstance(block, TextBlock) or block.text, "the reply holds an empty text block"
    assert reply.finish in get_args(Finish), f"{reply.finish!r} is no finish"
    if reply.usage is not None:
        counts = reply.usage.to_dict()
        assert all(type(count) is int and count >= 0 for count in counts.values()), f"usage counts are odd: {counts}"


def runs_of(pieces: Iterable[Delta | Block]) -> list[tuple[str, str]]:
    """Text and thinking in order, neighbours of one kind joined."""
    runs: list[tuple[str, str]] = []
    for piece in pieces:
        match piece:
            case TextDelta() | TextBlock():
                kind, text = "text", piece.text
            case ThinkingDelta():
                kind, text = "thinking", piece.text
            case ThinkingBlock():
                kind, text = "thinking", piece.thinking
            case _:
                continue
        if runs and runs[-1][0] == kind:
            runs[-1] = (kind, runs[-1][1] + text)
        elif text:
            runs.append((kind, text))
    return runs


def check_streamed_calls(deltas: list[Delta], reply: ModelReply) -> None:
    """Streaming a call is optional; where it is done, the pieces make the call's arguments."""
    pieces: dict[int, str] = {}
    for delta in deltas:
        if isinstance(delta, ToolCallDelta):
            pieces[delta.index] = pieces.get(delta.index, "") + delta.arguments
    if pieces:
        calls = [block for block in reply.content if isinstance(block, ToolUseBlock)]
        streamed = [_as_json(pieces[index]) for index in sorted(pieces)]
        assert streamed == [_as_json(call.arguments) for call in calls], "the streamed calls differ from the reply's"


def _as_json(arguments: str) -> Any:
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments
