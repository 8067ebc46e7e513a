"""How a run ended: its status, its exit code, and the object of ``--output json``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from openheim.cli.failures import exit_code_of
from openheim.errors import OpenheimError, described, unwrapped
from openheim.messages import Usage

if TYPE_CHECKING:
    from openheim.agent.loop import TurnOutcome
    from openheim.runtime import Session

__all__ = ("RunResult", "failed_result", "run_result")

Status: TypeAlias = Literal["completed", "limited", "refused", "denied", "cancelled", "failed"]

_NOTES = {
    "max_turn_requests": "stopped after {iterations} model calls (see --max-iterations)",
    "max_tokens": "the reply was cut at the model's output limit",
    "refusal": "the model refused to answer",
}


@dataclass(frozen=True, slots=True)
class RunResult:
    """``note`` is for a person on stderr, or ``""``."""

    status: Status
    exit_code: int
    record: dict[str, Any]
    note: str = ""

    @property
    def has_reply(self) -> bool:
        """Whether ``text`` is the model's answer, and not just what it said on its way to a failure.

        An answer that could not be saved is one, and its only copy.
        """
        if self.status == "failed":
            return self.record["stop_reason"] not in (None, "cancelled")
        return self.status != "cancelled"


def run_result(session: Session, outcome: TurnOutcome, *, signal: int | None, timed_out: bool) -> RunResult:
    """The result of a turn.

    Args:
        signal: number of the signal that cancelled it, if one did.
        timed_out: whether ``--timeout`` cancelled it.
    """
    status, code, note = _ending(outcome, signal, timed_out)
    record = {
        "session_id": session.id,
        "status": status,
        "stop_reason": outcome.stop_reason,
        "text": outcome.text,
        "iterations": outcome.iterations,
        "usage": outcome.usage.to_dict(),
        "cost": outcome.cost,
        "model": outcome.model or session.binding.model,
        "provider": outcome.provider or session.binding.provider_name,
        "denied": outcome.denied,
        "error": outcome.error.to_dict() if outcome.error is not None else None,
    }
    return RunResult(status, code, record, note)


def _ending(outcome: TurnOutcome, signal: int | None, timed_out: bool) -> tuple[Status, int, str]:
    # When several causes meet, the gravest is told: failed, cancelled, refused, limited, denied.
    if outcome.error is not None:
        return "failed", exit_code_of(outcome.error), ""
    if outcome.stop_reason == "cancelled":
        if timed_out and signal is None:
            return "limited", 3, "stopped by --timeout"
        return "cancelled", 128 + (signal or 2), "cancelled"
    note = _NOTES.get(outcome.stop_reason or "", "").format(iterations=outcome.iterations)
    if outcome.stop_reason == "refusal":
        return "refused", 4, note
    if outcome.stop_reason in ("max_turn_requests", "max_tokens"):
        return "limited", 3, note
    if outcome.denied:
        names = ", ".join(sorted({call["tool"] for call in outcome.denied}))
        return "denied", 5, f"tool calls were denied: {names}"
    return "completed", 0, ""


def failed_result(err: Exception, session: Session | None = None) -> RunResult:
    """The result of a run that failed before its turn began, or in a way that no turn should."""
    err = unwrapped(err)
    if not isinstance(err, OpenheimError):
        err = OpenheimError(described(err), hint="this is a fault in openheim or a plugin; --debug shows where")
    record: dict[str, Any] = {
        "session_id": session.id if session is not None else None,
        "status": "failed",
        "stop_reason": None,
        "text": "",
        "iterations": 0,
        "usage": Usage().to_dict(),
        "cost": None,
        "model": session.binding.model if session is not None else None,
        "provider": session.binding.provider_name if session is not None else None,
        "denied": [],
        "error": err.to_dict(),
    }
    return RunResult("failed", exit_code_of(err), record)
