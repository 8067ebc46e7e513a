"""How much a model is to think, in the form that it takes, and the cap on the reply that has room for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from openheim import InvalidRequestError

if TYPE_CHECKING:
    from openheim_provider_anthropic.models import ModelTraits

__all__ = ("DEFAULT_MAX_TOKENS", "Thinking", "parse_thinking", "thinking_fields")

DEFAULT_MAX_TOKENS = 16_000

#: The service takes no smaller budget.
_LEAST_BUDGET = 1024

_OFF = frozenset(("off", "none", "disabled"))
_ADAPTIVE = frozenset(("adaptive", "auto", "on"))
_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"}

#: For models that think within a budget only.
_BUDGET_OF_EFFORT = {"low": 4096, "medium": 8192, "high": 16_384, "xhigh": 24_576, "max": 31_999}


class Thinking(NamedTuple):
    """What a user asked for. At most one is set; none means adaptive where that is known to be taken, else as it is."""

    off: bool = False
    adaptive: bool = False
    budget: int = 0
    effort: str = ""


def parse_thinking(value: str | int | None) -> Thinking:
    """Reads the ``thinking`` of an entry or a request.

    Raises:
        ValueError: it is nothing that this wire knows.
    """
    if value is None:
        return Thinking()
    word = str(value).strip().lower()
    if word in _OFF:
        return Thinking(off=True)
    if word in _ADAPTIVE:
        return Thinking(adaptive=True)
    if word in _EFFORTS:
        return Thinking(effort=_EFFORTS[word])
    if word.isascii() and word.isdigit() and len(word) < 10:
        return Thinking(budget=max(int(word), _LEAST_BUDGET)) if int(word) else Thinking(off=True)
    known = ", ".join(("off", "adaptive", *_EFFORTS))
    raise ValueError(f"thinking is {value!r}, and has to be one of {known}, or a number of tokens")


def thinking_fields(
    thinking: Thinking, traits: ModelTraits, max_tokens: int | None, *, lacks_thinking: bool = False
) -> dict[str, Any]:
    """The fields of a request that concern thinking: ``max_tokens``, and ``thinking`` and ``output_config`` if needed.

    Args:
        max_tokens: the cap that was asked for, or None.
        lacks_thinking: whether the turn that goes on has no thinking to begin with, so that a model must not think
            within a budget until the next one.

    Raises:
        InvalidRequestError: the budget leaves no room for a reply.
    """
    most = traits.max_output
    cap = DEFAULT_MAX_TOKENS if max_tokens is None else max_tokens
    if most is not None:
        cap = min(cap, most)
    effort = thinking.effort
    if thinking.off:
        if traits.off is not None:
            return {"max_tokens": cap, "thinking": {"type": traits.off}}
        # A model that always thinks can at least be told to do it shortly.
        return {"max_tokens": cap} | ({"output_config": {"effort": "low"}} if traits.effort else {})
    budget = thinking.budget
    unasked = thinking == Thinking()
    if traits.adaptive and not (budget and traits.budget) and (traits.known or not unasked):
        if budget and traits.effort:
            effort = "low" if budget <= 4096 else "medium" if budget <= 16_384 else "high"
        fields: dict[str, Any] = {"max_tokens": cap, "thinking": {"type": "adaptive"}}
        if traits.hides_thinking:
            fields["thinking"]["display"] = "summarized"
    elif not traits.budget or unasked:
        fields = {"max_tokens": cap}
    else:
        fields = _within(budget or _BUDGET_OF_EFFORT[effort or "medium"], traits, max_tokens, firm=budget > 0)
        if lacks_thinking and "thinking" in fields:
            fields["thinking"] = {"type": "adaptive" if traits.adaptive else "disabled"}
    if effort and traits.effort:
        fields["output_config"] = {"effort": effort}
    return fields


def _within(budget: int, traits: ModelTraits, max_tokens: int | None, *, firm: bool) -> dict[str, Any]:
    """Fields for thinking within a budget, which counts towards the cap on the reply.

    Args:
        firm: whether the user named the budget. Another one is made smaller where the cap leaves no room.
    """
    cap = budget + DEFAULT_MAX_TOKENS if max_tokens is None else max_tokens
    if traits.max_output is not None:
        cap = min(cap, traits.max_output)
    if not firm:
        budget = min(budget, cap // 2)
        if budget < _LEAST_BUDGET:
            return {"max_tokens": cap}
    if budget >= cap:
        raise InvalidRequestError(
            f"thinking may take {budget} tokens, and the whole reply only {cap}",
            hint="make thinking smaller, or max_tokens larger" if max_tokens is not None else "make thinking smaller",
        )
    return {"max_tokens": cap, "thinking": {"type": "enabled", "budget_tokens": budget}}
