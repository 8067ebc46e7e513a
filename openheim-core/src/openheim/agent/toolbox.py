"""The tools of one session, by name, and as the model is shown them."""

from __future__ import annotations

import logging
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from openheim.providers import ToolSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from openheim.tools import Replay, Tool, ToolKind

__all__ = ("Toolbox", "is_read_only", "kind_of", "replay_of")

_log = logging.getLogger(__name__)


def kind_of(tool: Tool) -> ToolKind:
    kind: ToolKind = getattr(tool, "kind", "other")
    return kind


def is_read_only(tool: Tool) -> bool:
    return getattr(tool, "read_only", False) is True


def replay_of(tool: Tool) -> Replay:
    replay: Replay = getattr(tool, "replay", "safe" if is_read_only(tool) else "ask")
    return replay


_KNOWN_SPECS = 64
_known_specs: dict[tuple[tuple[str, str, int], ...], tuple[ToolSpec, ...]] = {}


def _shared(tools: Iterable[Tool]) -> tuple[ToolSpec, ...]:
    specs = tuple(ToolSpec(tool.name, tool.description, tool.parameters) for tool in tools)
    # The specs hold their parameters, so the ids stay theirs.
    key = tuple((spec.name, spec.description, id(spec.parameters)) for spec in specs)
    if key not in _known_specs and len(_known_specs) >= _KNOWN_SPECS:
        _known_specs.clear()
    return _known_specs.setdefault(key, specs)


class Toolbox:
    """Tools sorted by name, so that what the model sees is the same in every session and restart.

    ``specs`` and ``read_only_specs`` are the same tuple objects for the life of the toolbox, and for every session with
    the same tools: providers keep what they made from them.

    Args:
        settings: tool name to the settings of its toolset.
        absent: tool name to why it is not here, for tools that a model may know of all the same.
    """

    def __init__(
        self,
        tools: Iterable[Tool],
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        absent: Mapping[str, str] | None = None,
    ) -> None:
        self._absent = absent or {}
        self._settings = dict(settings or {})
        self.tools: dict[str, Tool] = {tool.name: tool for tool in sorted(tools, key=lambda tool: tool.name)}
        self.specs: tuple[ToolSpec, ...] = _shared(self.tools.values())
        self.read_only_specs = _shared(filter(is_read_only, self.tools.values()))

    def get(self, name: str) -> Tool | None:
        return self.tools.get(name)

    def settings_of(self, name: str) -> Mapping[str, Any]:
        """The settings of the toolset that brought the tool; empty for a tool of the program's own."""
        return self._settings.get(name, {})

    def unknown(self, name: str) -> str:
        """What the model is told about a tool that does not exist."""
        if name in self._absent:
            return f"there is no tool {name!r} here: {self._absent[name]}"
        close = get_close_matches(name, list(self.tools), 3) or list(self.tools)
        return f"there is no tool {name!r}" + (f"; there are: {', '.join(close[:20])}" if close else "")
