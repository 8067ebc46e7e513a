"""What a permission gate implements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from openheim.tools import ToolKind

__all__ = ("Decision", "Gate", "GateSession", "ToolCall")


@dataclass(slots=True, frozen=True)
class ToolCall:
    """A call that wants to run.

    Args:
        target: what it acts on, as the tool spells it (a path inside the boundary, a command), or None.
    """

    id: str
    name: str
    arguments: Mapping[str, Any]
    kind: ToolKind = "other"
    read_only: bool = False
    target: str | None = None


@dataclass(slots=True, frozen=True)
class GateSession:
    """What a gate may know of the session that asks."""

    id: str
    mode: str
    cwd: Path


@dataclass(slots=True, frozen=True)
class Decision:
    """``allow``, ``deny`` with a reason that the model reads, or ``ask`` with rules worth remembering."""

    outcome: Literal["allow", "deny", "ask"]
    reason: str = ""
    suggestions: tuple[str, ...] = ()


class Gate(Protocol):
    """Decides about tool calls. One that raises, or returns anything but a :class:`Decision`, denies."""

    async def decide(self, call: ToolCall, session: GateSession) -> Decision:
        """Asked once per call, for read-only tools too, concurrently for the calls of one reply."""
        ...
