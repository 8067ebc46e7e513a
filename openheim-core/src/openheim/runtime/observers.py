"""Plugins that watch every session; one that fails is not called again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openheim.errors import described

if TYPE_CHECKING:
    from collections.abc import Callable

    from openheim.events import Event
    from openheim.plugins.host import PluginHost

__all__ = ("Observers",)


class Observers:
    """Those of the installed plugins, looked for when the first session asks.

    Args:
        report: told of one that failed.
    """

    def __init__(self, host: PluginHost, report: Callable[[str], None]) -> None:
        self._host = host
        self._report = report
        self._found: list[tuple[str, Callable[..., object]]] | None = None

    def of(self, session_id: str) -> Callable[[Event], None] | None:
        """What a session's stream calls, or None where nobody observes."""
        if self._found is None:
            self._found = list(self._host.observers())
        return (lambda event: self._tell(event, session_id)) if self._found else None

    def _tell(self, event: Event, session_id: str) -> None:
        for observer in list(self._found or ()):
            name, call = observer
            try:
                call(event=event, session_id=session_id)
            except (Exception, SystemExit) as err:
                self._report(f"plugin {name} failed to observe and is not called again: {described(err)}")
                if self._found is not None and observer in self._found:
                    self._found.remove(observer)
