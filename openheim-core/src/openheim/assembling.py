"""Puts a model's reply together from the events of a stream: what the assemblers of all wires have in common."""

from __future__ import annotations

import json
import logging
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from openheim.errors import EmptyResponseError, IncompleteStreamError, ServerError
from openheim.provider_errors import classify_payload
from openheim.providers import ModelReply
from openheim.reply_parts import ReplyParts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openheim.errors import ProviderError
    from openheim.messages import Block, Finish, Usage
    from openheim.providers import EmitDelta, ProviderSettings
    from openheim.sse import SSEEvent

__all__ = ("MISSHAPEN", "EventAssembler")

_log = logging.getLogger(__name__)

#: Characters of events that are not shown, such as signatures and pings; what is shown is bounded by whoever shows it.
_MAX_SILENT = 64 * 1024 * 1024

#: Of an event that shows something, what is around it, and the most that JSON takes for one of its characters.
_ENVELOPE = 512
_ESCAPED = 6

#: What reading something of another shape than expected raises.
MISSHAPEN = (AttributeError, KeyError, TypeError, IndexError)


class EventAssembler(ABC):
    """Puts a reply together from the events of a stream: the base of each wire's own.

    A wire gives :meth:`take`, sets :attr:`finish` when the reason for the end has come and :attr:`done` when the end
    marker has, and may override the rest.

    Args:
        emit: told each piece.
        settings: the entry that was asked, for errors.

    Attributes:
        parts: what has come.
        done: whether the end marker has come.
        finish: how the reply ended, once that is known.
        usage: what the service has counted so far.
        model: the model that answers, as the service names it.
        opaque: see :class:`~openheim.providers.ModelReply`.
    """

    def __init__(self, emit: EmitDelta, settings: ProviderSettings | None = None) -> None:
        self.parts = ReplyParts(emit)
        self.done = False
        self.finish: Finish | None = None
        self.usage: Usage | None = None
        self.model: str | None = None
        self.opaque: Mapping[str, Any] | None = None
        self._settings = settings
        self._started = False
        self._skipped = False
        self._silent = 0

    # --- what a wire adds ---

    @abstractmethod
    def take(self, payload: dict[str, Any], event: str) -> None:
        """Takes one decoded event. What is not of the expected shape may raise as a wrong key or type does.

        Args:
            event: the event's name, or ``""``.
        """

    def take_document(self, payload: Any) -> bool:
        """Takes a whole reply that came as one document, not as a stream. False if it is none."""
        return False

    def normal_finish(self) -> Finish:
        """How the reply ended, in view of what came. Services say that calls ended it, and that they did not."""
        finish = self.finish or "end_turn"
        if finish in ("end_turn", "tool_use", "other"):
            return "tool_use" if self.parts.calls else ("end_turn" if finish == "tool_use" else finish)
        return finish

    # --- what is asked of it ---

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing: the end marker or the reason for the end has come."""
        return self.done or self.finish is not None

    @property
    def is_started(self) -> bool:
        """Whether anything was understood."""
        return self._started or self.done

    def feed(self, event: SSEEvent) -> None:
        """Takes one event.

        Raises:
            ProviderError: the event reports an error.
            ServerError: more has come than a reply can have that is not shown.
        """
        data = event.data
        parts = self.parts
        pieces, shown = parts.pieces, parts.size
        if data == "[DONE]":
            self.done = True
            return
        try:
            payload = json.loads(data)
        except (ValueError, RecursionError):
            if event.event == "error":  # Gateways put plain text there.
                raise self.failure(data) from None
            self._unreadable(data)
            return
        if event.event == "error":
            raise self.failure(payload, data)
        try:
            if payload.get("error"):
                raise self.failure(payload, data)
            self.take(payload, event.event)
            self._started = True
        except MISSHAPEN as err:
            # As often a fault of the plugin as of the service; the exception's own text may quote what was sent.
            if _log.isEnabledFor(logging.DEBUG):
                _log.debug("taking a part of the stream raised %s at %s", type(err).__name__, _place_of(err))
            self.skip("is not of the expected shape")
        if parts.pieces == pieces:
            silent = len(data)
        elif len(data) > _ENVELOPE:
            silent = len(data) - _ENVELOPE - _ESCAPED * (parts.size - shown)
        else:
            return
        if silent > 0:
            self._silent += silent
            if self._silent > _MAX_SILENT:
                raise ServerError(
                    f"the service sent more than {_MAX_SILENT // 2**20} MiB that are no part of the text of a reply",
                    hint="that is no answer of a model; check api_base",
                    retryable=False,
                )

    def failure(self, payload: Any, text: str = "") -> ProviderError:
        """The error that a decoded event reports; ``text`` is what it was decoded from."""
        return classify_payload(payload, body=text, settings=self._settings)

    def skip(self, why: str) -> None:
        """Notes that a part of the stream was left out."""
        # What was sent may hold a key that a proxy repeats, and there may be any number of such parts.
        if not self._skipped:
            self._skipped = True
            _log.warning("skipped a part of the stream, and skips all others like it: it %s", why)

    def partial(self) -> tuple[Block, ...]:
        """Text and thinking that have arrived."""
        return self.parts.partial()

    def reply(self) -> ModelReply:
        """The whole reply, once the stream has ended.

        Raises:
            IncompleteStreamError: it ended before its end.
            EmptyResponseError: there was nothing in it.
            MalformedToolCallError: it asks for a tool without saying which.
        """
        self.parts.end_prose()
        if self.finish is None and not self.parts and (self.done or not self._started):
            raise EmptyResponseError("the service ended its answer without saying anything")
        if not self.is_complete:
            raise IncompleteStreamError("the answer broke off before its end")
        finish = self.normal_finish()
        return ModelReply(self.parts.content(cut=finish == "max_tokens"), finish, self.usage, self.model, self.opaque)

    def _unreadable(self, data: str) -> None:
        stripped = data.strip()
        if stripped == "[DONE]":
            self.done = True
        elif stripped and not stripped.startswith(":"):  # A comment that was put into a data line keeps alive as well.
            self.skip("is not JSON")


def _place_of(err: BaseException) -> str:
    """``FILE:LINE`` of the innermost frame."""
    trace = err.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "nowhere" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
