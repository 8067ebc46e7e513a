"""Importing one plugin, by stevedore, which is handed the winner and nothing to choose from."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from stevedore.driver import DriverManager

from openheim.errors import interrupt_behind
from openheim.plugins.problems import load_failed
from openheim.plugins.registry import LoadedPlugin
from openheim.plugins.supervision import supervised

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from openheim.plugins.catalogue import Candidate

__all__ = ("import_candidate",)


class _Winner(DriverManager[Any]):
    """stevedore's way of loading a driver, without its cache and its conflict logic: both are given one entry point."""

    def __init__(self, candidate: Candidate) -> None:
        self._entry_point = candidate.entry_point
        super().__init__(self._entry_point.group, candidate.name)

    def list_entry_points(self) -> list[EntryPoint]:
        return [self._entry_point]


def import_candidate(candidate: Candidate) -> LoadedPlugin:
    """Imports a plugin, without registering it.

    Raises:
        PluginLoadError: the import failed, in whatever way; the cause is attached.
        KeyboardInterrupt: the user has had enough of waiting.
    """
    started = time.perf_counter()
    try:
        with supervised(f"Plugin {candidate.label} ({candidate.origin}) is being imported"):
            plugin = _Winner(candidate).extensions[0].plugin
    except BaseException as err:
        if interrupt := interrupt_behind(err):
            raise interrupt from None
        # Everything else, SystemExit and the panics of compiled extensions included, is the plugin's failure, not ours.
        raise load_failed(candidate.label, candidate.origin, err) from err
    return LoadedPlugin(plugin, candidate, (time.perf_counter() - started) * 1000)
