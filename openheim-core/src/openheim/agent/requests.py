"""The model calls of one turn: each request made to fit the window, and put to another model if one cannot answer."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from openheim.agent.model import call_model
from openheim.agent.results import result_limit_bytes
from openheim.agent.structured import request_system
from openheim.errors import (
    AuthError,
    BillingError,
    ConflictError,
    ContextOverflowError,
    EmptyResponseError,
    IncompleteStreamError,
    MalformedToolCallError,
    ModelNotFoundError,
    OpenheimError,
    OverloadedError,
    ProviderConnectionError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitedError,
    ServerError,
)
from openheim.events import ContextTrimmed, ModelFallback, Notice
from openheim.pricing import was_refused
from openheim.providers import ModelRequest, takes_images

if TYPE_CHECKING:
    from collections.abc import Callable

    from openheim.agent.history import TurnHistory
    from openheim.agent.settings import LoopSettings
    from openheim.agent.window import Room
    from openheim.events import Event
    from openheim.messages import Usage
    from openheim.providers import EmitDelta, ModelReply

__all__ = ("FALLBACK_ERRORS", "OVERFLOW_RETRIES", "TurnRequests", "step_suffix", "taken_over")

#: How often a request that is refused as too long is sent again, shortened.
OVERFLOW_RETRIES = 2

#: Failures of a service or of what was set up for it, which another may not have. A request that is wrong or too long
#: is so elsewhere too, and what one service withholds is not asked of another.
FALLBACK_ERRORS = (
    AuthError,
    BillingError,
    ConflictError,
    EmptyResponseError,
    IncompleteStreamError,
    MalformedToolCallError,
    ModelNotFoundError,
    OverloadedError,
    ProviderConnectionError,
    ProviderTimeoutError,
    RateLimitedError,
    ServerError,
)


class TurnRequests:
    """Makes a turn's requests.

    Args:
        spend: told what calls cost that are no replies of the turn; None for one that was not counted.

    Attributes:
        settings: those in force: with the model that is asked now.
    """

    def __init__(
        self,
        settings: LoopSettings,
        history: TurnHistory,
        *,
        publish: Callable[[Event], None],
        spend: Callable[[Usage | None], None],
    ) -> None:
        self.settings = settings
        self._fallbacks = settings.fallbacks
        #: Who is asked in place of the session's own model, for the keys of steps.
        self._asked = ""
        self._history = history
        self._publish = publish
        self._spend = spend
        self._may_summarise = settings.context.strategy == "summarise"
        self._limit_results()

    async def call(self, iteration: int, emit: EmitDelta, shown: Callable[[], bool]) -> ModelReply:
        """Calls the model with the conversation as it is now, or the next one where it cannot answer.

        Args:
            shown: whether a piece of the reply has reached anybody.

        Raises:
            ContextOverflowError: the request is too long, and no measure helps.
            ProviderError: what the last attempt failed with.
        """
        while True:
            try:
                return await self._call(iteration, emit, shown)
            except FALLBACK_ERRORS as err:
                if shown() or not self._fallbacks:
                    raise
                self._fall_back(err)

    def _fall_back(self, err: ProviderError) -> None:
        """Goes on with the next model, until the turn ends."""
        if not was_refused(err):
            self._spend(err.usage)
        failed, self.settings, self._fallbacks = self.settings, self._fallbacks[0], self._fallbacks[1:]
        self._asked = step_suffix(self.settings)
        self._limit_results()
        self._publish(taken_over(failed, self.settings, err))

    def _limit_results(self) -> None:
        environment = self.settings.environment
        environment.result_limit_bytes = result_limit_bytes(self.settings.context.window)
        environment.takes_images = takes_images(self.settings.provider, self.settings.model)

    async def _call(self, iteration: int, emit: EmitDelta, shown: Callable[[], bool]) -> ModelReply:
        fitter = self.settings.fitter
        fitter.bind(self.settings)
        fitter.update(self._history.messages)
        room = fitter.exceeded()
        if room is not None:
            await self._make_room(room)
        refusals = 0
        while True:
            self._announce_trim()
            key = str(iteration) if not refusals else f"{iteration}.{refusals}"
            try:
                reply = await self._send(key + self._asked, emit, shown)
            except ContextOverflowError as err:
                if shown():
                    raise
                if refusals == OVERFLOW_RETRIES or not await self._make_room(fitter.rejected()):
                    fitter.gave_up()
                    raise _too_long(err) from err
                refusals += 1
            else:
                fitter.accepted(reply.usage)
                return reply

    async def _send(self, key: str, emit: EmitDelta, shown: Callable[[], bool]) -> ModelReply:
        settings = self.settings
        request = ModelRequest(
            model=settings.model,
            system=request_system(settings),
            messages=settings.fitter.request,
            tools=settings.offered,
            max_tokens=settings.max_tokens,
            thinking=settings.thinking,
            cache=settings.cache,
            session_id=settings.environment.session_id,
            response_schema=settings.response_schema,
            max_output_tokens=settings.context.max_output_tokens,
        )
        return await call_model(
            settings,
            request,
            step=("model", f"{self._history.turn}.{key}"),
            emit=emit,
            shown=shown,
            publish=self._publish,
            spend=self._spend,
        )

    async def _make_room(self, room: Room) -> bool:
        """Takes one measure after the other until the request fits. False if that changed nothing."""
        fitter = self.settings.fitter
        changed = fitter.shorten_old_results(room)
        if fitter.size > room.limit and self._may_summarise:
            changed = await self._summarise(room) or changed
        # What a summary would have kept is kept without one as well.
        leave_out_turns = partial(
            fitter.leave_out_turns, keep_first_request=self.settings.context.strategy == "summarise"
        )
        for measure in (leave_out_turns, fitter.shorten_latest_turn, fitter.leave_out_summary):
            if fitter.size > room.limit:
                changed = measure(room) or changed
        return changed

    async def _summarise(self, room: Room) -> bool:
        from openheim.agent.summarising import summarise

        try:
            result = await summarise(
                self.settings,
                self._history,
                publish=self._publish,
                spend=self._spend,
                room=room,
                asked=self._asked,
            )
        except OpenheimError as err:
            if self._fallbacks and isinstance(err, FALLBACK_ERRORS):
                raise  # A model that cannot write this cannot answer either: the next one does both.
            # Not in every round anew: that would cost a failing call each.
            self._may_summarise = False
            if isinstance(err, ProviderError) and not was_refused(err):
                self._spend(err.usage)
            text = f"the conversation could not be summarised, so its oldest turns are left out: {err.message}"
            self._publish(Notice("warning", text))
            return False
        if result is None:
            return False
        self._spend(result.usage)
        return True

    def _announce_trim(self) -> None:
        dropped = self.settings.fitter.newly_dropped()
        if dropped is not None:
            self._publish(ContextTrimmed(dropped))


def step_suffix(settings: LoopSettings) -> str:
    """What keys of steps end with that are made by another model than the session's own."""
    return f"@{settings.provider_name}/{settings.model}"


def taken_over(failed: LoopSettings, by: LoopSettings, err: ProviderError) -> ModelFallback:
    """Tells that one model goes on for another that failed."""
    return ModelFallback(by.provider_name, by.model, failed.provider_name, failed.model, str(err))


def _too_long(err: ContextOverflowError) -> ContextOverflowError:
    return ContextOverflowError(
        f"the conversation does not fit the model's context window any more: {err.message}",
        hint="start a new session or compact this one, or use a model with a larger window",
        status=err.status,
        partial=err.partial,
        usage=err.usage,
    )
