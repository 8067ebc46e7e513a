"""``openheim init``: a config file and an identity to start from."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from openheim.cli import options
from openheim.cli.lean import LeanCommand
from openheim.cli.starting import make_host, read_settings
from openheim.config.paths import config_file
from openheim.config.selection import KEY_VARIABLES, key_advice
from openheim.config.template import PROVIDER_CHOICES, config_template
from openheim.errors import ConfigError, StorageError
from openheim.plugins.first_party import distribution_of
from openheim.store.writing import create_whole

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("app",)

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=LeanCommand)
def init(
    provider: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"Provider to start with: {', '.join(PROVIDER_CHOICES)}.")
    ] = None,
) -> None:
    """Write a commented config.toml and a system.md; files that exist are left alone."""
    if provider is not None and provider not in PROVIDER_CHOICES:
        raise ConfigError(f"unknown provider {provider!r}", hint=f"choose one of {', '.join(PROVIDER_CHOICES)}")
    from openheim.prompt import DEFAULT_IDENTITY

    config = config_file(options.current().config)
    _write_new(config, config_template(provider))
    # Where sessions will look for it: the file that is there now, or the environment, may name another folder.
    loaded = read_settings()
    _write_new(loaded.data_dir / "system.md", DEFAULT_IDENTITY)
    if provider:
        kind, _model, variable = PROVIDER_CHOICES[provider]
        kinds = {kind: variable} if variable else {}
    else:
        kind, kinds = "", KEY_VARIABLES
    installed = make_host(loaded).names("providers")
    if kind and kind not in installed:
        print(f"next: pip install {distribution_of('providers', kind)}")
    elif kinds and not any(kind in installed and os.environ.get(variable) for kind, variable in kinds.items()):
        advice = key_advice([kind for kind in kinds if kind in installed])
        print(f"next: {advice}, or edit the config; openheim doctor says what is missing")
    else:
        print('next: openheim run "what is in this directory?"')


def _write_new(path: Path, text: str) -> None:
    """Writes a file whole, unless there is one, whoever made it a moment ago."""
    hint = "name a folder that can be written and has space: OPENHEIM_HOME, or data_dir in the config"
    try:
        if os.path.lexists(path):
            raise FileExistsError
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        create_whole(path, text.encode())
    except FileExistsError:
        print(f"kept {path} as it is")
        return
    except StorageError as err:
        raise StorageError(err.message, hint=hint) from err
    except OSError as err:
        raise StorageError(f"cannot write {path}: {err.strerror}", hint=hint) from err
    print(f"wrote {path}")
