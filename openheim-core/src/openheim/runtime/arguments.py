"""What a program asks of a session that it makes or loads."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from openheim._arguments import texts, whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from openheim.gates import Gate
    from openheim.providers import Provider

__all__ = ("SessionArguments",)


class SessionArguments(NamedTuple):
    """Arguments of :meth:`openheim.Runtime.new_session` and :meth:`~openheim.Runtime.load_session`."""

    cwd: Path | str | None
    provider: str | Provider | None
    model: str | None
    mode: str | None
    gate: str | Gate | None
    allow: Sequence[str]
    deny: Sequence[str]
    attended: bool
    max_iterations: int | None

    def checked(self) -> SessionArguments:
        """The same, once lists and numbers are what they should be.

        Raises:
            TypeError: one is of another type, such as a text where a list is expected.
            UsageError: ``max_iterations`` is less than 1.
        """
        if self.max_iterations is not None:
            whole_number("max_iterations", self.max_iterations, least=1)
        return self._replace(allow=texts("allow", self.allow), deny=texts("deny", self.deny))
