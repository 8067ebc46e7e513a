"""A session's stream of events, and its watchers.

Events go to watchers by plain calls, in order; there is no queue between the model's socket and them. A queue begins
at the edge of a watcher that wants one (:class:`Subscription`), has a bound, and never slows the turn: deltas that
pile up are joined, and a watcher that still falls too far behind is dropped with a last event that says so.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

import anyio

from openheim.events import TextDelta, ThinkingDelta, ToolCallDelta, WatcherDropped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from openheim.events import Event

__all__ = ("EventStream", "Subscription")

_log = logging.getLogger(__name__)

_DELTAS = frozenset((TextDelta, ThinkingDelta, ToolCallDelta))

#: Events that a subscription holds before it is dropped.
DEFAULT_CAPACITY = 1024

#: Deltas are joined up to about this length.
JOINED_CHARACTERS = 4096

#: Calls that a model may write at a time, its pieces in turn, for each piece to be joined to the one before it.
JOINED_CALLS = 32


class EventStream:
    """Stamps events with sequence numbers and hands them to every watcher.

    Args:
        first_seq: the number before the first event's.
        observe: called for each event that is no delta.
    """

    def __init__(self, first_seq: int, observe: Callable[[Event], None] | None = None) -> None:
        self.seq = first_seq
        self._observe = observe
        self._sinks: tuple[Callable[[Event], None], ...] = ()

    def publish(self, event: Event) -> None:
        """Numbers the event and hands it on. A watcher that raises is taken off the stream."""
        self.seq += 1
        event.seq = self.seq
        for sink in self._sinks:
            try:
                sink(event)
            except Exception as err:
                _log.warning("a watcher failed and is dropped: %s: %s", type(err).__name__, err)
                self.detach(sink)
        if self._observe is not None and type(event) not in _DELTAS:
            self._observe(event)

    @property
    def is_watched(self) -> bool:
        """Whether there is any watcher."""
        return bool(self._sinks)

    def attach(self, sink: Callable[[Event], None]) -> None:
        """Adds a watcher: called on the event loop for every event from now on; it must not block."""
        self._sinks = (*self._sinks, sink)

    def detach(self, sink: Callable[[Event], None]) -> None:
        """Takes a watcher off; one that is not on the stream is left alone."""
        self._sinks = tuple(kept for kept in self._sinks if kept is not sink)

    def subscribe(self, capacity: int = DEFAULT_CAPACITY) -> Subscription:
        """A watcher with a queue: an async iterator over the events from now on."""
        return Subscription(self, capacity)

    def close(self) -> None:
        """Takes every watcher off; subscriptions end after what they hold."""
        sinks, self._sinks = self._sinks, ()
        for sink in sinks:
            owner = getattr(sink, "__self__", None)
            if isinstance(owner, Subscription):
                owner.close()


class Subscription:
    """Iterate over it for events; it ends when closed, or after :class:`~openheim.events.WatcherDropped`."""

    def __init__(self, stream: EventStream, capacity: int) -> None:
        self._stream = stream
        self._capacity = capacity
        self._held: deque[Event] = deque()
        self._waiting: anyio.Event | None = None
        self._closed = False
        # Bound once: detaching compares identities.
        self._sink = self._receive
        stream.attach(self._sink)

    def _receive(self, event: Event) -> None:
        held = self._held
        # The watcher has not taken the delta before this one yet, so it gets the two as one.
        joined = _joined(held, event) if type(event) in _DELTAS else None
        if joined is not None:
            held.append(joined)
        elif len(held) >= self._capacity:
            missed = len(held) + 1
            held.clear()
            held.append(WatcherDropped(missed, event.seq))
            self.close()
        else:
            held.append(event)
        if self._waiting is not None:
            self._waiting.set()
            self._waiting = None

    def close(self) -> None:
        """Stops watching; what is held can still be taken."""
        self._closed = True
        self._stream.detach(self._sink)
        if self._waiting is not None:
            self._waiting.set()
            self._waiting = None

    def pending(self) -> Sequence[Event]:
        """Takes what is held, without waiting."""
        taken = tuple(self._held)
        self._held.clear()
        return taken

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Event:
        while not self._held:
            if self._closed:
                raise StopAsyncIteration
            self._waiting = waiting = anyio.Event()
            await waiting.wait()
        return self._held.popleft()


def _joined(held: deque[Event], event: Event) -> Event | None:
    """Takes from the end of ``held`` the delta that ``event`` goes on from, if any, and returns the two as one.

    Text is joined to text that came right before it, a piece of a call to the last one of that call among pieces of
    calls. As the joined one comes last, sequence numbers keep growing.
    """
    if isinstance(event, ToolCallDelta):
        for back in range(1, min(len(held), JOINED_CALLS) + 1):
            earlier = held[-back]
            if not isinstance(earlier, ToolCallDelta):
                return None
            if earlier.index == event.index:
                if len(earlier.arguments) >= JOINED_CHARACTERS:
                    return None
                del held[-back]
                arguments = earlier.arguments + event.arguments
                return ToolCallDelta(event.index, event.name or earlier.name, arguments, event.seq)
        return None
    last = held[-1] if held else None
    if (
        isinstance(event, TextDelta | ThinkingDelta)
        and isinstance(last, TextDelta | ThinkingDelta)
        and type(last) is type(event)
        and len(last.text) < JOINED_CHARACTERS
    ):
        held.pop()
        return type(event)(last.text + event.text, event.seq)
    return None
