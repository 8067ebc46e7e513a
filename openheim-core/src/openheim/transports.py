"""What a transport implements: a surface through which a client drives the runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from openheim.runtime import Runtime

__all__ = ("Transport",)


class Transport(Protocol):
    """``command`` is a typer function: its signature is the subcommand's command line.

    Its docstring is the help. It returns the options that :meth:`serve` is given.
    """

    command: Callable[..., Any]

    async def serve(self, runtime: Runtime, options: Any) -> None:
        """Serves until cancelled or until the other side is gone."""
        ...
