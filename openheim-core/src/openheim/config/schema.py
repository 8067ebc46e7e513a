"""The settings that the core owns, as JSON Schema: what is allowed, what it means, what the default is.

The loader checks settings against it, :mod:`openheim.config.models` holds them with types (a test compares the two),
and ``openheim config schema`` publishes it as it is. What is not listed in a ``[providers.NAME]``, ``[tools.NAME]``,
``[transports.NAME]`` or ``[gates.NAME]`` table belongs to the plugin that answers for it and is checked by that
plugin's own ``Settings``. What concerns several keys at once is in :mod:`openheim.config.rules`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ("MODES", "MODE_ALIASES", "PROVIDER_SCHEMA", "SCHEMA", "THEME_COLORS", "schema_at", "types_of")

#: Session modes by the names under which they are stored, and older names of two of them.
MODES = ("default", "plan", "acceptEdits", "bypassPermissions", "dontAsk")
MODE_ALIASES = {"code": "default", "architect": "plan"}

THEME_COLORS = ("white", "gray", "blue", "cyan", "magenta", "green", "yellow", "red", "pink")


def _text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description} | more


def _texts(description: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "default": [], "description": description}


def _flag(description: str) -> dict[str, Any]:
    return {"type": "boolean", "default": False, "description": description}


def _count(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "description": description} | more


def _seconds(description: str, default: float, **more: Any) -> dict[str, Any]:
    return {"type": "number", "default": default, "description": description} | (more or {"exclusiveMinimum": 0})


def _table(description: str, properties: dict[str, Any], *, further: bool = False) -> dict[str, Any]:
    """A table with keys that are known; ``further`` allows others, which somebody else answers for."""
    return {"type": "object", "description": description, "properties": properties, "additionalProperties": further}


def _tables(description: str, of: dict[str, Any] | None = None) -> dict[str, Any]:
    """A table whose keys are names."""
    return {"type": "object", "description": description, "additionalProperties": of or {"type": "object"}}


def _texts_by_name(description: str) -> dict[str, Any]:
    return {"type": "object", "description": description, "additionalProperties": {"type": "string"}}


def _price(description: str) -> dict[str, Any]:
    return {"type": "number", "minimum": 0, "description": description}


PROVIDER_SCHEMA = _table(
    "One model service. Further keys belong to its plugin.",
    {
        "kind": _text("Which plugin answers for this entry; taken from its name if left out."),
        "api_base": _text("Base address; the plugin has its own default."),
        "default_model": _text("Model used when none is named."),
        "models": _texts("The only models allowed; empty for any."),
        "env_var": _text("Environment variable that holds the key."),
        "api_key": {
            "type": ["string", "object"],
            "description": "The key itself, or a table with one key that says where it is.",
            "properties": {
                "env": _text("Environment variable that holds the key."),
                "file": _text("File that holds the key."),
                "keyring": _text("Name of the key in the system's keyring, service openheim."),
            },
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 1,
        },
        "api_key_file": _text("File that holds the key."),
        "timeout_secs": _seconds("Bounds connecting and the gap between two reads, not the whole call.", 120),
        "max_tokens": _count("Cap on each reply, in tokens."),
        "context_window": _count("Tokens that the model can take."),
        "thinking": {
            "type": ["string", "integer", "object"],
            "description": "off, adaptive, a budget in tokens, an effort, or a table of these by model, with default.",
            "minimum": 0,
            "additionalProperties": {"type": ["string", "integer"], "minimum": 0},
        },
        "fallback": _texts("provider/model pairs that answer, in this order, when this one cannot."),
        "price": _table(
            "Cost per million tokens, in whatever currency you keep books; what is left out is not known.",
            {
                "input": _price("Newly processed input."),
                "output": _price("Output."),
                "cache_read": _price("Input read from a cache."),
                "cache_write": _price("Input written to a cache."),
            },
        ),
    },
    further=True,
)

MCP_SERVER_SCHEMA = _table(
    "One MCP server: a command to start, or an address.",
    {
        "command": _text("Program to start; it is spoken to on its standard input and output."),
        "args": _texts("Arguments of the program."),
        "env": _texts_by_name("Further environment variables of the program."),
        "url": _text("Address of a server that speaks Streamable HTTP."),
        "headers": _texts_by_name("Headers of every request; refused for plain http."),
        "tool_timeout_secs": _seconds("How long one tool call may take.", 600, minimum=1),
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
        "allow_shell": _flag("Whether commands may be run."),
        "data_dir": _text("Where history, skills and memory are kept."),
        "providers": _tables("Model services by name.", PROVIDER_SCHEMA),
        "tools": _tables("Settings of toolsets."),
        "transports": _tables("Settings of transports."),
        "gates": _tables("Settings of gates."),
        "plugins": _table(
            "Which plugins are used.",
            {
                "enable": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "The only plugins used, by kind.name or distribution; all that are installed if "
                    "left out.",
                },
                "disable": _texts("Plugins that are not used; the lists of all layers are joined."),
                "prefer": {
                    "type": "object",
                    "description": "Which distribution wins where several offer one kind.name.",
                    "additionalProperties": {"type": ["string", "object"]},
                },
                "safe_mode": _flag("Use first-party plugins only."),
                "strict": _flag("One broken plugin fails the command instead of being set aside."),
            },
        ),
        "permissions": _table(
            "Which tool calls may run.",
            {
                "gate": _text("Which gate decides about tool calls.", default="ask"),
                "mode": _text("Mode of new sessions.", enum=[*MODES, *MODE_ALIASES], default="default"),
                "allow": _texts("Rules that allow, such as edit_file(src/**); the lists of all layers are joined."),
                "deny": _texts("Rules that deny; they win, and the lists of all layers are joined."),
            },
        ),
        "context": _table(
            "What is done when a conversation outgrows the model's window.",
            {
                "strategy": _text(
                    "trim leaves old turns out of requests; summarise puts a summary in their place.",
                    enum=["trim", "summarise"],
                    default="trim",
                ),
                "reserve_tokens": _count(
                    "Tokens of the window kept free for the reply; max_tokens, or a share, if left out."
                ),
            },
        ),
        "sessions": _table(
            "Sessions held in memory. One that is let go comes back from its files.",
            {
                "max_live": _count("Sessions held at a time; the least recently active goes first.", default=512),
                "idle_secs": _seconds("Seconds after which a session that is not used is let go.", 604_800),
            },
        ),
        "http": _table(
            "How providers are reached.",
            {
                "proxy": _text("Proxy for requests to providers."),
                "ca_file": _text("Certificate authorities to trust instead of the system's."),
            },
        ),
        "mcp_servers": _tables("MCP servers by name.", MCP_SERVER_SCHEMA),
        "memory": _table(
            "Long-term memory.",
            {
                "embedding_provider": _text("Entry of [providers] that makes embeddings; searches are by word if not."),
                "embedding_model": _text("Its model; goes with embedding_provider."),
                "db_path": _text("The database, an absolute path; memory.db in data_dir if left out."),
                "top_k": _count("Notes that a search finds; at most 20.", default=5),
            },
        ),
        "tui": _table(
            "Terminal UI.", {"theme_color": _text("Colour of accents.", enum=list(THEME_COLORS), default="gray")}
        ),
    },
)


def schema_at(path: Sequence[str]) -> Mapping[str, Any] | None:
    """The schema of the setting at ``path``, or None if none is known: a slip, or a plugin's own key."""
    schema: Any = SCHEMA
    for part in path:
        schema = schema.get("properties", {}).get(part) or schema.get("additionalProperties")
        if not isinstance(schema, dict):
            return None
    found: Mapping[str, Any] = schema
    return found


def types_of(schema: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The JSON types that a setting may have; empty if any."""
    named = schema.get("type", ()) if schema is not None else ()
    return (named,) if isinstance(named, str) else tuple(named)
