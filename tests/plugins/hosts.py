"""Hosts over throw-away distributions, in the process of the test."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from openheim import ToolsContext
from openheim.plugins.catalogue import scan
from openheim.plugins.host import PluginHost
from openheim.plugins.policy import PluginPolicy


@dataclass
class Reported:
    """A host, and the lines that it reported."""

    host: PluginHost
    lines: list[str] = field(default_factory=list)


def host_over(folder: Path, monkeypatch: pytest.MonkeyPatch, policy: PluginPolicy | None = None) -> Reported:
    """A host that sees what is in ``folder`` and nothing else."""
    monkeypatch.syspath_prepend(folder)
    lines: list[str] = []
    return Reported(PluginHost(policy or PluginPolicy(), report=lines.append, catalogue=scan([str(folder)])), lines)


def context(folder: Path) -> ToolsContext:
    return ToolsContext(work_dir=folder, data_dir=folder)
