"""What stands at the entry point ``shell`` of group ``openheim.tools``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from openheim import PluginError, hookimpl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openheim import Finding, Tool, ToolsContext
    from openheim_tools_shell.settings import Settings

__all__ = ("Settings", "openheim_examine", "openheim_tools")


# Without the argument "settings": their model takes pydantic, which starts without shell commands do without.
@hookimpl
def openheim_tools(context: ToolsContext) -> Sequence[Tool]:
    if not context.allow_shell:
        return []
    if os.name != "posix":
        raise PluginError("shell commands need Linux or macOS", hint="take allow_shell out of the settings")
    from openheim_tools_shell.confining import Confining
    from openheim_tools_shell.execute import ExecuteCommand
    from openheim_tools_shell.jobs import JobKill, JobOutput, Jobs
    from openheim_tools_shell.settings import Settings

    settings = Settings.model_validate(dict(context.settings))
    jobs = Jobs()
    return [ExecuteCommand(settings, jobs, Confining(settings, context)), JobOutput(jobs), JobKill(jobs)]


@hookimpl
def openheim_examine(settings: Settings, context: ToolsContext) -> Sequence[Finding]:
    from openheim_tools_shell.examination import examine

    return examine(settings, context)


def __getattr__(name: str) -> Any:
    # Settings are a pydantic model, which takes time to load.
    if name == "Settings":
        from openheim_tools_shell.settings import Settings

        return Settings
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
