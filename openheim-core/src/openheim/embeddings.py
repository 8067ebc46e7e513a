"""What an embedder implements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("Embedder",)


class Embedder(Protocol):
    """Turns texts into vectors. ``dimension`` is None until the first call has told it."""

    @property
    def dimension(self) -> int | None: ...

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector per text, in order; no texts have none, and nothing is asked for them.

        A text that is empty or holds nothing but white space has no meaning to measure, and services disagree about
        it: it is refused before anything is sent.

        Raises:
            InvalidRequestError: a text is blank; the message names its index.
            ProviderError: the service did not answer, or answered with vectors of another number or size.
        """
        ...
