"""One model call: tried again where that may help, with a provider's faults told from a service's failures."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from openheim._watching import watching_bodies
from openheim.agent.cancellation import slip_in_words, slipped
from openheim.agent.replies import reply_problem, with_usable_details
from openheim.errors import OpenheimError, ProviderError, ServerError, unwrapped
from openheim.events import PrefixChanged, RetryScheduled
from openheim.pricing import was_refused
from openheim.retry import with_retries

if TYPE_CHECKING:
    from collections.abc import Callable

    from openheim.agent.settings import LoopSettings
    from openheim.events import Event
    from openheim.messages import Usage
    from openheim.providers import EmitDelta, ModelReply, ModelRequest

__all__ = ("call_model",)

_log = logging.getLogger(__name__)

#: Where the last request's body is kept while debug messages are logged.
_LAST_BODY = "openheim-last-body"


async def call_model(
    settings: LoopSettings,
    request: ModelRequest,
    *,
    step: tuple[str, str],
    emit: EmitDelta,
    shown: Callable[[], bool],
    publish: Callable[[Event], None],
    spend: Callable[[Usage | None], None],
) -> ModelReply:
    """Makes a call.

    Args:
        step: name and key of the step that the call is.
        shown: whether a piece of the reply has reached anybody; then the call is not made again.
        publish: told of retries, and with debug messages on, of changes to what was sent before.
        spend: told what failed attempts cost; None for one that may have cost something and was not counted.

    Raises:
        ProviderError: what the last attempt failed with.
    """
    name, key = step

    def failed(attempt: int, delay: float, err: ProviderError) -> None:
        if not was_refused(err):
            spend(err.usage)
        publish(RetryScheduled(attempt, delay, str(err)))

    return await with_retries(
        lambda: settings.steps.run(name, key, lambda: _generate(settings, request, emit, publish), "safe"),
        shown=shown,
        on_retry=failed,
        policy=settings.retry,
        random=settings.steps.random,
    )


async def _generate(
    settings: LoopSettings, request: ModelRequest, emit: EmitDelta, publish: Callable[[Event], None]
) -> ModelReply:
    try:
        if _log.isEnabledFor(logging.DEBUG):
            with watching_bodies(partial(_tell_change, settings.provider_name, request.cache, publish)):
                reply = await settings.provider.generate(request, emit)
        else:
            reply = await settings.provider.generate(request, emit)
    except BaseException as err:
        if not slipped(err):
            raise
        inner = unwrapped(err) if isinstance(err, Exception) else err
        if isinstance(inner, ProviderError):
            with_usable_details(inner)
        if inner is err and isinstance(inner, OpenheimError):
            raise
        if isinstance(inner, OpenheimError):
            raise inner from err
        _log.debug("the provider failed", exc_info=err)
        raise _fault(settings, slip_in_words(inner)) from err
    if problem := reply_problem(reply):
        raise _fault(settings, f"failed: {problem}")
    return reply


def _tell_change(provider_name: str, kept: dict[str, Any], publish: Callable[[Event], None], body: bytes) -> None:
    """Says where a request differs from what was sent before, since from there on the service's cache is of no use."""
    from openheim._prefixes import changed_prefix

    before = kept.get(_LAST_BODY)
    kept[_LAST_BODY] = body
    if isinstance(before, bytes) and (change := changed_prefix(before, body)) is not None:
        # Not what stands there: that is the user's, and a log is read by others.
        _log.debug(
            "%s is asked with another prefix than before: byte %d of %d (%s) changed, so its cache ends there",
            provider_name,
            change.offset,
            len(before),
            change.path or "the body",
        )
        publish(PrefixChanged(provider_name, change.offset, len(before), change.path))


def _fault(settings: LoopSettings, what: str) -> ServerError:
    return ServerError(
        f"provider {settings.provider_name!r} {what}",
        hint="this is a fault in its plugin; --debug --log-level debug shows where",
        retryable=False,
    )
