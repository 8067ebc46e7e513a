"""The tools of sessions, made once for each boundary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openheim.agent.toolbox import Toolbox
from openheim.tools import ToolsContext

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from openheim.config.load import LoadedConfig
    from openheim.plugins.host import PluginHost
    from openheim.tools import Tool

__all__ = ("Toolboxes",)

#: Boundaries whose tools are kept.
_KEPT = 32


class Toolboxes:
    """Tools of plugins, and those that the program gave.

    Args:
        given: the program's; they win over a plugin's tool of the same name.
    """

    def __init__(self, loaded: LoadedConfig, host: PluginHost, given: Iterable[Tool]) -> None:
        self._loaded = loaded
        self._host = host
        self._given = tuple(given)
        self._made: dict[Path, Toolbox] = {}

    def at(self, boundary: Path) -> Toolbox:
        """All tools that are offered to sessions within this boundary."""
        toolbox = self._made.get(boundary)
        if toolbox is None:
            toolbox = self._make(boundary)
            if len(self._made) >= _KEPT:
                self._made.pop(next(iter(self._made)))
            self._made[boundary] = toolbox
        return toolbox

    def context(self, boundary: Path) -> ToolsContext:
        """What toolsets are told."""
        from openheim.config.secrets import key_files

        loaded = self._loaded
        private = (loaded.data_dir, loaded.file, *key_files(loaded.config, loaded.start))
        config = loaded.config
        return ToolsContext(
            boundary,
            loaded.data_dir,
            allow_shell=config.allow_shell,
            ca_file=config.http.ca_file,
            private_paths=private,
        )

    def _make(self, boundary: Path) -> Toolbox:
        config, context = self._loaded.config, self.context(boundary)
        given = {tool.name for tool in self._given}
        offered = [offer for offer in self._host.tools(context, config.tools) if offer.tool.name not in given]
        return Toolbox(
            [*self._given, *(offer.tool for offer in offered)],
            {offer.tool.name: config.tools.get(offer.toolset, {}) for offer in offered},
        )
