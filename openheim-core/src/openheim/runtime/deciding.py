"""Which calls of a session may run: rules and mode first, then whoever watches; answers can be remembered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from openheim.errors import OpenheimError
from openheim.events import Notice
from openheim.gates import Decision, GateSession, ToolCall
from openheim.permissions import PermissionPolicy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from openheim.agent.steps import Steps
    from openheim.agent.toolbox import Toolbox
    from openheim.events import Event
    from openheim.messages import ToolUseBlock
    from openheim.runtime.asks import Asks
    from openheim.runtime.options import SessionOptions
    from openheim.store import SessionMeta

__all__ = ("SessionDecisions",)


class SessionDecisions:
    """Decides for one session.

    Args:
        meta: of the session; its mode counts as it is at the moment, and answers are remembered there.
        cwd: the session's directory.
        steps: how the loop does its work at the moment.
        keep: puts a record of a remembered answer on disk.
    """

    def __init__(
        self,
        meta: SessionMeta,
        options: SessionOptions,
        *,
        toolbox: Toolbox,
        cwd: Path,
        asks: Asks,
        steps: Callable[[], Steps],
        keep: Callable[[dict[str, Any]], None],
        publish: Callable[[Event], None],
    ) -> None:
        self._meta = meta
        self._toolbox = toolbox
        self._cwd = cwd
        self._attended = options.attended
        self._asks = asks
        self._steps = steps
        self._keep = keep
        self._publish = publish
        self._policy = PermissionPolicy(
            options.gate, allow=options.allow, deny=options.deny, ask=self._ask_person if options.attended else None
        )

    async def decide(self, call: ToolCall) -> Decision:
        """Whether a call may run."""
        return await self._policy.decide(call, GateSession(self._meta.id, self._meta.mode, self._cwd))

    async def ask_question(self, block: ToolUseBlock, number: int, question: str) -> bool:
        """Asks what a running tool wants to know: yes or no. No, where nobody can answer.

        Args:
            number: of the question within the call.
        """
        if not self._attended:
            return False
        call = ToolCall(block.id, block.name, {})
        answer = await self._steps().run(
            "permission", f"{block.id}:question:{number}", lambda: self._asks.ask(call, question), "ask"
        )
        return answer.decision == "allow"

    async def _ask_person(self, call: ToolCall, decision: Decision) -> Decision:
        key = self._key(call)
        remembered = self._meta.extra.get("decisions", {}).get(key)
        if remembered is not None:
            return Decision("allow") if remembered == "allow" else Decision("deny", "it was denied for this session")
        answer = await self._steps().run(
            "permission", call.id, lambda: self._asks.ask(call, decision.reason, decision.suggestions), "ask"
        )
        if answer.remember:
            self._meta.extra.setdefault("decisions", {})[key] = answer.decision
            try:
                self._keep({"record": "approval", "key": key, "decision": answer.decision})
            except OpenheimError as err:
                self._publish(Notice("error", f"the answer is remembered in this program only: {err}"))
        if answer.decision == "allow":
            return Decision("allow")
        return Decision("deny", answer.reason or "the user denied it")

    def _key(self, call: ToolCall) -> str:
        """What a remembered decision is about: the tool, or for some tools the very arguments, in whatever order."""
        tool = self._toolbox.get(call.name)
        if getattr(tool, "approval_scope", "tool") != "arguments":
            return call.name
        return f"{call.name} {json.dumps(call.arguments, sort_keys=True, separators=(',', ':'))}"
