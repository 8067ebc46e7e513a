"""The gates of sessions: their settings are checked once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openheim.config.load import LoadedConfig
    from openheim.gates import Gate
    from openheim.plugins.host import PluginHost

__all__ = ("Gates",)


class Gates:
    """Gates by name, each made anew whenever it is asked for."""

    def __init__(self, loaded: LoadedConfig, host: PluginHost) -> None:
        self._loaded = loaded
        self._host = host
        self._settings: dict[str, Any] = {}

    def get(self, gate: str | Gate) -> Gate:
        """A gate by its name; one that is an object already is returned.

        Raises:
            ConfigError: its settings are wrong.
            PluginError: its plugin cannot be used.
        """
        if not isinstance(gate, str):
            return gate
        if gate not in self._settings:
            table = self._loaded.config.gates.get(gate, {})
            self._settings[gate] = self._host.validate_settings("gates", gate, table, where=f"[gates.{gate}]")
        return self._host.create_gate(gate, self._settings[gate])
