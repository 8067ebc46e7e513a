"""``openheim models``: the models that the settings allow."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openheim.cli.failures import warn
from openheim.cli.lean import LeanCommand
from openheim.cli.starting import make_host, read_settings
from openheim.cli.tables import print_json, print_table

if TYPE_CHECKING:
    from openheim.config.load import LoadedConfig
    from openheim.config.models import Config
    from openheim.plugins.host import PluginHost

__all__ = ("app",)

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=LeanCommand)
def models(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List providers and the models that the settings allow for each."""
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
    if as_json:
        print_json({"default_provider": default or None, "providers": providers})
        return
    rows = [
        (
            f"{name}{' (default)' if name == default else ''}",
            entry["default_model"],
            ", ".join(entry["models"]) or "any",
        )
        for name, entry in providers.items()
    ]
    print_table(("PROVIDER", "DEFAULT MODEL", "MODELS"), rows)


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
            found[name] = runtime.bind(name, None).model
        except OpenheimError as err:
            warn(f"provider {name!r}: {err}")
    return found
