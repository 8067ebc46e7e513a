"""What another process has done to a session, taken over from the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim.agent.context import ContextFitter
from openheim.config.models import resolve_mode
from openheim.errors import ConfigError, PluginError
from openheim.events import Notice
from openheim.messages import GIVEN_PROVIDER
from openheim.store.meta import state_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from openheim.runtime.state import SessionState

__all__ = ("take_over",)


def take_over(records: Iterable[Mapping[str, Any]], state: SessionState) -> None:
    """Goes on with what records say that others have put in the log since."""
    meta = state.meta
    for record in records:
        _take_mode_and_model(state_in(record), state)
        match record:
            case {"record": "title", "title": str(title)}:
                meta.title = title
            case {"record": "archived"}:
                meta.archived = True
            case {"record": "approval", "key": str(key), "decision": "allow" | "deny" as decision}:
                meta.extra.setdefault("decisions", {})[key] = decision
            case {"record": "compaction"}:
                state.fitter = ContextFitter(state.fitter.to_dict(), [record])


def _take_mode_and_model(found: Mapping[str, Any], state: SessionState) -> None:
    state.logged |= found
    mode = resolve_mode(found.get("mode", ""))
    if mode is not None:
        state.meta.mode = state.governed_mode(mode)
    provider, model = found.get("provider"), found.get("model")
    used = state.binding.provider_name, state.binding.model
    if provider is None or model is None or GIVEN_PROVIDER in (used[0], provider) or (provider, model) == used:
        # What this program gave as an object no other process can know better.
        return
    try:
        state.bind(provider, model)
    except (ConfigError, PluginError) as err:
        text = f"the session was given the model {model} elsewhere, which cannot be used here: {err}"
        state.publish(Notice("warning", text))
