"""The settings in force, with types. :mod:`openheim.config.schema` says what they mean.

What may hold a secret is not part of any ``repr``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

from openheim.config.schema import MODE_ALIASES, MODES

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = (
    "Config",
    "ContextSection",
    "HttpSection",
    "McpServerEntry",
    "MemorySection",
    "PermissionsSection",
    "PriceSection",
    "ProviderEntry",
    "SessionsSection",
    "TuiSection",
    "resolve_mode",
)

Section = TypeVar("Section")


def resolve_mode(name: str) -> str | None:
    """The stored name of a mode, or None if there is no such mode."""
    name = MODE_ALIASES.get(name, name)
    return name if name in MODES else None


@dataclass(slots=True)
class PriceSection:
    input: float = 0
    output: float = 0
    cache_read: float = 0
    cache_write: float = 0


@dataclass(slots=True)
class ProviderEntry:
    """One ``[providers.NAME]`` table. ``options`` are the keys that belong to the plugin.

    ``api_key`` is the key, or a table with one key of ``env``, ``file`` and ``keyring``;
    :func:`openheim.config.secrets.find_key` reads it.
    """

    kind: str | None = None
    api_base: str | None = field(default=None, repr=False)
    default_model: str | None = None
    models: tuple[str, ...] = ()
    env_var: str | None = None
    api_key: str | Mapping[str, str] | None = field(default=None, repr=False)
    api_key_file: str | None = None
    timeout_secs: float = 120
    max_tokens: int | None = None
    context_window: int | None = None
    thinking: str | int | None = None
    fallback: tuple[str, ...] = ()
    price: PriceSection | None = None
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(slots=True)
class McpServerEntry:
    """One ``[mcp_servers.NAME]`` table: ``command`` with ``args`` and ``env``, or ``url`` with ``headers``."""

    command: str | None = None
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    url: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tool_timeout_secs: float = 600


@dataclass(slots=True)
class HttpSection:
    proxy: str | None = field(default=None, repr=False)
    ca_file: str | None = None


@dataclass(slots=True)
class PermissionsSection:
    gate: str = "ask"
    mode: str = "default"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


@dataclass(slots=True)
class ContextSection:
    strategy: str = "trim"
    reserve_tokens: int | None = None


@dataclass(slots=True)
class SessionsSection:
    max_live: int = 512
    idle_secs: float = 604_800


@dataclass(slots=True)
class MemorySection:
    embedding_provider: str | None = None
    embedding_model: str | None = None
    db_path: str | None = None
    top_k: int = 5


@dataclass(slots=True)
class TuiSection:
    theme_color: str = "gray"


@dataclass(slots=True)
class Config:
    default_provider: str | None = None
    max_iterations: int = 10
    default_skills: tuple[str, ...] = ()
    work_dir: str | None = None
    allow_shell: bool = False
    data_dir: str | None = None
    providers: Mapping[str, ProviderEntry] = field(default_factory=dict)
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    transports: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    gates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    plugins: Mapping[str, Any] = field(default_factory=dict)
    permissions: PermissionsSection = field(default_factory=PermissionsSection)
    context: ContextSection = field(default_factory=ContextSection)
    sessions: SessionsSection = field(default_factory=SessionsSection)
    http: HttpSection = field(default_factory=HttpSection)
    mcp_servers: Mapping[str, McpServerEntry] = field(default_factory=dict)
    memory: MemorySection = field(default_factory=MemorySection)
    tui: TuiSection = field(default_factory=TuiSection)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Config:
        """The settings that checked ``values`` give; keys that are not known are left out."""
        given = dict(values)
        for name, section in _SECTIONS.items():
            if name in given:
                given[name] = _section(section, given[name])
        for name, entry in (("providers", _provider), ("mcp_servers", _mcp_server)):
            if name in given:
                given[name] = {key: entry(table) for key, table in given[name].items()}
        return _section(cls, given)


_SECTIONS: dict[str, Any] = {
    "permissions": PermissionsSection,
    "context": ContextSection,
    "sessions": SessionsSection,
    "http": HttpSection,
    "memory": MemorySection,
    "tui": TuiSection,
}


def _section(kind: type[Section], values: Mapping[str, Any]) -> Section:
    known = {one.name for one in fields(kind)}  # type: ignore[arg-type]  # every kind here is a dataclass
    return kind(
        **{name: tuple(value) if isinstance(value, list) else value for name, value in values.items() if name in known}
    )


def _provider(table: Mapping[str, Any]) -> ProviderEntry:
    known = {one.name for one in fields(ProviderEntry)} - {"options"}
    given = {name: value for name, value in table.items() if name in known}
    if "price" in given:
        given["price"] = _section(PriceSection, given["price"])
    given["options"] = {name: value for name, value in table.items() if name not in known}
    return _section(ProviderEntry, given)


def _mcp_server(table: Mapping[str, Any]) -> McpServerEntry:
    return _section(McpServerEntry, table)
