"""The core's own gates: ``allow`` everything, ``deny`` everything, ``ask`` about what changes something."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim.gates import Decision
from openheim.plugins.hookspecs import hookimpl

if TYPE_CHECKING:
    from openheim.gates import Gate, GateSession, ToolCall

__all__ = ("AllowGate", "AskGate", "DenyGate", "openheim_create_gate")


class AllowGate:
    async def decide(self, call: ToolCall, session: GateSession) -> Decision:
        return Decision("allow")


class DenyGate:
    async def decide(self, call: ToolCall, session: GateSession) -> Decision:
        return Decision("deny", "the gate of this session denies every tool call")


class AskGate:
    """Lets read-only calls through and leaves the others to rules, mode and a person."""

    async def decide(self, call: ToolCall, session: GateSession) -> Decision:
        if call.read_only:
            return Decision("allow")
        suggestions = (call.name,) if call.target is None else (f"{call.name}({call.target})", call.name)
        return Decision("ask", f"{call.name} may change something", suggestions)


@hookimpl
def openheim_create_gate(name: str, settings: Any) -> Gate | None:
    match name:
        case "allow":
            return AllowGate()
        case "ask":
            return AskGate()
        case "deny":
            return DenyGate()
    return None
