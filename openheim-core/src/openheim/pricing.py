"""What model calls cost, by the prices that the user has set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from openheim.messages import Usage

__all__ = ("Price", "cost_of")

_MILLION = 1_000_000


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
