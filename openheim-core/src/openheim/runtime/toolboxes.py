"""The tools of sessions, made once for each boundary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openheim.agent.toolbox import Toolbox
from openheim.tools import ToolsContext

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from openheim.config.load import LoadedConfig
    from openheim.plugins.host import PluginHost
    from openheim.tools import Tool

__all__ = ("Toolboxes", "why_no_commands")

#: Boundaries whose tools are kept.
_KEPT = 32


#: The tools of openheim-tools-shell. Earlier turns of a session may have called them, and models ask for them unasked.
_COMMAND_TOOLS = ("execute_command", "job_kill", "job_output")


def why_no_commands(loaded: LoadedConfig) -> str:
    """Why a session has no tools for commands, and what gives it some."""
    if loaded.config.allow_shell:
        return "openheim-tools-shell, which brings commands, is not installed or not in use; see openheim plugins list"
    if loaded.is_managed("allow_shell"):
        return "the managed policy does not allow commands"
    return "commands are switched off; allow_shell = true in the settings switches them on"


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
            self._absent({offer.tool.name for offer in offered} | given),
        )

    def _absent(self, offered: Collection[str]) -> dict[str, str]:
        return {name: why_no_commands(self._loaded) for name in _COMMAND_TOOLS if name not in offered}
