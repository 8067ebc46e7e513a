"""Goes on with sessions: those of the history, and those that are live already."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from openheim.config.models import resolve_mode
from openheim.errors import ConfigError, PluginError, UsageError
from openheim.messages import GIVEN_PROVIDER
from openheim.permissions import parse_rule
from openheim.permissions.modes import known_mode

if TYPE_CHECKING:
    from openheim.runtime.arguments import SessionArguments
    from openheim.runtime.binding import ModelBinding
    from openheim.runtime.making import SessionMaker
    from openheim.runtime.runtime import Runtime
    from openheim.runtime.session import Session
    from openheim.store import SessionMeta

__all__ = ("from_history", "go_on_live")


def from_history(runtime: Runtime, maker: SessionMaker, session_id: str, asked: SessionArguments) -> Session:
    """A session as it is on disk. Raises as :meth:`openheim.Runtime.load_session` does."""
    runtime.store.prepare()
    stored = runtime.store.load(session_id)
    meta, warnings = stored.meta, list(stored.warnings)
    place = maker.place(asked.cwd if asked.cwd is not None else _stored_directory(meta, warnings), warnings)
    if asked.provider is None and asked.model is None:
        binding = _stored_binding(runtime, meta, warnings)
    else:
        binding = runtime.bind(asked.provider, asked.model)
    wanted = asked.mode if asked.mode is not None else resolve_mode(meta.mode) or "default"
    meta.mode = runtime.governed_mode(wanted, warnings.append)
    return maker.make(meta, place, binding, asked, warnings, stored)


def go_on_live(runtime: Runtime, live: Session, asked: SessionArguments) -> None:
    """Has a session that is live go on as asked for, of which only its mode can be changed.

    Raises:
        UsageError: something else is asked for that is not so there.
    """
    unmet = _unmet_place_and_model(runtime, live, asked) + live.options.unmet(
        gate=asked.gate,
        allow=[*map(parse_rule, asked.allow)],
        deny=[*map(parse_rule, asked.deny)],
        attended=asked.attended,
        max_iterations=asked.max_iterations,
    )
    if unmet:
        raise UsageError(
            f"the session is live here already, with another value for {', '.join(unmet)}",
            hint="change its model with set_model, or close it first",
        )
    if asked.mode is not None and known_mode(asked.mode) != live.meta.mode:
        live.set_mode(asked.mode)


def _unmet_place_and_model(runtime: Runtime, live: Session, asked: SessionArguments) -> list[str]:
    cwd, provider, model = asked.cwd, asked.provider, asked.model
    unmet = []
    if cwd is not None and runtime.directory_for(cwd) != live.files.cwd:
        unmet.append("cwd")
    if isinstance(provider, str):
        wanted = runtime.bind(provider, model)
        if (wanted.provider_name, wanted.model) != (live.binding.provider_name, live.binding.model):
            unmet.append("model" if wanted.provider_name == live.binding.provider_name else "provider")
    elif provider is not None and provider is not live.binding.provider:
        unmet.append("provider")
    elif model is not None and model != live.binding.model:
        unmet.append("model")
    return unmet


def _stored_directory(meta: SessionMeta, warnings: list[str]) -> str | None:
    if meta.cwd is not None and not Path(meta.cwd).is_dir():
        warnings.append(f"the session's directory {meta.cwd} is gone; it goes on in the current one")
        return None
    return meta.cwd


def _stored_binding(runtime: Runtime, meta: SessionMeta, warnings: list[str]) -> ModelBinding:
    if meta.provider is not None and meta.provider != GIVEN_PROVIDER:
        try:
            return runtime.bind(meta.provider, meta.model)
        except (ConfigError, PluginError) as err:
            warnings.append(f"the session's model cannot be used ({err.message}); the default one is")
    return runtime.bind(None, None)
