"""The settings in force, with types. :mod:`openheim.config.schema` says what they mean."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

from openheim.config.schema import MODE_ALIASES, MODES

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("Config", "HttpSection", "PermissionsSection", "PriceSection", "ProviderEntry", "resolve_mode")

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
    """One ``[providers.NAME]`` table. ``options`` are the keys that belong to the plugin."""

    kind: str | None = None
    api_base: str | None = None
    default_model: str | None = None
    models: tuple[str, ...] = ()
    env_var: str | None = None
    api_key: str | None = field(default=None, repr=False)
    api_key_file: str | None = None
    timeout_secs: float = 120
    max_tokens: int | None = None
    context_window: int | None = None
    thinking: str | int | None = None
    fallback: tuple[str, ...] = ()
    price: PriceSection | None = None
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(slots=True)
class HttpSection:
    proxy: str | None = None
    ca_file: str | None = None


@dataclass(slots=True)
class PermissionsSection:
    gate: str = "ask"
    mode: str = "default"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


@dataclass(slots=True)
class Config:
    default_provider: str | None = None
    max_iterations: int = 10
    default_skills: tuple[str, ...] = ()
    work_dir: str | None = None
    allow_shell: bool = False
    data_dir: str | None = None
    providers: Mapping[str, ProviderEntry] = field(default_factory=dict)
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    transports: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    gates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    plugins: Mapping[str, Any] = field(default_factory=dict)
    permissions: PermissionsSection = field(default_factory=PermissionsSection)
    http: HttpSection = field(default_factory=HttpSection)
    mcp_servers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    memory: Mapping[str, Any] = field(default_factory=dict)
    tui: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Config:
        """The settings that checked ``values`` give; keys that are not known are left out."""
        given = dict(values)
        for name, section in (("permissions", PermissionsSection), ("http", HttpSection)):
            if name in given:
                given[name] = _section(section, given[name])
        if "providers" in given:
            given["providers"] = {name: _entry(table) for name, table in given["providers"].items()}
        return _section(cls, given)


def _section(kind: type[Section], values: Mapping[str, Any]) -> Section:
    known = {one.name for one in fields(kind)}  # type: ignore[arg-type]  # every kind here is a dataclass
    return kind(
        **{name: tuple(value) if isinstance(value, list) else value for name, value in values.items() if name in known}
    )


def _entry(table: Mapping[str, Any]) -> ProviderEntry:
    known = {one.name for one in fields(ProviderEntry)} - {"options"}
    given = {name: value for name, value in table.items() if name in known}
    if "price" in given:
        given["price"] = _section(PriceSection, given["price"])
    given["options"] = {name: value for name, value in table.items() if name not in known}
    return _section(ProviderEntry, given)
