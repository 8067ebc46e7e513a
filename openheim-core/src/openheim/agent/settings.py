"""What a turn is run with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from openheim.agent.context import ContextFitter
from openheim.agent.window import ContextSettings
from openheim.retry import RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openheim.agent.steps import Steps
    from openheim.agent.toolbox import Toolbox
    from openheim.agent.turn import ToolEnvironment
    from openheim.pricing import Price
    from openheim.providers import Provider, ToolSpec

__all__ = ("LoopSettings",)


@dataclass(slots=True, frozen=True)
class LoopSettings:
    """What stays the same during a turn.

    Args:
        toolbox: the tools that a call may name.
        offered: those that the model is told of; the same tuple object while nothing changed.
        cache: the provider's place for bytes made from this session's messages.
        context: what is known of the model's window, and what to do when it is full.
        fitter: the session's; it remembers what was left out of requests, and what they were found to cost.
        response_schema: a JSON Schema that the turn's answer has to match, or None.
        price: what tokens cost, if that is known.
        fallbacks: the same with another model each, to go on with in this order when this one cannot answer.
    """

    provider: Provider
    provider_name: str
    model: str
    system: str
    toolbox: Toolbox
    offered: tuple[ToolSpec, ...]
    environment: ToolEnvironment
    steps: Steps
    max_iterations: int = 10
    max_tokens: int | None = None
    thinking: str | int | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    cache: dict[str, Any] = field(default_factory=dict)
    context: ContextSettings = field(default_factory=ContextSettings)
    fitter: ContextFitter = field(default_factory=ContextFitter)
    response_schema: Mapping[str, Any] | None = None
    price: Price | None = None
    fallbacks: tuple[LoopSettings, ...] = ()
