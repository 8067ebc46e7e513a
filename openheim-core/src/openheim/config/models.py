"""The settings in force, with types. :mod:`openheim.config.schema` says what they mean.

What may hold a secret is not part of any ``repr``; of tables that belong to plugins, it has the keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from openheim.config.schema import MODE_ALIASES, MODES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from openheim.config.layers import Place

__all__ = (
    "Config",
    "ContextSection",
    "HttpSection",
    "McpServerEntry",
    "MemorySection",
    "PermissionsSection",
    "PluginTable",
    "PriceSection",
    "ProviderEntry",
    "SessionsSection",
    "TuiSection",
    "resolve_mode",
)

Section = TypeVar("Section")

#: Tells where the value at a path was given, or None if that is not known.
FindPlace: TypeAlias = "Callable[[Sequence[str | int]], Place | None]"

#: Sections that hold one table for each plugin.
_PLUGIN_TABLES = ("tools", "transports", "gates")


def resolve_mode(name: str) -> str | None:
    """The stored name of a mode, or None if there is no such mode."""
    name = MODE_ALIASES.get(name, name)
    return name if name in MODES else None


class PluginTable(dict[str, Any]):
    """A table whose keys belong to a plugin, and where they were given. Shows its keys only: values may be secrets.

    Args:
        values: what was given.
        path: where the table stands in the settings.
        beside: keys that may stand in the same section and belong to the core: a slip may have been meant for one.
    """

    __slots__ = ("_find", "_path", "beside")

    def __init__(
        self,
        values: Mapping[str, Any] | None = None,
        path: tuple[str, ...] = (),
        find: FindPlace = lambda path: None,
        beside: Iterable[str] = (),
    ) -> None:
        super().__init__(values or {})
        self.beside = frozenset(beside)
        self._path = path
        self._find = find

    def without_places(self) -> PluginTable:
        """The same for a check whose caller tells the place."""
        return PluginTable(self, self._path, beside=self.beside)

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
    """Per million tokens; None is not known. See :class:`openheim.pricing.Price`."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None


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
    thinking: str | int | Mapping[str, str | int] | None = None
    fallback: tuple[str, ...] = ()
    price: PriceSection | None = None
    options: PluginTable = field(default_factory=PluginTable)

    def thinking_of(self, model: str) -> str | int | None:
        """What is said of this model, or else of those that nothing is said of; None if neither is."""
        if isinstance(self.thinking, str | int) or self.thinking is None:
            return self.thinking
        return self.thinking.get(model, self.thinking.get("default"))


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
    """``[http]``: the proxy, and the certificate authorities to trust; None for what the environment says."""

    proxy: str | None = field(default=None, repr=False)
    ca_file: str | None = None


@dataclass(slots=True)
class PermissionsSection:
    """``[permissions]``: who decides on calls of tools, in which mode, and rules that decide first."""

    gate: str = "ask"
    mode: str = "default"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


@dataclass(slots=True)
class ContextSection:
    """``[context]``: what is done when the window is full, and the tokens kept free for the reply."""

    strategy: str = "trim"
    reserve_tokens: int | None = None


@dataclass(slots=True)
class SessionsSection:
    """``[sessions]``: how many are kept in memory at most, and for how many seconds without use."""

    max_live: int = 512
    idle_secs: float = 604_800


@dataclass(slots=True)
class MemorySection:
    """``[memory]``: who makes embeddings, where they are kept, and how many hits a search gives."""

    embedding_provider: str | None = None
    embedding_model: str | None = None
    db_path: str | None = None
    top_k: int = 5


@dataclass(slots=True)
class TuiSection:
    """``[tui]``: how the terminal interface looks."""

    theme_color: str = "gray"


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
    context: ContextSection = field(default_factory=ContextSection)
    sessions: SessionsSection = field(default_factory=SessionsSection)
    http: HttpSection = field(default_factory=HttpSection)
    mcp_servers: Mapping[str, McpServerEntry] = field(default_factory=dict)
    memory: MemorySection = field(default_factory=MemorySection)
    tui: TuiSection = field(default_factory=TuiSection)

    @classmethod
    def from_values(cls, values: Mapping[str, Any], find: FindPlace = lambda path: None) -> Config:
        """The settings that checked ``values`` give; keys that are not known are left out.

        Args:
            find: tells where a value was given, for errors about keys that belong to plugins.
        """
        given = dict(values)
        for name, section in _SECTIONS.items():
            if name in given:
                given[name] = _section(section, given[name])
        for name in _PLUGIN_TABLES:
            if name in given:
                given[name] = {key: PluginTable(table, (name, key), find) for key, table in given[name].items()}
        if "providers" in given:
            given["providers"] = {key: _provider(key, table, find) for key, table in given["providers"].items()}
        if "mcp_servers" in given:
            given["mcp_servers"] = {key: _section(McpServerEntry, table) for key, table in given["mcp_servers"].items()}
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


def _provider(name: str, table: Mapping[str, Any], find: FindPlace) -> ProviderEntry:
    known = {one.name for one in fields(ProviderEntry)} - {"options"}
    given = {key: value for key, value in table.items() if key in known}
    if "price" in given:
        given["price"] = _section(PriceSection, given["price"])
    own = {key: value for key, value in table.items() if key not in known}
    given["options"] = PluginTable(own, ("providers", name), find, beside=known)
    return _section(ProviderEntry, given)
