"""A project's own settings: where they are, and what they may not set.

A project is the nearest folder with a ``.openheim`` in it, from the working directory up to the repository's root. What
it brings takes effect once the folder is trusted. Trust is about what openheim does in that folder; it is no licence
to say where the user's keys are sent or which programs of the user's run with them. So some settings are the user's
alone, in a trusted folder as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openheim.config.layers import lookup, settings_in
from openheim.config.masking import is_secret_name
from openheim.config.paths import PROJECT_DIR, home_dir
from openheim.config.rules import is_kind

__all__ = ("Project", "Refused", "find_project", "may_set", "repository_root", "settings_folder")

#: Folders that are looked at on the way up.
_MAX_LEVELS = 256

#: Sections that are the user's alone, and why.
_USERS_ONLY = {
    "data_dir": "where history is kept is the user's choice",
    "plugins": "which plugins run is the user's choice",
    "http": "how providers are reached is the user's choice",
    "transports": "what is served to others is the user's choice",
}

#: Keys of toolsets that are the user's alone, and why: trust lets a project run commands, and not take bars away.
_USERS_TOOL_KEYS = {
    ("shell", "env_allow"): "which of the user's secrets commands see is the user's choice",
    ("shell", "sandbox"): "what confines commands is the user's choice",
    ("shell", "network"): "what commands can reach is the user's choice",
    ("shell", "writable"): "what commands can write to is the user's choice",
    ("shell", "hidden"): "what commands cannot read is the user's choice",
    ("web", "allow_private"): "which private addresses are reached is the user's choice",
    ("web", "proxy"): "through whom pages are fetched is the user's choice",
}

#: What a project may say of a provider that the user has.
_PROVIDER_KEYS = frozenset(
    ("default_model", "models", "timeout_secs", "max_tokens", "context_window", "thinking", "fallback", "price")
)


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with settings of its own.

    Args:
        folder: the folder that holds ``.openheim``, without links.
        trusted: whether what it brings takes effect; None if nobody has decided, which counts as no.
    """

    folder: Path
    trusted: bool | None = None

    @property
    def config(self) -> Path:
        """Settings for everyone who works on the project."""
        return self.folder / PROJECT_DIR / "config.toml"

    @property
    def local_config(self) -> Path:
        """Settings for this checkout only."""
        return self.folder / PROJECT_DIR / "config.local.toml"

    @property
    def skills(self) -> Path:
        return self.folder / PROJECT_DIR / "skills"

    def brings(self) -> list[Path]:
        """What there is that would take effect, files and folders."""
        return [path for path in (self.config, self.local_config, self.skills) if os.path.exists(path)]


@dataclass(frozen=True, slots=True)
class Refused:
    """A setting that a project may not make, and why."""

    path: tuple[str, ...]
    reason: str


def find_project(cwd: Path) -> Path | None:
    """The folder of the project that ``cwd`` belongs to, without links; None if it belongs to none.

    The user's own folder (``OPENHEIM_HOME``) is no project's.
    """
    own = os.path.realpath(home_dir())
    for folder in _upwards(cwd):
        settings = folder / PROJECT_DIR
        if os.path.isdir(settings) and os.path.realpath(settings) != own:
            return folder
    return None


def repository_root(cwd: Path) -> Path | None:
    """The root of the repository that ``cwd`` is in, without links; None if it is in none."""
    for folder in _ancestors(cwd):
        if os.path.exists(folder / ".git"):
            return folder
    return None


def settings_folder(cwd: Path) -> Path:
    """Where settings for the project of ``cwd`` belong: its folder, else the repository's root, else ``cwd``."""
    return find_project(cwd) or repository_root(cwd) or cwd.resolve()


def _upwards(cwd: Path) -> Iterator[Path]:
    """From ``cwd`` up to the repository's root; ``cwd`` alone outside of a repository."""
    root = repository_root(cwd)
    for folder in _ancestors(cwd):
        yield folder
        if root is None or folder == root:
            return


def _ancestors(cwd: Path) -> list[Path]:
    real = Path(os.path.realpath(cwd))
    return [real, *real.parents][:_MAX_LEVELS]


def may_set(values: Mapping[str, Any], users: Mapping[str, Any]) -> tuple[dict[str, Any], list[Refused]]:
    """Those of a project's settings that it may make, and those that it may not.

    Args:
        values: what the project's file says.
        users: what all layers say that are the user's own.
    """
    allowed: dict[str, Any] = {}
    refused: dict[str, Refused] = {}
    for path, value in settings_in(values):
        found = _refusal(path, value, users)
        if found is None:
            table = allowed
            for key in path[:-1]:
                table = table.setdefault(key, {})
            table[path[-1]] = value
        else:
            refused.setdefault("\0".join(found.path), found)
    return allowed, list(refused.values())


def _refusal(path: tuple[str, ...], value: Any, users: Mapping[str, Any]) -> Refused | None:
    section, *names = path
    if section in _USERS_ONLY:
        return Refused((section,), _USERS_ONLY[section])
    if len(names) < 2:
        return None
    entry = (section, names[0])
    theirs = _table(users, entry)
    if section == "providers":
        # A table in place of the key says where a key of the user's is.
        is_key = len(names) == 2 and isinstance(value, str)
        return _provider_refusal((*entry, names[1]), known=theirs is not None or is_kind(names[0]), is_key=is_key)
    if section == "tools" and (reason := _USERS_TOOL_KEYS.get((names[0], names[1]))):
        return Refused((*entry, names[1]), reason)
    if section == "mcp_servers" and theirs is not None:
        return Refused(entry, "the user has a server of this name")
    if theirs is not None and any(is_secret_name(key) for found, _ in settings_in(theirs) for key in found):
        return Refused(entry, "the user's settings for it hold a secret")
    return None


def _provider_refusal(path: tuple[str, ...], *, known: bool, is_key: bool) -> Refused | None:
    key = path[-1]
    if known and key not in _PROVIDER_KEYS:
        return Refused(path, "address, key and kind of the user's own providers are the user's choice")
    if key in ("env_var", "api_key_file") or (key == "api_key" and not is_key):
        return Refused(path, "which of the user's secrets are read is the user's choice")
    return None


def _table(values: Mapping[str, Any], path: tuple[str, ...]) -> Mapping[str, Any] | None:
    try:
        found = lookup(values, path)
    except KeyError:
        return None
    return found if isinstance(found, Mapping) else {}
