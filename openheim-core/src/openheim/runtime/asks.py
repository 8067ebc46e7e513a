"""Questions to people: an event that goes out, and a wait that the first answer ends.

The wait belongs to the session and not to whoever shows the question, so any watcher may answer, the question
survives a watcher that goes away, and everybody learns who won.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import anyio

from openheim.events import PermissionAsked, PermissionResolved

if TYPE_CHECKING:
    from collections.abc import Callable

    from openheim.events import Event
    from openheim.gates import ToolCall

__all__ = ("Answer", "Asks")


@dataclass(frozen=True, slots=True)
class Answer:
    """``by`` names who answered; ``remember`` that it goes for calls like this one from now on."""

    decision: Literal["allow", "deny"]
    by: str
    reason: str = ""
    remember: bool = False


@dataclass(slots=True)
class _Open:
    asked: PermissionAsked
    answered: anyio.Event = field(default_factory=anyio.Event)
    answer: Answer | None = None


class Asks:
    """The open questions of one session."""

    def __init__(self, publish: Callable[[Event], None]) -> None:
        self._publish = publish
        self._open: dict[str, _Open] = {}
        self._number = 0

    def open_questions(self) -> list[PermissionAsked]:
        """What a watcher that joins has to show."""
        return [question.asked for question in self._open.values()]

    async def ask(self, call: ToolCall, reason: str = "", suggestions: tuple[str, ...] = ()) -> Answer:
        """Puts a question about a call and waits for its answer. When cancelled, the question is settled as denied."""
        self._number += 1
        ask_id = f"ask-{self._number}"
        asked = PermissionAsked(ask_id, call.name, call.id, dict(call.arguments), reason, suggestions)
        question = self._open[ask_id] = _Open(asked)
        self._publish(asked)
        try:
            await question.answered.wait()
        finally:
            if question.answer is None:
                self._resolve(ask_id, Answer("deny", "cancel"))
        assert question.answer is not None
        return question.answer

    def answer(
        self, ask_id: str, decision: Literal["allow", "deny"], *, by: str, reason: str = "", remember: bool = False
    ) -> bool:
        """Answers a question. False if it is not open (any more): somebody else was first, or it was settled."""
        if ask_id not in self._open:
            return False
        self._resolve(ask_id, Answer(decision, by, reason, remember))
        return True

    def settle_all(self, by: str) -> None:
        """Denies everything that is open."""
        for ask_id in list(self._open):
            self._resolve(ask_id, Answer("deny", by))

    def _resolve(self, ask_id: str, answer: Answer) -> None:
        question = self._open.pop(ask_id)
        question.answer = answer
        question.answered.set()
        self._publish(PermissionResolved(ask_id, answer.decision, answer.by))
