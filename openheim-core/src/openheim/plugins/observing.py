"""Observers of events: ``openheim_observe`` as plain callables, since it is called for every event."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    import pluggy

    from openheim.events import Event
    from openheim.plugins.registry import LoadedPlugin

__all__ = ("Observe", "Observer", "make_observer")


class Observe(Protocol):
    """Takes one event that is no delta. It may raise: who calls it isolates it."""

    def __call__(self, event: Event, session_id: str) -> object: ...


class Observer(NamedTuple):
    """One plugin's ``openheim_observe``. ``plugin`` names it for messages, with its distribution."""

    plugin: str
    call: Observe


def make_observer(loaded: LoadedPlugin, implementation: pluggy.HookImpl) -> Observer:
    """An observer that hands the implementation the arguments it takes, which may be fewer than the hook has."""
    function: Callable[..., object] = implementation.function
    accepted = tuple(implementation.argnames)

    def call(event: Event, session_id: str) -> object:
        given = {"event": event, "session_id": session_id}
        return function(**{name: given[name] for name in accepted})

    whole = accepted == ("event", "session_id")
    return Observer(f"{loaded.candidate.label} ({loaded.candidate.origin})", function if whole else call)
