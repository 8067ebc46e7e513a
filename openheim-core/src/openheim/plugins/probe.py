"""The child process of ``openheim plugins check``: tries one plugin and prints what it found, as JSON.

Run as ``python -m openheim.plugins.probe KIND NAME DISTRIBUTION CONFIG_FILE``.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from openheim.errors import ConfigError, PluginLoadError
from openheim.plugins import hookspecs, problems
from openheim.plugins.catalogue import Candidate, Catalogue, normalise, scan
from openheim.plugins.host import PluginHost
from openheim.plugins.policy import PluginPolicy
from openheim.plugins.supervision import diverted_stdout

if TYPE_CHECKING:
    from openheim.plugins.registry import LoadedPlugin

__all__ = ("main",)

_SHOWN_OUTPUT = 60


def main(arguments: list[str]) -> None:
    """Tries the plugin named by the arguments. Ends the process, whatever threads the plugin has left running."""
    kind, name, distribution, config = arguments
    # What the plugin writes must not get between the answer and its reader.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as captured, diverted_stdout(captured):
        found = [c for c in scan().named(kind, name) if normalise(c.distribution) == normalise(distribution)]
        if found:
            report = _try(found[0], Path(config), captured)
        else:
            report = {"load_ms": None, "error": "it is not installed any more", "warnings": []}
    json.dump(report, answer)
    answer.close()
    sys.stderr.flush()
    os._exit(0)


def _try(candidate: Candidate, config: Path, captured: TextIO) -> dict[str, Any]:
    errors: list[str] = []
    warnings: list[str] = []
    host = PluginHost(PluginPolicy(), report=errors.append, catalogue=Catalogue((candidate,)))
    load_ms: float | None = None
    try:
        loaded = host.load(candidate.kind, candidate.name)
        load_ms = round(loaded.load_ms, 1)
    except PluginLoadError as err:
        errors.append(problems.note_of(err))
    warnings += _written(captured, "when it was imported")
    if load_ms is not None:
        try:
            warnings += [f"{hook} is not marked with @hookimpl, so it is never called" for hook in _unmarked(loaded)]
            warnings += _settings_warnings(loaded)
            if candidate.kind == "tools":
                warnings += _try_tools(host, candidate, config)
                warnings += _written(captured, "when it was asked for its tools")
        except PluginLoadError as err:
            errors.append(problems.note_of(err))
    return {"load_ms": load_ms, "error": "; ".join(errors) or None, "warnings": warnings}


def _unmarked(loaded: LoadedPlugin) -> list[str]:
    import pluggy

    from openheim.plugins.registration import unmarked_hooks

    manager = pluggy.PluginManager("openheim")
    manager.add_hookspecs(hookspecs)
    return unmarked_hooks(manager, loaded.plugin)


def _settings_warnings(loaded: LoadedPlugin) -> list[str]:
    model = loaded.settings_model
    if model is None or model.model_config.get("extra") == "forbid":
        return []
    return ['its Settings should have extra="forbid", so that a mistyped key is an error']


def _try_tools(host: PluginHost, candidate: Candidate, config: Path) -> list[str]:
    """Asks a toolset for its tools, with the user's settings for it. The host reports what is wrong with them."""
    from openheim.config.toml import read_toml
    from openheim.tools import ToolsContext

    where = f"[tools.{candidate.name}]"
    try:
        table = ((read_toml(config) or {}).get("tools") or {}).get(candidate.name) or {}
        host.validate_settings("tools", candidate.name, table, where=where)
    except (ConfigError, AttributeError) as err:
        # Not a fault of the plugin: it may well need a setting that nobody has made yet.
        return [f"its tools were not tried: {err}"]
    with tempfile.TemporaryDirectory(prefix="openheim-check-") as folder:
        host.tools(ToolsContext(Path(folder), Path(folder)), {candidate.name: table})
    return []


def _written(captured: TextIO, when: str) -> list[str]:
    """A warning about what was written to standard output since the last call."""
    captured.seek(0)
    text = captured.read(4096)
    captured.seek(0)
    captured.truncate()
    shown = " ".join(text.split())[:_SHOWN_OUTPUT]
    return [f"it wrote to standard output {when}: {shown!r}"] if text else []


if __name__ == "__main__":
    main(sys.argv[1:])
