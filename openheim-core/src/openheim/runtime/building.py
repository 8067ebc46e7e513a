"""What a runtime is built from: the user's settings, and the installed plugins that they allow."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from openheim.config.load import load_config
from openheim.plugins.host import PluginHost
from openheim.plugins.policy import policy_from

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from openheim.config.load import LoadedConfig

__all__ = ("settings_and_plugins",)


def settings_and_plugins(
    path: str | bool | None,
    settings: Mapping[str, Any] | None,
    *,
    cwd: Path | str | None,
    trust: bool | None,
    safe_mode: bool,
    debug: bool,
    report: Callable[[str], None],
) -> tuple[LoadedConfig, PluginHost]:
    """The settings, and a host of plugins; arguments and errors as of :meth:`openheim.Runtime.from_config`."""
    if path is False:
        loaded = load_config(os.devnull, flags=settings, environment={}, cwd=cwd, trust=False)
    else:
        loaded = load_config(path if isinstance(path, str) else None, flags=settings, cwd=cwd, trust=trust)
    for notice in loaded.notices:
        report(notice)
    for warning in loaded.warnings:
        report(f"warning: {warning}")
    policy = policy_from(loaded.config.plugins, os.environ, safe_mode=safe_mode, managed=loaded.managed.get("plugins"))
    return loaded, PluginHost(policy, report=lambda line: report(f"warning: {line}"), debug=debug)
