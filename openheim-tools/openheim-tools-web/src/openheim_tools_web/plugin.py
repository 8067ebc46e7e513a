"""What stands at the entry point ``web`` of group ``openheim.tools``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim import hookimpl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openheim import Tool, ToolsContext
    from openheim_tools_web.settings import Settings

__all__ = ("Settings", "openheim_tools")


# The tool reads its settings when it is called: their model takes pydantic, which most starts do without.
@hookimpl
def openheim_tools(context: ToolsContext) -> Sequence[Tool]:
    from openheim_tools_web.web_fetch import WebFetch

    return [WebFetch(ca_file=context.ca_file)]


def __getattr__(name: str) -> Any:
    if name == "Settings":
        from openheim_tools_web.settings import Settings

        return Settings
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
