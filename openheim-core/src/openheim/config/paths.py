"""Where openheim keeps its files. ``OPENHEIM_HOME`` moves all of it; the default is ``~/.openheim``."""

from __future__ import annotations

import os
from pathlib import Path

from openheim.errors import ConfigError

__all__ = ("config_file", "home_dir")


def home_dir() -> Path:
    """The folder that holds config, history, skills and memory. It may not exist yet.

    Raises:
        ConfigError: no home folder is known.
    """
    named = os.environ.get("OPENHEIM_HOME")
    if named:
        return Path(named).absolute()
    try:
        return Path.home() / ".openheim"
    except RuntimeError as err:
        raise ConfigError(
            "no home folder is known, so there is no place for openheim's files",
            hint="set HOME, or OPENHEIM_HOME to a folder that can be written",
        ) from err


def config_file(named: str | None = None) -> Path:
    """The user's config file: the one named, or ``config.toml`` in :func:`home_dir`."""
    return Path(named).absolute() if named else home_dir() / "config.toml"
