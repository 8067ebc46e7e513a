"""What model calls cost, by the prices that the user has set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from openheim.errors import (
    AuthError,
    BillingError,
    ConflictError,
    ContextOverflowError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    RateLimitedError,
)

if TYPE_CHECKING:
    from openheim.errors import ProviderError
    from openheim.messages import Usage

__all__ = ("Price", "cost_of", "was_refused")

_MILLION = 1_000_000

#: What a service says, or a provider finds, before a model is set to work.
_REFUSALS = (
    AuthError,
    BillingError,
    ConflictError,
    ContextOverflowError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    RateLimitedError,
)


class Price(Protocol):
    """Cost per million tokens, in any currency; ``[providers.NAME.price]`` of the settings has this shape.

    None stands for a price that is not known.
    """

    input: float | None
    output: float | None
    cache_read: float | None
    cache_write: float | None


def cost_of(usage: Usage, price: Price | None) -> float | None:
    """What these tokens cost, in the currency of the price.

    Returns:
        None if the price of a kind of token among them is not known: a part would look like the whole.
    """
    if price is None:
        return None
    total = 0.0
    for tokens, one in (
        (usage.input_tokens, price.input),
        (usage.output_tokens, price.output),
        (usage.cache_read_tokens, price.cache_read),
        (usage.cache_creation_tokens, price.cache_write),
    ):
        if tokens:
            if one is None:
                return None
            total += tokens * one
    return total / _MILLION


def was_refused(err: ProviderError) -> bool:
    """Whether a call failed before anything can have been charged for it. Of any other, only its usage tells."""
    if err.usage is not None or err.partial:
        return False
    return err.unsent or (err.status is not None and err.status >= 300) or isinstance(err, _REFUSALS)
