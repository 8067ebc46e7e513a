"""``openheim models``: the models that the settings allow, and those that the services say they have."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openheim.cli.failures import warn
from openheim.cli.lean import LeanCommand
from openheim.cli.starting import make_host, read_settings
from openheim.cli.tables import print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openheim.config.load import LoadedConfig
    from openheim.config.models import Config
    from openheim.plugins.host import PluginHost

__all__ = ("app",)

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=LeanCommand)
def models(
    refresh: Annotated[bool, typer.Option("--refresh", help="Ask each service for its models first.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """List providers and the models that the settings allow for each.

    With --refresh each service is asked which models it has and how large they are. What it says is kept, listed
    from then on, and used where the settings give no context_window.
    """
    from openheim.config.selection import default_provider
    from openheim.errors import OpenheimError

    loaded = read_settings()
    config, host = loaded.config, make_host(loaded)
    try:
        default, _notice = default_provider(config, os.environ, lambda: host.names("providers"))
    except OpenheimError as err:
        warn(str(err))
        default = ""
    names = sorted({*config.providers, default} - {""})
    providers = {name: _entry(config, name) for name in names}
    defaults = _plugin_defaults(loaded, host, [name for name, entry in providers.items() if not entry["default_model"]])
    for name, model in defaults.items():
        providers[name]["default_model"] = model
    refreshed = not refresh or _refresh(loaded, host, names)
    for name in names:
        providers[name] |= _listed(loaded, name)
    if as_json:
        print_json({"default_provider": default or None, "providers": providers})
    else:
        _print(providers, default)
    return 0 if refreshed else 1


def _print(providers: Mapping[str, Any], default: str) -> None:
    print_table(
        ("PROVIDER", "DEFAULT MODEL", "MODELS"),
        [
            (
                f"{name}{' (default)' if name == default else ''}",
                entry["default_model"] or "none",
                ", ".join(entry["models"]) or "any",
            )
            for name, entry in providers.items()
        ],
    )
    listed = [(name, model) for name, entry in providers.items() for model in entry.get("listed", ())]
    if listed:
        print()
        rows = [
            (name, model["id"], _shown(model["context_window"]), _shown(model["max_output_tokens"]))
            for name, model in listed
        ]
        print_table(("PROVIDER", "LISTED MODEL", "CONTEXT WINDOW", "MAX OUTPUT"), rows)


def _shown(tokens: int | None) -> str:
    return f"{tokens:,}" if tokens is not None else "unknown"


def _refresh(loaded: LoadedConfig, host: PluginHost, names: Sequence[str]) -> bool:
    from openheim.cli.refreshing import refresh_models
    from openheim.runtime import Runtime

    return refresh_models(Runtime(loaded, host), names)


def _listed(loaded: LoadedConfig, name: str) -> dict[str, Any]:
    """What the service said when it was last asked, of models that the settings allow; nothing if it never was."""
    from openheim.config.rules import kind_of
    from openheim.runtime.model_lists import ListSource, read_models

    entry = loaded.config.providers.get(name)
    address = (entry.api_base or "").rstrip("/") if entry is not None else ""
    kept = read_models(loaded.data_dir, ListSource(name, kind_of(name, entry), address))
    if kept is None:
        return {}
    allowed = entry.models if entry is not None else ()
    rows = [
        {"id": info.id, "context_window": info.context_window, "max_output_tokens": info.max_output_tokens}
        for info in kept.models.values()
        if not allowed or info.id in allowed
    ]
    return {"refreshed_at": kept.refreshed_at, "listed": rows}


def _entry(config: Config, name: str) -> dict[str, Any]:
    entry = config.providers.get(name)
    models = list(entry.models) if entry is not None else []
    default = entry.default_model if entry is not None else None
    return {"default_model": default or (models[0] if models else ""), "models": models}


def _plugin_defaults(loaded: LoadedConfig, host: PluginHost, names: list[str]) -> dict[str, str]:
    """Default models that only the plugin knows; a plugin that cannot be used is a warning."""
    if not names:
        return {}
    from openheim.errors import OpenheimError
    from openheim.runtime import Runtime

    runtime = Runtime(loaded, host)
    found = {}
    for name in names:
        try:
            found[name] = runtime.provider(name)[0].default_model
        except OpenheimError as err:
            warn(f"provider {name!r}: {err}")
    return found
