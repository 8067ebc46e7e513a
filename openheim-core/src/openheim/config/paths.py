"""Where openheim keeps its files. ``OPENHEIM_HOME`` moves all of it; the default is ``~/.openheim``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from openheim.errors import ConfigError

__all__ = ("PROJECT_DIR", "config_file", "home_dir", "policy_files", "trust_file")

#: Name of the folder in which a project keeps settings and skills.
PROJECT_DIR = ".openheim"

#: The managed policy. Windows has none: any user may make a folder of this name there.
SYSTEM_POLICY = Path("/etc/openheim/policy.toml") if sys.platform != "win32" else None


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


def trust_file() -> Path:
    """Where it is kept which folders are trusted."""
    return home_dir() / "trust.json"


def policy_files() -> list[tuple[Path, bool]]:
    """The managed policies, the strongest last, each with whether it has to be there.

    ``OPENHEIM_POLICY_FILE`` names a further one. It does not stand in for the system's: whoever is bound by a policy
    sets their own variables.
    """
    named = os.environ.get("OPENHEIM_POLICY_FILE")
    files = [(Path(named).absolute(), True)] if named else []
    if SYSTEM_POLICY is not None:
        files.append((SYSTEM_POLICY, False))
    return files
