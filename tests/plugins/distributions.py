"""Throw-away distributions, written to a folder that child processes get on their path."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

#: The whole of a tool plugin, as an object that ``module:plugin`` names.
TOOL_PLUGIN = """\
from openheim import hookimpl, tool


@tool(read_only=True)
async def {tool}() -> str:
    "Answers."
    return {answer!r}


class _Plugin:
    @hookimpl
    def openheim_tools(self, settings, context):
        return [{tool}]


plugin = _Plugin()
"""


def tool_plugin(tool: str = "a_tool", answer: str = "done") -> str:
    """The text of a module whose ``plugin`` offers one tool."""
    return TOOL_PLUGIN.format(tool=tool, answer=answer)


def make_distribution(
    folder: Path,
    name: str,
    version: str = "1.0",
    entry_points: Mapping[str, Sequence[str]] | None = None,
    modules: Mapping[str, str] | None = None,
    requires: Sequence[str] = (),
    summary: str = "A throw-away distribution",
) -> Path:
    """Writes an installed distribution into ``folder`` and returns its dist-info folder.

    Args:
        entry_points: group to entries, ``{"openheim.tools": ["x = xmod:plugin"]}``.
        modules: name to source text.
    """
    folder.mkdir(parents=True, exist_ok=True)
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    headers = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", f"Summary: {summary}"]
    headers += [f"Requires-Dist: {requirement}" for requirement in requires]
    (info / "METADATA").write_text("\n".join(headers) + "\n\nA longer description.\n", encoding="utf-8")
    groups = [f"[{group}]\n" + "\n".join(entries) for group, entries in (entry_points or {}).items()]
    (info / "entry_points.txt").write_text("\n\n".join(groups) + "\n", encoding="utf-8")
    for module, text in (modules or {}).items():
        (folder / f"{module}.py").write_text(text, encoding="utf-8")
    return info


def make_tool_distribution(
    folder: Path, name: str, toolset: str, source: str | None = None, *, module: str = "", requires: Sequence[str] = ()
) -> Path:
    """A distribution with one toolset; ``source`` is the text of its module, a tool plugin if None."""
    module = module or f"{name.replace('-', '_')}_plugin"
    text = tool_plugin(f"{toolset}_tool") if source is None else source
    return make_distribution(
        folder,
        name,
        entry_points={"openheim.tools": [f"{toolset} = {module}:plugin"]},
        modules={module: text},
        requires=requires,
    )


def environment(*folders: Path, **variables: str) -> dict[str, str]:
    """The environment of a child process that has the folders on its path."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders)), **variables}


def run_python(*arguments: str, folders: Sequence[Path], **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs the interpreter with the folders on its path, in the first of them."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folders[0].parent,
        env=environment(*folders, **variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=50,
    )


def run_openheim(*arguments: str, folders: Sequence[Path], **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs the ``openheim`` command likewise."""
    return run_python("-m", "openheim", *arguments, folders=folders, **variables)
