"""Where openheim keeps its files. ``OPENHEIM_HOME`` moves all of it; the default is ``~/.openheim``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from openheim.errors import ConfigError

__all__ = (
    "PROJECT_DIR",
    "absolute_path",
    "checked_path",
    "config_file",
    "expanded_path",
    "home_dir",
    "policy_files",
    "start_directory",
    "trust_file",
)

#: Name of the folder in which a project keeps settings and skills.
PROJECT_DIR = ".openheim"

#: The managed policy. Windows has none: any user may make a folder of this name there.
SYSTEM_POLICY = Path("/etc/openheim/policy.toml") if sys.platform != "win32" else None


def home_dir(start: Path | None = None) -> Path:
    """The folder that holds config, history, skills and memory. It may not exist yet.

    Args:
        start: what a relative ``OPENHEIM_HOME`` counts from; the current directory if left out.

    Raises:
        ConfigError: no home folder is known.
    """
    named = os.environ.get("OPENHEIM_HOME")
    if named:
        return absolute_path(Path(named), start or start_directory())
    try:
        return Path.home() / ".openheim"
    except RuntimeError as err:
        raise ConfigError(
            "no home folder is known, so there is no place for openheim's files",
            hint="set HOME, or OPENHEIM_HOME to a folder that can be written",
        ) from err


def config_file(named: str | None = None) -> Path:
    """The user's config file: the one named, or ``config.toml`` in :func:`home_dir`.

    Raises:
        ConfigError: as :func:`home_dir`.
    """
    return absolute_path(Path(named), start_directory()) if named else home_dir() / "config.toml"


def trust_file() -> Path:
    """Where it is kept which folders are trusted."""
    return home_dir() / "trust.json"


def policy_files() -> list[tuple[Path, bool]]:
    """The managed policies, the strongest last, each with whether it has to be there.

    ``OPENHEIM_POLICY_FILE`` names a further one. It does not stand in for the system's: whoever is bound by a policy
    sets their own variables.
    """
    named = os.environ.get("OPENHEIM_POLICY_FILE")
    files = [(absolute_path(Path(named), start_directory()), True)] if named else []
    if SYSTEM_POLICY is not None:
        files.append((SYSTEM_POLICY, False))
    return files


def start_directory() -> Path | None:
    """The current directory, or None where it does not exist any more."""
    try:
        return Path(os.getcwd())
    except OSError:
        return None


def absolute_path(path: Path, start: Path | None) -> Path:
    """``path``, counted from ``start`` if it is relative; links are left as they are.

    Raises:
        ConfigError: it is relative and ``start`` is None.
    """
    if path.is_absolute():
        return path
    if start is None:
        raise ConfigError("the current directory does not exist any more", hint="change to one that does")
    return start / path


def checked_path(named: str, where: str) -> Path:
    """``named`` as a path.

    Args:
        where: names the setting in errors.

    Raises:
        ConfigError: no path can be written like that.
    """
    if "\0" in named:
        raise ConfigError(f"{where} holds a character that no path can have", hint="correct that setting")
    return Path(named)


def expanded_path(named: str, where: str) -> Path:
    """As :func:`checked_path`, with ``~`` and ``~user`` put in full.

    Raises:
        ConfigError: also where there is no such user.
    """
    path = checked_path(named, where)
    try:
        return path.expanduser()
    except RuntimeError as err:
        raise ConfigError(
            f"{where}: no home folder is known for {path.parts[0]}", hint="write the path in full"
        ) from err
