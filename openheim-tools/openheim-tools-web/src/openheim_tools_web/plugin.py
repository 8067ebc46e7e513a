"""What stands at the entry point ``web`` of group ``openheim.tools``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim import hookimpl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openheim import Tool, ToolsContext
    from openheim_tools_web.settings import Settings

__all__ = ("Settings", "openheim_tools")


# Without the argument "settings": their model takes pydantic, which most starts do without.
@hookimpl
def openheim_tools(context: ToolsContext) -> Sequence[Tool]:
    from openheim_tools_web.web_fetch import WebFetch

    if not context.settings:
        return [WebFetch(ca_file=context.ca_file)]
    from openheim_tools_web.schemas import web_fetch_description
    from openheim_tools_web.settings import Settings

    settings = Settings.model_validate(dict(context.settings))
    description = web_fetch_description(settings.timeout_secs, settings.max_bytes)
    return [WebFetch(ca_file=context.ca_file, description=description)]


def __getattr__(name: str) -> Any:
    if name == "Settings":
        from openheim_tools_web.settings import Settings

        return Settings
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
