"""What runs instead of a turn while a session's conversation is being summarised."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from openheim.agent.summarising import compact
from openheim.events import Notice

if TYPE_CHECKING:
    from collections.abc import Callable

    from openheim.agent.settings import LoopSettings
    from openheim.events import Delta, Event
    from openheim.runtime.transcript import Transcript

__all__ = ("Compacting",)


class Compacting:
    """Cancelled like a turn, and no reply of it is shown while it is being received."""

    pieces: tuple[Delta, ...] = ()

    def __init__(self, transcript: Transcript, publish: Callable[[Event], None]) -> None:
        self._transcript = transcript
        self._publish = publish
        self._scope = anyio.CancelScope()

    def cancel(self) -> None:
        self._scope.cancel()

    async def run(self, settings: LoopSettings) -> bool:
        """Whether the conversation was summarised. Raises as :meth:`openheim.Session.compact`."""
        result = None
        with self._scope:
            result = await compact(settings, self._transcript, publish=self._publish)
        return result is not None

    def tell_end(self) -> None:
        """Tells watchers if it was cancelled."""
        if self._scope.cancelled_caught:
            self._publish(Notice("info", "summarising the conversation was cancelled"))
