"""The settings that the core owns, as pydantic models.

Everything else in a ``[providers.NAME]``, ``[tools.NAME]``, ``[transports.NAME]`` or ``[gates.NAME]`` table belongs to
the plugin that answers for it and is checked by that plugin's own ``Settings``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveFloat, PositiveInt, SecretStr

__all__ = ("Config", "HttpSection", "PermissionsSection", "PriceSection", "ProviderEntry", "resolve_mode")

#: Names of session modes, and the older names that are accepted for two of them.
MODES = ("default", "plan", "acceptEdits", "bypassPermissions", "dontAsk")
MODE_ALIASES = {"code": "default", "architect": "plan"}


def resolve_mode(name: str) -> str | None:
    """The stored name of a mode, or None if there is no such mode."""
    name = MODE_ALIASES.get(name, name)
    return name if name in MODES else None


class _Section(BaseModel):
    # Unknown keys are reported as warnings by the loader, so that a newer config still works here.
    model_config = ConfigDict(extra="ignore", frozen=True, coerce_numbers_to_str=True)


class PriceSection(_Section):
    """Cost per million tokens, in whatever currency the user keeps books."""

    input: NonNegativeFloat = 0.0
    output: NonNegativeFloat = 0.0
    cache_read: NonNegativeFloat = 0.0
    cache_write: NonNegativeFloat = 0.0


class ProviderEntry(BaseModel):
    """One ``[providers.NAME]`` table. Keys that are not listed here belong to the plugin."""

    model_config = ConfigDict(extra="allow", frozen=True, coerce_numbers_to_str=True)

    kind: str | None = Field(
        default=None, description="Which plugin answers for this entry; taken from its name if left out."
    )
    api_base: str | None = Field(default=None, description="Base address; the plugin has its own default.")
    default_model: str | None = Field(default=None, description="Model used when none is named.")
    models: tuple[str, ...] = Field(default=(), description="The only models allowed; empty for any.")
    env_var: str | None = Field(default=None, description="Environment variable that holds the key.")
    api_key: SecretStr | None = Field(default=None, description="The key itself, used when the variable is not set.")
    api_key_file: str | None = Field(default=None, description="File that holds the key.")
    timeout_secs: PositiveFloat = Field(default=120.0, description="Bounds connecting and the gap between two reads.")
    max_tokens: PositiveInt | None = Field(default=None, description="Cap on each reply, in tokens.")
    context_window: PositiveInt | None = Field(default=None, description="Tokens that the model can take.")
    thinking: str | int | None = Field(default=None, description="off, adaptive, a budget in tokens or an effort.")
    fallback: tuple[str, ...] = Field(default=(), description="provider/model pairs to try when this one fails.")
    price: PriceSection | None = Field(default=None, description="Cost per million tokens.")


class HttpSection(_Section):
    proxy: str | None = Field(default=None, description="Proxy for requests to providers.")
    ca_file: str | None = Field(default=None, description="Certificate authorities to trust instead of the system's.")


class PermissionsSection(_Section):
    gate: str = Field(default="ask", description="Which gate decides about tool calls.")
    mode: Literal["default", "plan", "acceptEdits", "bypassPermissions", "dontAsk", "code", "architect"] = Field(
        default="default", description="Mode of new sessions."
    )
    allow: tuple[str, ...] = Field(default=(), description="Rules that allow, such as edit_file(src/**).")
    deny: tuple[str, ...] = Field(default=(), description="Rules that deny; they win.")


class Config(_Section):
    """The whole of ``config.toml``."""

    default_provider: str | None = Field(default=None, description="Entry of [providers] used when none is named.")
    max_iterations: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=10, description="Model calls per prompt at most."
    )
    default_skills: tuple[str, ...] = Field(default=(), description="Skills of every session.")
    work_dir: str | None = Field(
        default=None, description="Boundary of file access; the directory started in if left out."
    )
    allow_shell: bool = Field(default=False, description="Whether commands may be run.")
    data_dir: str | None = Field(default=None, description="Where history, skills and memory are kept.")
    providers: dict[str, ProviderEntry] = Field(default_factory=dict, description="Model services.")
    tools: dict[str, dict[str, Any]] = Field(default_factory=dict, description="Settings of toolsets.")
    transports: dict[str, dict[str, Any]] = Field(default_factory=dict, description="Settings of transports.")
    gates: dict[str, dict[str, Any]] = Field(default_factory=dict, description="Settings of gates.")
    plugins: dict[str, Any] = Field(default_factory=dict, description="Which plugins are used.")
    permissions: PermissionsSection = Field(default_factory=PermissionsSection)
    http: HttpSection = Field(default_factory=HttpSection)
    # Read by later parts of the system; kept so that a complete config gives no warnings here.
    mcp_servers: dict[str, dict[str, Any]] = Field(default_factory=dict, description="MCP servers.")
    memory: dict[str, Any] = Field(default_factory=dict, description="Long-term memory.")
    tui: dict[str, Any] = Field(default_factory=dict, description="Terminal UI.")
