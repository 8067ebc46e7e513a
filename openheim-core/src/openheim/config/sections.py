"""One section of the settings, unchecked, for commands that must start quickly or go on in spite of faults."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from openheim.config.layers import Layer, merge_layers
from openheim.config.paths import policy_files
from openheim.config.toml import read_toml
from openheim.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("managed_section", "read_section")


def read_section(name: str, file: Path, *, given: bool = False) -> dict[str, Any]:
    """A section as the user, the environment and the managed policy make it.

    Args:
        file: the user's config file.
        given: whether they named it, so that it may be a pipe as well.

    Raises:
        ConfigError: a file cannot be read, or has something else than a section there.
    """
    layers = [Layer("user", _only(name, file, given), file)]
    if any(variable.startswith(f"OPENHEIM_{name.upper()}__") for variable in os.environ):
        from openheim.config.environment import environment_layer

        layers.append(Layer("environment", {name: environment_layer(os.environ).values.get(name, {})}))
    section: dict[str, Any] = merge_layers([*layers, *_policies(name)])[name]
    return section


def managed_section(name: str) -> dict[str, Any]:
    """What the managed policy alone says in a section. Raises as :func:`read_section`."""
    section: dict[str, Any] = merge_layers(_policies(name)).get(name, {})
    return section


def _policies(name: str) -> list[Layer]:
    return [Layer("policy", _only(name, policy, given), policy) for policy, given in policy_files()]


def _only(name: str, file: Path, given: bool) -> dict[str, Any]:
    table = (read_toml(file, given=given) or {}).get(name, {})
    if not isinstance(table, dict):
        raise ConfigError(f"[{name}]: must be a table", hint=f"write [{name}] on a line of its own")
    return {name: table}
