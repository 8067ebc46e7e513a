"""openheim: an agent runtime for many model providers, built from plugins.

What is exported here is the public interface, for programs that embed openheim and for plugins alike. Names are
imported when first used, so that ``import openheim`` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = (
    "Client",
    "Decision",
    "Embedder",
    "Event",
    "Gate",
    "GateSession",
    "HttpClient",
    "Message",
    "ModelInfo",
    "ModelReply",
    "ModelRequest",
    "OpenheimError",
    "Provider",
    "ProviderError",
    "ProviderSettings",
    "Runtime",
    "Session",
    "SyncClient",
    "TextBlock",
    "TextDelta",
    "Tool",
    "ToolCall",
    "ToolError",
    "ToolResult",
    "ToolSpec",
    "ToolsContext",
    "Transport",
    "Turn",
    "Usage",
    "__version__",
    "hookimpl",
    "tool",
)

_HOME = {
    "Client": "client",
    "Decision": "gates",
    "Embedder": "embeddings",
    "Event": "events",
    "Gate": "gates",
    "GateSession": "gates",
    "HttpClient": "http",
    "Message": "messages",
    "ModelInfo": "providers",
    "ModelReply": "providers",
    "ModelRequest": "providers",
    "OpenheimError": "errors",
    "Provider": "providers",
    "ProviderError": "errors",
    "ProviderSettings": "providers",
    "Runtime": "runtime",
    "Session": "runtime",
    "SyncClient": "client",
    "TextBlock": "messages",
    "TextDelta": "events",
    "Tool": "tools",
    "ToolCall": "gates",
    "ToolError": "errors",
    "ToolResult": "tools",
    "ToolSpec": "providers",
    "ToolsContext": "tools",
    "Transport": "transports",
    "Turn": "tools",
    "Usage": "messages",
    "hookimpl": "plugins.hookspecs",
    "tool": "tools",
}

if TYPE_CHECKING:
    from openheim.client import Client, SyncClient
    from openheim.embeddings import Embedder
    from openheim.errors import OpenheimError, ProviderError, ToolError
    from openheim.events import Event, TextDelta
    from openheim.gates import Decision, Gate, GateSession, ToolCall
    from openheim.http import HttpClient
    from openheim.messages import Message, TextBlock, Usage
    from openheim.plugins.hookspecs import hookimpl
    from openheim.providers import ModelInfo, ModelReply, ModelRequest, Provider, ProviderSettings, ToolSpec
    from openheim.runtime import Runtime, Session
    from openheim.tools import Tool, ToolResult, ToolsContext, Turn, tool
    from openheim.transports import Transport


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'openheim' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"openheim.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
