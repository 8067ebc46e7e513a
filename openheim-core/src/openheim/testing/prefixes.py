"""Whether requests repeat what was sent before them to the byte, which is what prompt caches of services go by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openheim._prefixes import MARKERS, PrefixChange, changed_prefix

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

__all__ = ("PrefixChange", "PrefixGuard")


class PrefixGuard:
    """Takes the bodies of one session's requests, in order, and says what changed that was sent before::

        guard = PrefixGuard(request.content for request in http.requests)
        guard.check()

    System text, tools and parameters have to stay what they are, and so has every message; more may follow, also
    in the last message.

    Args:
        bodies: bodies to begin with.
        markers: fields that may be anywhere, come and go, since they mark a place and are no part of the prompt.
        changing: fields of the body itself that may differ from request to request.

    Attributes:
        changes: number of the request (from 0) with what changed in it.
        count: requests so far.
    """

    def __init__(
        self, bodies: Iterable[bytes] = (), *, markers: Sequence[str] = MARKERS, changing: Collection[str] = ()
    ) -> None:
        self.changes: list[tuple[int, PrefixChange]] = []
        self.count = 0
        self._markers = tuple(markers)
        self._changing = frozenset(changing)
        self._last: bytes | None = None
        for body in bodies:
            self.add(body)

    def add(self, body: bytes) -> PrefixChange | None:
        """Takes the next body, and returns what it changed."""
        change = None
        if self._last is not None:
            change = changed_prefix(self._last, body, markers=self._markers, changing=self._changing)
            if change is not None:
                self.changes.append((self.count, change))
        self._last = bytes(body)
        self.count += 1
        return change

    def check(self, *, at_least: int = 2) -> None:
        """Fails if a request changed what was sent before it.

        Args:
            at_least: requests that there have to be, so that nothing is taken for everything.

        Raises:
            AssertionError: with the first change, and how many there are.
        """
        assert self.count >= at_least, f"the guard has seen {self.count} requests, not {at_least}: it says nothing"
        if self.changes:
            number, change = self.changes[0]
            more = f" ({len(self.changes)} requests changed something)" if len(self.changes) > 1 else ""
            raise AssertionError(f"request {number} changed what was sent before it: {change}{more}")
