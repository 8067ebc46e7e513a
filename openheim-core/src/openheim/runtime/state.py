"""What a session goes on with from turn to turn, and what its log says of that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim.events import Notice
from openheim.store.meta import state_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openheim.agent.context import ContextFitter
    from openheim.agent.loop import TurnOutcome
    from openheim.events import Event
    from openheim.runtime.binding import ModelBinding
    from openheim.runtime.runtime import Runtime
    from openheim.runtime.transcript import Transcript
    from openheim.store import SessionMeta

__all__ = ("SessionState",)


class SessionState:
    """Metadata, model and window of one session.

    Args:
        fitter: remembers what requests leave out.
        logged: what the log says so far of mode, model, skills and directory, by the names of the metadata's fields.
        transcript: puts records in the log.
    """

    def __init__(
        self,
        runtime: Runtime,
        meta: SessionMeta,
        binding: ModelBinding,
        fitter: ContextFitter,
        *,
        logged: Mapping[str, Any],
        transcript: Transcript,
        publish: Callable[[Event], None],
    ) -> None:
        self.meta = meta
        self.binding = binding
        self.fitter = fitter
        self.logged = dict(logged)
        self.publish = publish
        self._runtime = runtime
        self._transcript = transcript

    def governed_mode(self, mode: str) -> str:
        """The mode asked for; where a managed policy sets another, that one, and a notice says so."""
        return self._runtime.governed_mode(mode, lambda text: self.publish(Notice("warning", text)))

    def bind(self, provider: str, model: str) -> None:
        """Uses another model from now on. Raises as :meth:`openheim.Runtime.new_session`."""
        self.use(self._runtime.bind(provider, model))

    def use(self, binding: ModelBinding) -> None:
        """Uses another model from now on."""
        self.binding = binding
        self.meta.provider, self.meta.model = binding.provider_name, binding.model

    def log(self, record: Mapping[str, Any]) -> None:
        """Puts a record of a change in the log."""
        self._transcript.store_record(record)
        self.logged |= state_in(record)

    def log_whole(self) -> None:
        """Puts all of it in the log, if that does not say so already."""
        meta = self.meta
        meta.model, meta.provider = self.binding.model, self.binding.provider_name
        state = {name: getattr(meta, name) for name in ("mode", "provider", "model", "cwd")}
        state["skills"] = list(meta.skills)
        if state != self.logged:
            self.log({"record": "session", "at": self._runtime.timestamp(), **state})

    def end_turn(self, outcome: TurnOutcome) -> None:
        """Puts the end of a turn in the log, and in the metadata what it changed there."""
        now = self._runtime.timestamp()
        record: dict[str, Any] = {"record": "turn_end", "at": now, "turn": self._transcript.turn}
        record |= {"stop_reason": outcome.stop_reason, "iterations": outcome.iterations}
        if outcome.error is not None:
            record["error"] = outcome.error.to_dict()
        self._transcript.store_record(record)
        self.meta.updated_at = now
        messages = reversed(self._transcript.messages)
        latest = next((message.usage for message in messages if message.role == "assistant"), None)
        if latest is not None:
            self.meta.context_usage = latest
        self.keep_context()

    def keep_context(self) -> None:
        """Puts what requests leave out in the metadata."""
        self.meta.extra["context"] = self.fitter.to_dict()
