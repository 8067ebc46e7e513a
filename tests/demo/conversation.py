"""A conversation with the demo provider in which a function answers the tool calls."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from openheim import Message, ModelReply, ModelRequest, TextBlock, TextDelta, ToolSpec
from openheim.messages import ToolResultBlock
from openheim_provider_demo.provider import DemoProvider

#: Gives text for a tool's name and arguments; an exception makes an error result of its message.
Answering: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[str]]

FS = ("edit_file", "list_dir", "read_file", "search", "write_file")
MEMORY = ("remember", "search_memory")


@dataclass
class Spoken:
    """What came of one prompt: the calls in order, the answer, the pieces it came in, and the replies."""

    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    answer: str = ""
    pieces: list[str] = field(default_factory=list)
    replies: list[ModelReply] = field(default_factory=list)


class Conversation:
    def __init__(self, answering: Answering, tools: Iterable[str] = (*FS, *MEMORY)) -> None:
        self.messages: list[Message] = []
        self.provider = DemoProvider()
        self._answering = answering
        self._tools = tuple(ToolSpec(name, f"The tool {name}.", {"type": "object"}) for name in sorted(tools))

    def request(self, **changes: Any) -> ModelRequest:
        return ModelRequest("demo", "Be brief.", list(self.messages), self._tools, **changes)

    async def say(self, prompt: str) -> Spoken:
        spoken = Spoken()
        self.messages.append(Message("user", (TextBlock(prompt),)))
        for _ in range(20):
            reply = await self.provider.generate(self.request(), lambda delta: self._note(delta, spoken))
            spoken.replies.append(reply)
            self.messages.append(Message("assistant", reply.content))
            if reply.finish != "tool_use":
                spoken.answer = self.messages[-1].text
                return spoken
            for use in self.messages[-1].tool_uses:
                arguments = json.loads(use.arguments)
                spoken.calls.append((use.name, arguments))
                try:
                    result = ToolResultBlock(use.id, use.name, await self._answering(use.name, arguments))
                except Exception as err:
                    result = ToolResultBlock(use.id, use.name, str(err), is_error=True)
                self.messages.append(Message("tool", (result,)))
        raise AssertionError(f"no answer after 20 replies; calls: {spoken.calls}")

    def _note(self, delta: Any, spoken: Spoken) -> None:
        if isinstance(delta, TextDelta):
            spoken.pieces.append(delta.text)


def canned(results: Mapping[str, str | Exception]) -> Answering:
    """Answers by the tool's name, or by ``name path`` where that is given."""

    async def answer(name: str, arguments: dict[str, Any]) -> str:
        result = results.get(f"{name} {arguments.get('path')}", results.get(name))
        assert result is not None, f"a call that nobody expected: {name} {arguments}"
        if isinstance(result, Exception):
            raise result
        return result

    return answer
