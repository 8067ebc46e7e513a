"""A session over a scripted provider, with every event that it published."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openheim import Event, Session, Tool
from openheim.config.load import load_config
from openheim.messages import Message, ToolResultBlock
from openheim.plugins.host import PluginHost
from openheim.plugins.policy import policy_from
from openheim.retry import RetryPolicy
from openheim.runtime import Runtime
from openheim.testing import ScriptedProvider

NO_DELAYS = RetryPolicy(delays=(0.0, 0.0, 0.0))


@dataclass
class Recorded:
    """A session, its provider, and the events so far."""

    session: Session
    provider: Any
    runtime: Runtime
    events: list[Event] = field(default_factory=list)

    @property
    def types(self) -> list[str]:
        """Types of the events, without deltas and tool updates."""
        left_out = {"text_delta", "thinking_delta", "tool_call_delta", "tool_update"}
        return [event.type for event in self.events if event.type not in left_out]

    def of_type(self, kind: str) -> list[Any]:
        return [event for event in self.events if event.type == kind]

    def results(self) -> list[ToolResultBlock]:
        """The tool results of the history, in its order."""
        return [
            block
            for message in self.session.messages
            for block in message.content
            if isinstance(block, ToolResultBlock)
        ]

    def stored(self) -> list[Message]:
        """The messages as they are on disk."""
        return self.runtime.store.load(self.session.id).messages


@asynccontextmanager
async def scripted_session(
    replies: Iterable[Any], *, tools: Iterable[Tool] = (), provider: Any = None, **options: Any
) -> AsyncIterator[Recorded]:
    """A session over ``replies`` (or over ``provider``) in a runtime of its own."""
    answering = provider or ScriptedProvider(replies)
    loaded = load_config(environment={}, flags=options.pop("config", None))
    host = PluginHost(policy_from({"enable": ["openheim-core"]}, {}), report=lambda line: None)
    runtime = Runtime(loaded, host, tools=tools, retry=NO_DELAYS)
    options.setdefault("gate", "allow")
    options.setdefault("cwd", Path.cwd())
    async with runtime:
        recorded = Recorded(runtime.new_session(provider=answering, **options), answering, runtime)
        recorded.session.stream.attach(recorded.events.append)
        yield recorded
