"""Permission rules that are about no tool there is. They may be meant for later, so they are no error."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from openheim._slips import closest
from openheim.config.checks import finding_at
from openheim.config.keys import shown_key
from openheim.config.masking import without_keys
from openheim.errors import OpenheimError, UsageError
from openheim.permissions.rules import canonical_glob, parse_rule
from openheim.tools import PATH_KINDS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from openheim.config.findings import Finding
    from openheim.config.load import LoadedConfig
    from openheim.plugins.host import PluginHost
    from openheim.tools import ToolsContext

__all__ = ("no_such_tool", "rules_about_no_tool")


def rules_about_no_tool(loaded: LoadedConfig, host: PluginHost) -> list[Finding]:
    """The rules of ``[permissions]`` whose tool nothing that is installed brings, each with its place.

    None where that cannot be known, since a toolset's settings or the work directory are wrong; that is told elsewhere.
    """
    permissions = loaded.config.permissions
    if not (permissions.allow or permissions.deny):
        return []
    try:
        known = _known_tools(loaded, host)
    except OpenheimError:
        return []
    return [*_findings(loaded, known, {name for name, kind in known.items() if kind in PATH_KINDS})]


def no_such_tool(tool: str, known: Collection[str]) -> tuple[str, str] | None:
    """What to say where no tool has the name, or one that fits the pattern, with a hint or ``""``; None if one has."""
    if any(fnmatchcase(name, tool) for name in known):
        return None
    near = closest(tool, sorted(known))
    return f"no tool is called {without_keys(tool)}", f"did you mean {near}?" if near else ""


def _known_tools(loaded: LoadedConfig, host: PluginHost) -> dict[str, str | None]:
    from openheim.runtime.toolboxes import Toolboxes

    context: ToolsContext = Toolboxes(loaded, host, ()).context(loaded.work_dir(Path.cwd()))
    # A rule about commands may well stand where they are not allowed.
    contexts = [replace(context, allow_shell=allowed) for allowed in (True, False)]
    offers = (offer for one in contexts for offer in host.tools(one, loaded.config.tools))
    return {offer.tool.name: getattr(offer.tool, "kind", None) for offer in offers}


def _named(tool: str, known: Collection[str]) -> set[str]:
    return {name for name in known if fnmatchcase(name, tool)}


def _leads_outside(glob: str) -> bool:
    glob = canonical_glob(glob)
    return glob.startswith(("/", "~")) or ".." in glob.split("/")


def _findings(loaded: LoadedConfig, known: Collection[str], paths: set[str]) -> Iterator[Finding]:
    for layer in loaded.layers:
        permissions = layer.values.get("permissions", {})
        for key in ("allow", "deny"):
            for index, text in enumerate(permissions.get(key, ())):
                try:
                    rule = parse_rule(text)
                except UsageError:
                    continue
                tool, path = rule.tool, ("permissions", key)
                missing = no_such_tool(tool, known)
                if missing is None:
                    if rule.target is not None and _leads_outside(rule.target) and _named(tool, known) <= paths:
                        yield finding_at(
                            [layer],
                            path,
                            f"{shown_key((*path, index))}: no path is spelled like this",
                            "write it relative to the work directory, without ..",
                        )
                    continue
                message, hint = missing
                yield finding_at(
                    [layer],
                    path,
                    f"{shown_key((*path, index))}: {message}",
                    hint or "it counts once a plugin or an MCP server brings such a tool",
                )
