"""The environment of child processes: whatever the program's holds, but no provider's key."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from openheim.agent.environment import filtered_environment
from openheim.config.selection import KEY_VARIABLES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from openheim.config.models import ProviderEntry

__all__ = ("child_environment",)


def child_environment(entries: Iterable[ProviderEntry], secrets: Iterable[str]) -> dict[str, str]:
    """The environment that tools may give to child processes.

    Args:
        entries: the providers of the settings, whose keys are left out, in use or not.
        secrets: further values that are left out.
    """
    names = set(KEY_VARIABLES.values())
    hidden = set(secrets)
    for entry in entries:
        if entry.env_var:
            names.add(entry.env_var)
        if isinstance(entry.api_key, str) and entry.api_key.strip():
            hidden.add(entry.api_key.strip())
        elif isinstance(entry.api_key, Mapping) and isinstance(entry.api_key.get("env"), str):
            names.add(entry.api_key["env"])
    hidden |= {os.environ[name] for name in names if os.environ.get(name)}
    return filtered_environment(os.environ, hidden_names=names, secrets=hidden)
