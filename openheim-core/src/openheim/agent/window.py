"""How much of a model's context window a request may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ("ContextSettings", "Room", "Strategy")

#: What happens to old turns when the window is full: they are left out, or replaced by a summary.
Strategy: TypeAlias = Literal["trim", "summarise"]

#: Share of the window that is planned with. The rest is for estimates that are wrong.
WINDOW_SHARE = 0.9

#: Room for the reply where nothing says how long it may be: a tenth of the window, but not more than this.
DEFAULT_RESERVE_TOKENS = 8192


@dataclass(slots=True, frozen=True)
class ContextSettings:
    """What is known of the window, and how requests are kept within it.

    Args:
        window: tokens that the model can take, or None if that is not known.
        reserve_tokens: room that is kept for the reply; None to derive it from the cap on replies.
        max_output_tokens: what the model can write at most, if that is known.
    """

    window: int | None = None
    strategy: Strategy = "trim"
    reserve_tokens: int | None = None
    max_output_tokens: int | None = None

    def request_tokens(self, max_tokens: int | None) -> float | None:
        """Tokens that a request may have, or None if there is no window to go by.

        Args:
            max_tokens: the cap on replies, or None.
        """
        if self.window is None:
            return None
        reserve = self.reserve_tokens if self.reserve_tokens is not None else max_tokens
        if reserve is None:
            reserve = min(self.window // 10, self.max_output_tokens or DEFAULT_RESERVE_TOKENS, DEFAULT_RESERVE_TOKENS)
        return self.window * WINDOW_SHARE - min(reserve, self.window // 2)


@dataclass(slots=True, frozen=True)
class Room:
    """What a request may have, in bytes: at most ``limit``, and ``aim`` once something has to be done about it."""

    limit: int
    aim: int
