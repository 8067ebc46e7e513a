"""The settings that the core owns, as JSON Schema: what is allowed, what it means, what the default is.

The loader checks settings against it, :mod:`openheim.config.models` holds them with types (a test compares the two),
and it can be published as it is. What is not listed in a ``[providers.NAME]``, ``[tools.NAME]``,
``[transports.NAME]`` or ``[gates.NAME]`` table belongs to the plugin that answers for it and is checked by that
plugin's own ``Settings``.
"""

from __future__ import annotations

from typing import Any

__all__ = ("MODES", "MODE_ALIASES", "PROVIDER_SCHEMA", "SCHEMA")

#: Session modes by the names under which they are stored, and older names of two of them.
MODES = ("default", "plan", "acceptEdits", "bypassPermissions", "dontAsk")
MODE_ALIASES = {"code": "default", "architect": "plan"}


def _text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description} | more


def _texts(description: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "default": [], "description": description}


def _count(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "description": description} | more


def _table(description: str, properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "description": description, "properties": properties}


def _tables(description: str, of: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "object", "description": description, "additionalProperties": of or {"type": "object"}}


def _price(description: str) -> dict[str, Any]:
    return {"type": "number", "minimum": 0, "default": 0, "description": description}


PROVIDER_SCHEMA = _table(
    "One model service. Further keys belong to its plugin.",
    {
        "kind": _text("Which plugin answers for this entry; taken from its name if left out."),
        "api_base": _text("Base address; the plugin has its own default."),
        "default_model": _text("Model used when none is named."),
        "models": _texts("The only models allowed; empty for any."),
        "env_var": _text("Environment variable that holds the key."),
        "api_key": _text("The key itself, used when the variable is not set."),
        "api_key_file": _text("File that holds the key."),
        "timeout_secs": {
            "type": "number",
            "exclusiveMinimum": 0,
            "default": 120,
            "description": "Bounds connecting and the gap between two reads, not the whole call.",
        },
        "max_tokens": _count("Cap on each reply, in tokens."),
        "context_window": _count("Tokens that the model can take."),
        "thinking": {"type": ["string", "integer"], "description": "off, adaptive, a budget in tokens, or an effort."},
        "fallback": _texts("provider/model pairs to try when this one fails."),
        "price": _table(
            "Cost per million tokens, in whatever currency you keep books.",
            {
                "input": _price("Newly processed input."),
                "output": _price("Output."),
                "cache_read": _price("Input read from a cache."),
                "cache_write": _price("Input written to a cache."),
            },
        ),
    },
)

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "openheim settings",
} | _table(
    "The whole of config.toml.",
    {
        "default_provider": _text("Entry of [providers] used when none is named."),
        "max_iterations": _count("Model calls per prompt at most.", maximum=100_000, default=10),
        "default_skills": _texts("Skills of every session."),
        "work_dir": _text("Boundary of file access; the directory started in if left out."),
        "allow_shell": {"type": "boolean", "default": False, "description": "Whether commands may be run."},
        "data_dir": _text("Where history, skills and memory are kept."),
        "providers": _tables("Model services by name.", PROVIDER_SCHEMA),
        "tools": _tables("Settings of toolsets."),
        "transports": _tables("Settings of transports."),
        "gates": _tables("Settings of gates."),
        "plugins": {"type": "object", "description": "Which plugins are used."},
        "permissions": _table(
            "Which tool calls may run.",
            {
                "gate": _text("Which gate decides about tool calls.", default="ask"),
                "mode": _text("Mode of new sessions.", enum=[*MODES, *MODE_ALIASES], default="default"),
                "allow": _texts("Rules that allow, such as edit_file(src/**)."),
                "deny": _texts("Rules that deny; they win."),
            },
        ),
        "http": _table(
            "How providers are reached.",
            {
                "proxy": _text("Proxy for requests to providers."),
                "ca_file": _text("Certificate authorities to trust instead of the system's."),
            },
        ),
        "mcp_servers": _tables("MCP servers."),
        "memory": {"type": "object", "description": "Long-term memory."},
        "tui": {"type": "object", "description": "Terminal UI."},
    },
)
