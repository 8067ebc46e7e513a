"""What holds for every toolset, and what clients rely on in this one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from openheim import PluginError, ToolsContext
from openheim.testing import ToolsetContract, import_report
from openheim.tools import tool_target
from openheim_tools_shell.plugin import openheim_tools
from tests.tools_shell.calls import Shell

CONTRACT = json.loads((Path(__file__).parent / "contract_schemas.json").read_text(encoding="utf-8"))
ADDED = ["timeout_secs", "background"]


class TestShellTools(ToolsetContract):
    plugin = "openheim_tools_shell.plugin"
    allow_shell = True
    sample_calls: ClassVar[dict[str, dict[str, Any] | None]] = {
        "execute_command": {"command": "cat README.md"},
        # Both need a job, and there is none.
        "job_output": None,
        "job_kill": None,
    }


def test_the_schema_is_that_of_the_contract(work: Path) -> None:
    """Byte for byte, but for optional arguments that were added behind."""
    tool = Shell(work).tools["execute_command"]
    contract = CONTRACT["execute_command"]
    ours: dict[str, Any] = json.loads(json.dumps(tool.parameters))
    assert list(ours["properties"])[-len(ADDED) :] == ADDED
    for name in ADDED:
        del ours["properties"][name]
    assert json.dumps(ours) == json.dumps(contract["parameters"])
    assert tool.description == contract["description"]


def test_there_are_no_tools_unless_the_settings_allow_them(work: Path) -> None:
    assert openheim_tools(context=ToolsContext(work, work)) == []
    assert sorted(Shell(work).tools) == ["execute_command", "job_kill", "job_output"]


def test_on_windows_the_reason_is_told(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openheim_tools_shell.plugin.os.name", "nt")
    assert openheim_tools(context=ToolsContext(work, work)) == []
    with pytest.raises(PluginError, match="need Linux or macOS"):
        openheim_tools(context=ToolsContext(work, work, allow_shell=True))


def test_traits(work: Path) -> None:
    traits = {
        name: (tool.kind, tool.read_only, tool.replay, tool.approval_scope)  # type: ignore[attr-defined] # found by name
        for name, tool in Shell(work).tools.items()
    }
    assert traits == {
        "execute_command": ("execute", False, "ask", "arguments"),
        "job_output": ("other", True, "never", "tool"),
        "job_kill": ("execute", False, "never", "tool"),
    }


def test_the_target_is_the_command_or_the_job(work: Path) -> None:
    shell = Shell(work)
    assert tool_target(shell.tools["execute_command"], {"command": "ls  -l"}, shell.turn) == "ls  -l"
    assert tool_target(shell.tools["execute_command"], {"command": " "}, shell.turn) is None
    for name in ("job_output", "job_kill"):
        assert tool_target(shell.tools[name], {"job_id": "job-1"}, shell.turn) == "job-1"


def test_the_plugin_module_imports_nothing_heavy() -> None:
    report = import_report("openheim_tools_shell.plugin")
    assert not {"pydantic", "anyio", "subprocess", "selectors"} & set(report.modules), sorted(report.modules)
