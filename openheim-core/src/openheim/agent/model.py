"""One model call: tried again where that may help, with a provider's faults told from a service's failures."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from openheim.errors import OpenheimError, ServerError
from openheim.events import RetryScheduled
from openheim.retry import with_retries

if TYPE_CHECKING:
    from collections.abc import Callable

    from openheim.agent.loop import LoopSettings
    from openheim.events import Event
    from openheim.providers import EmitDelta, ModelReply, ModelRequest

__all__ = ("call_model",)

_log = logging.getLogger(__name__)


async def call_model(
    settings: LoopSettings,
    request: ModelRequest,
    *,
    step: tuple[str, str],
    emit: EmitDelta,
    shown: Callable[[], bool],
    publish: Callable[[Event], None],
) -> ModelReply:
    """Makes a call.

    Args:
        step: name and key of the step that the call is.
        shown: whether a piece of the reply has reached anybody; then the call is not made again.
        publish: told of retries.

    Raises:
        ProviderError: what the last attempt failed with.
    """
    name, key = step
    return await with_retries(
        lambda: settings.steps.run(name, key, lambda: _generate(settings, request, emit), "safe"),
        shown=shown,
        on_retry=lambda attempt, delay, err: publish(RetryScheduled(attempt, delay, str(err))),
        policy=settings.retry,
        random=settings.steps.random,
    )


async def _generate(settings: LoopSettings, request: ModelRequest, emit: EmitDelta) -> ModelReply:
    try:
        return await settings.provider.generate(request, emit)
    except OpenheimError:
        raise
    except Exception as err:
        _log.debug("the provider failed", exc_info=err)
        raise ServerError(
            f"provider {settings.provider_name!r} failed: {type(err).__name__}: {err}",
            hint="this is a fault in its plugin; --debug --log-level debug shows where",
            retryable=False,
        ) from err
