"""Turns over a history in memory, for tests of what requests hold."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from openheim import Event, Tool
from openheim.agent.context import ContextFitter
from openheim.agent.loop import TurnLoop, TurnOutcome
from openheim.agent.settings import LoopSettings
from openheim.agent.steps import DirectSteps
from openheim.agent.summarising import CompactionResult, compact
from openheim.agent.toolbox import Toolbox
from openheim.agent.turn import ToolEnvironment
from openheim.agent.window import ContextSettings
from openheim.files import Files
from openheim.gates import Decision, ToolCall
from openheim.messages import (
    Block,
    ImageBlock,
    Message,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from openheim.providers import ModelRequest
from openheim.testing import ScriptedProvider
from tests.agent.sessions import NO_DELAYS


class MemoryHistory:
    """A :class:`~openheim.agent.history.TurnHistory` without a disk."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.messages: list[Message] = list(messages)
        self.records: list[dict[str, Any]] = []
        self._calls = 0
        self.turn = 1
        self.unwritten = 0

    def store(self, role: Role, content: Sequence[Block], **details: Any) -> Message:
        message = Message(role, tuple(content), id=f"m{len(self.messages)}", **details)
        self.messages.append(message)
        return message

    def store_record(self, record: Mapping[str, Any]) -> None:
        self.records.append(json.loads(json.dumps(record)))

    def acknowledge(self) -> None:
        pass

    def unique_call_id(self, wanted: str) -> str:
        self._calls += 1
        return f"c{self._calls}"


class Conversation:
    """What a session keeps between turns, over scripted replies.

    Args:
        state: of the fitter, as an earlier conversation over the same history left it.
        context: for :class:`ContextSettings`.
        settings: for :class:`LoopSettings`.
    """

    def __init__(
        self,
        replies: Iterable[Any] = (),
        *,
        provider: Any = None,
        tools: Iterable[Tool] = (),
        history: MemoryHistory | None = None,
        state: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        self.provider = provider or ScriptedProvider(replies)
        self.history = history or MemoryHistory()
        self.fitter = ContextFitter(state, self.history.records)
        self.context = ContextSettings(**(context or {}))
        self.toolbox = Toolbox(tools)
        self.environment = ToolEnvironment("session", Files(Path.cwd(), Path.cwd()), make_env=dict)
        self.events: list[Event] = []
        self.options = settings

    @property
    def requests(self) -> list[ModelRequest]:
        requests: list[ModelRequest] = self.provider.requests
        return requests

    def of_type(self, kind: str) -> list[Any]:
        return [event for event in self.events if event.type == kind]

    def settings(self) -> LoopSettings:
        given: dict[str, Any] = {
            "provider": self.provider,
            "provider_name": "scripted",
            "model": "scripted",
            "system": "",
            "toolbox": self.toolbox,
            "offered": self.toolbox.specs,
            "environment": self.environment,
            "steps": DirectSteps(),
            "max_iterations": 1000,
            "retry": NO_DELAYS,
            "context": self.context,
            "fitter": self.fitter,
        }
        return LoopSettings(**given | self.options)

    async def prompt(self, content: str | Sequence[Block]) -> TurnOutcome:
        async def allow(call: ToolCall) -> Decision:
            return Decision("allow")

        async def nobody(block: ToolUseBlock, number: int, question: str) -> bool:
            return False

        blocks = (TextBlock(content),) if isinstance(content, str) else tuple(content)
        self.history.store("user", blocks)
        publish = self.events.append
        self.loop = TurnLoop(self.settings(), self.history, publish=publish, decide=allow, ask=nobody)
        return await self.loop.run()

    async def compact(self) -> CompactionResult | None:
        return await compact(self.settings(), self.history, publish=self.events.append)


def size_of(messages: Iterable[Message]) -> int:
    """The size of messages as the specification of fitting counts it."""

    def size(block: Block) -> int:
        match block:
            case TextBlock():
                return len(block.text.encode())
            case ThinkingBlock():
                return len(block.thinking.encode()) + len((block.signature or "").encode())
            case ToolUseBlock():
                return sum(
                    len(part.encode()) for part in (block.id, block.name, block.arguments, block.signature or "")
                )
            case ToolResultBlock():
                text = sum(len(part.encode()) for part in (block.tool_call_id, block.tool_name, block.content))
                return text + 6000 * len(block.images)
            case ImageBlock():
                return 6000
        raise AssertionError(block)

    return sum(16 + sum(map(size, message.content)) for message in messages)


def texts(request: ModelRequest | Sequence[Message]) -> list[str]:
    """The text of each message; results stand with their content."""
    messages = request.messages if isinstance(request, ModelRequest) else request
    return [
        "".join(
            block.text if isinstance(block, TextBlock) else block.content if isinstance(block, ToolResultBlock) else ""
            for block in message.content
        )
        for message in messages
    ]


def is_acceptable(messages: Sequence[Message]) -> bool:
    """Whether a strict provider takes this: begins with the user, and every call has its one answer right behind."""
    if not messages or messages[0].role != "user":
        return False
    open_calls: list[str] = []
    for message in messages:
        if message.role == "tool":
            for block in message.content:
                assert isinstance(block, ToolResultBlock)
                if block.tool_call_id not in open_calls:
                    return False
                open_calls.remove(block.tool_call_id)
            continue
        if open_calls or not message.content:
            return False
        open_calls = [call.id for call in message.tool_uses]
    return not open_calls
