"""What the conversation holds that matters for the next reply: the prompt and the results of this turn's calls."""

from __future__ import annotations

import json
import re
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from openheim.messages import Message, ToolResultBlock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ("Call", "CurrentTurn", "Result", "next_call_number")

_CALL_ID = re.compile(r"demo-(\d+)")


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that a plan wants."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def arguments_text(self) -> str:
        return json.dumps(self.arguments, ensure_ascii=False, sort_keys=True)


@dataclass(frozen=True, slots=True)
class Result:
    text: str
    is_error: bool = False


class CurrentTurn:
    """The last user message and what came after it."""

    def __init__(self, messages: Sequence[Message]) -> None:
        start = next((at for at in range(len(messages) - 1, -1, -1) if messages[at].role == "user"), None)
        self.prompt = "" if start is None else messages[start].text
        self._results: dict[tuple[str, str], deque[Result]] = {}
        after = messages[start + 1 :] if start is not None else ()
        answers = {
            block.tool_call_id: Result(block.content, block.is_error)
            for message in after
            for block in message.content
            if isinstance(block, ToolResultBlock)
        }
        for message in after:
            for use in message.tool_uses:
                if use.id in answers:
                    self._results.setdefault((use.name, use.arguments), deque()).append(answers[use.id])

    def take_result(self, call: Call) -> Result | None:
        """The result of that call, or None if it was not made. Calls made twice give their results in order."""
        results = self._results.get((call.tool, call.arguments_text))
        return results.popleft() if results else None


def next_call_number(messages: Sequence[Message]) -> int:
    """A number for the next call that no earlier call of the conversation has."""
    numbers = [
        int(match[1]) for message in messages for use in message.tool_uses if (match := _CALL_ID.fullmatch(use.id))
    ]
    return max(numbers, default=0) + 1
