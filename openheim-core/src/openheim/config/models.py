"""The settings in force, with types. :mod:`openheim.config.schema` says what they mean."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from openheim.config.schema import MODE_ALIASES, MODES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from openheim.config.layers import Place

__all__ = (
    "Config",
    "HttpSection",
    "PermissionsSection",
    "PluginTable",
    "PriceSection",
    "ProviderEntry",
    "resolve_mode",
)

Section = TypeVar("Section")

#: Tells where the value at a path was given, or None if that is not known.
FindPlace: TypeAlias = "Callable[[Sequence[str | int]], Place | None]"

#: Sections that hold one table for each plugin, server or the like.
_TABLES = ("tools", "transports", "gates", "mcp_servers")


def resolve_mode(name: str) -> str | None:
    """The stored name of a mode, or None if there is no such mode."""
    name = MODE_ALIASES.get(name, name)
    return name if name in MODES else None


class PluginTable(dict[str, Any]):
    """A table whose keys belong to a plugin, and where they were given. Shows its keys only: values may be secrets.

    Args:
        values: what was given.
        path: where the table stands in the settings.
    """

    __slots__ = ("_find", "_path")

    def __init__(
        self,
        values: Mapping[str, Any] | None = None,
        path: tuple[str, ...] = (),
        find: FindPlace = lambda path: None,
    ) -> None:
        super().__init__(values or {})
        self._path = path
        self._find = find

    def place_of(self, *keys: str | int) -> Place | None:
        """Where the value at ``keys``, or else the table around it, was given; None if that is not known."""
        return self._find((*self._path, *keys))

    def lead(self, *keys: str | int) -> str:
        """How an error about that value begins: with its place and a colon, or with nothing."""
        place = self.place_of(*keys)
        return f"{place}: " if place is not None else ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self)})"


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
    # May hold a user and a password.
    api_base: str | None = field(default=None, repr=False)
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
    options: PluginTable = field(default_factory=PluginTable)


@dataclass(slots=True)
class HttpSection:
    # Likewise.
    proxy: str | None = field(default=None, repr=False)
    ca_file: str | None = None


@dataclass(slots=True)
class PermissionsSection:
    gate: str = "ask"
    mode: str = "default"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


@dataclass(slots=True)
class Config:
    """All of it. Tables that belong to plugins are each a :class:`PluginTable`."""

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
    plugins: Mapping[str, Any] = field(default_factory=dict, repr=False)
    permissions: PermissionsSection = field(default_factory=PermissionsSection)
    http: HttpSection = field(default_factory=HttpSection)
    mcp_servers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    memory: Mapping[str, Any] = field(default_factory=dict, repr=False)
    tui: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def from_values(cls, values: Mapping[str, Any], find: FindPlace = lambda path: None) -> Config:
        """The settings that checked ``values`` give; keys that are not known are left out."""
        given = dict(values)
        for name, section in (("permissions", PermissionsSection), ("http", HttpSection)):
            if name in given:
                given[name] = _section(section, given[name])
        for section_name in _TABLES:
            tables = given.get(section_name, {})
            given[section_name] = {
                name: PluginTable(table, (section_name, name), find) for name, table in tables.items()
            }
        if "providers" in given:
            given["providers"] = {
                name: _entry(table, ("providers", name), find) for name, table in given["providers"].items()
            }
        return _section(cls, given)


def _section(kind: type[Section], values: Mapping[str, Any]) -> Section:
    known = {one.name for one in fields(kind)}  # type: ignore[arg-type]  # every kind here is a dataclass
    return kind(
        **{name: tuple(value) if isinstance(value, list) else value for name, value in values.items() if name in known}
    )


def _entry(table: Mapping[str, Any], path: tuple[str, ...], find: FindPlace) -> ProviderEntry:
    known = {one.name for one in fields(ProviderEntry)} - {"options"}
    given = {name: value for name, value in table.items() if name in known}
    if "price" in given:
        given["price"] = _section(PriceSection, given["price"])
    own = {name: value for name, value in table.items() if name not in known}
    given["options"] = PluginTable(own, path, find)
    return _section(ProviderEntry, given)
