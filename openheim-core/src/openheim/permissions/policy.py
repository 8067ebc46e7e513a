"""One decision per tool call, from rules, mode and gate.

In this order: a deny rule denies; plan mode denies what is not read-only; ``bypassPermissions`` allows; the gate
allows, denies, or would ask. What it would ask about is allowed by an allow rule, or for edits by ``acceptEdits``;
``dontAsk`` denies the rest, and else a person is asked, or, where nobody can be asked, the call is allowed.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Literal

from openheim.agent.cancellation import slipped
from openheim.errors import described
from openheim.gates import Decision
from openheim.tools import PATH_KINDS, WRITING_KINDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from openheim.gates import Gate, GateSession, ToolCall
    from openheim.permissions.rules import Rule

__all__ = ("PermissionPolicy",)

_log = logging.getLogger(__name__)

_ALLOW = Decision("allow")


class PermissionPolicy:
    """Decides about the calls of one session.

    Args:
        gate: the session's gate.
        allow, deny: rules.
        ask: puts a question to a person and returns the answer, or None where nobody can be asked.
    """

    def __init__(
        self,
        gate: Gate,
        *,
        allow: Sequence[Rule] = (),
        deny: Sequence[Rule] = (),
        ask: Callable[[ToolCall, Decision], Awaitable[Decision]] | None = None,
    ) -> None:
        self.gate = gate
        self.allow = tuple(allow)
        self.deny = tuple(deny)
        self.ask = ask

    async def decide(self, call: ToolCall, session: GateSession) -> Decision:
        """``allow``, or ``deny`` with a reason that the model reads; never ``ask``."""
        is_path = call.kind in PATH_KINDS
        for rule in self.deny:
            if rule.matches(call.name, call.target, is_path=is_path) or rule.may_match(call.name, call.target):
                return Decision("deny", f"the rule {rule} denies it")
        if session.mode == "plan" and not call.read_only:
            return Decision("deny", "in plan mode only read-only tools may run")
        if session.mode == "bypassPermissions":
            return _ALLOW
        decision = await self._gate_decision(call, session)
        if decision.outcome != "ask":
            return decision
        if any(rule.matches(call.name, call.target, is_path=is_path) for rule in self.allow):
            return _ALLOW
        if session.mode == "acceptEdits" and call.kind in WRITING_KINDS:
            return _ALLOW
        if session.mode == "dontAsk":
            return Decision("deny", "no rule allows it, and in this session nobody is asked")
        return _ALLOW if self.ask is None else await self.ask(call, decision)

    async def _gate_decision(self, call: ToolCall, session: GateSession) -> Decision:
        try:
            decision = await self.gate.decide(call, session)
        except BaseException as err:
            if not slipped(err):
                raise
            _log.warning("the permission gate failed and so denies: %s", described(err))
            return Decision("deny", "the permission gate failed")
        outcomes: tuple[Literal["allow", "deny", "ask"], ...] = ("allow", "deny", "ask")
        if not isinstance(decision, Decision) or decision.outcome not in outcomes:
            _log.warning("the permission gate gave no decision and so denies: %r", type(decision).__name__)
            return Decision("deny", "the permission gate gave no decision")
        return decision
