"""What a session's next turn is run with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from openheim.agent.settings import LoopSettings

if TYPE_CHECKING:
    from openheim.runtime.binding import ModelBinding
    from openheim.runtime.runtime import Runtime

__all__ = ("turn_settings",)


def turn_settings(runtime: Runtime, binding: ModelBinding, **of_session: Any) -> LoopSettings:
    """Settings for the loop, with those of fallbacks.

    Args:
        of_session: the fields of :class:`~openheim.agent.settings.LoopSettings` that neither the model nor the runtime
            settles.
    """
    settings = LoopSettings(steps=runtime.steps, retry=runtime.retry, **_of_model(runtime, binding), **of_session)
    if not binding.fallbacks:
        return settings
    return replace(
        settings, fallbacks=tuple(replace(settings, **_of_model(runtime, other)) for other in binding.fallbacks)
    )


def _of_model(runtime: Runtime, binding: ModelBinding) -> dict[str, Any]:
    return {
        "provider": binding.provider,
        "provider_name": binding.provider_name,
        "model": binding.model,
        "max_tokens": binding.max_tokens,
        "thinking": binding.thinking,
        "cache": binding.cache,
        "context": runtime.context_settings(binding),
        "price": binding.price,
    }
