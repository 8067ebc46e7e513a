"""Loads plugins by name, once, and remembers what could not be loaded."""

from __future__ import annotations

import logging
import threading
import traceback
from typing import TYPE_CHECKING, Any

from openheim.errors import PluginConflictError, PluginDisabledError, PluginError, PluginLoadError
from openheim.plugins import problems
from openheim.plugins.catalogue import KINDS, Candidate, Catalogue, scan

if TYPE_CHECKING:
    from collections.abc import Callable

    from openheim.errors import OpenheimError
    from openheim.plugins.policy import PluginPolicy, Ruling
    from openheim.plugins.registry import LoadedPlugin, Registry

__all__ = ("PluginLoader",)

logger = logging.getLogger(__name__)


class PluginLoader:
    """Loads plugins by name.

    Nothing is imported before it is asked for, pluggy and stevedore included. What fails to load is remembered and not
    tried again. Methods may be called from any thread; loading is serialised.

    Args:
        policy: which plugins may be used.
        report: called with one line for each plugin that is set aside and each clash between tools, once per line.
        catalogue: what is installed; if None, ``sys.path`` is scanned when first needed.
        debug: print a traceback on standard error for each plugin that is set aside.
    """

    def __init__(
        self,
        policy: PluginPolicy,
        *,
        report: Callable[[str], None],
        catalogue: Catalogue | None = None,
        debug: bool = False,
    ) -> None:
        self.policy = policy
        self._report = report
        self._debug = debug
        self._lock = threading.RLock()
        self._catalogue = catalogue
        self._made_registry: Registry | None = None
        self._loaded: dict[tuple[str, str], LoadedPlugin] = {}
        self._failed: dict[Candidate, PluginLoadError] = {}
        self._general: list[LoadedPlugin] | None = None
        self._reported: set[str] = set()

    @property
    def catalogue(self) -> Catalogue:
        """What is installed."""
        if self._catalogue is None:
            self._catalogue = scan()
        return self._catalogue

    def names(self, kind: str) -> list[str]:
        """The names installed or given of one kind, sorted, whether they may be used or not."""
        return sorted({*self.catalogue.names(kind), *(name for given, name in self._loaded if given == kind)})

    def load(self, kind: str, name: str) -> LoadedPlugin:
        """The plugin of that kind and name, imported and registered when it is first asked for.

        Raises:
            PluginNotFoundError, PluginConflictError, PluginDisabledError, PluginIncompatibleError: none may be used.
            PluginLoadError: its import failed, or what stands at its entry point is no plugin of this kind.
        """
        with self._lock:
            loaded = self._loaded.get((kind, name))
            if loaded is not None:
                return loaded
            candidate = self._winner(kind, name)
            if candidate in self._failed:
                raise self._failed[candidate].with_traceback(None)
            from openheim.plugins.loading import import_candidate

            try:
                return self._adopt(import_candidate(candidate))
            except PluginLoadError as err:
                self._failed[candidate] = err
                raise

    def register(self, plugin: Any, *, kind: str, name: str, distribution: str = "(given)") -> LoadedPlugin:
        """Adds a plugin that has no entry point, for programs that embed openheim and for tests.

        It goes before an installed plugin of that kind and name, unless that one is loaded already.

        Args:
            plugin: a module or object with hook implementations.
            distribution: what messages name as its origin.

        Raises:
            PluginConflictError: that kind and name is taken.
            PluginDisabledError: the settings switch it off.
            PluginLoadError: it is no plugin of this kind.
        """
        from openheim.plugins.registry import LoadedPlugin

        if kind not in KINDS:
            raise ValueError(f"unknown kind {kind!r}, not one of {', '.join(KINDS)}")
        candidate = Candidate(kind, name, value=type(plugin).__name__, distribution=distribution, version="")
        with self._lock:
            taken = self._loaded.get(candidate.key)
            if taken is not None:
                raise PluginConflictError(
                    f"{candidate.label} is registered already, by {taken.distribution}", hint="give it another name"
                )
            if self._registry.is_blocked(candidate):
                raise problems.disabled(candidate, f"switched off by {self.policy.disable_source}")
            return self._adopt(LoadedPlugin(plugin, candidate))

    def rows(self) -> list[Ruling]:
        """The listing, with the states that plugins have in this process (``listing.row_to_dict`` makes it JSON)."""
        from openheim.plugins.listing import rows
        from openheim.plugins.policy import Ruling

        live: dict[Candidate, Ruling] = {}
        for loaded in self._loaded.values():
            live[loaded.candidate] = Ruling(loaded.candidate, "loaded", f"in {loaded.load_ms:.0f} ms")
        for candidate, err in self._failed.items():
            live[candidate] = Ruling(candidate, "error", problems.note_of(err))
        installed = list(rows(self.catalogue, self.policy, live))
        listed = {row.candidate for row in installed}
        return installed + [row for row in live.values() if row.candidate not in listed]

    # For whoever calls the plugins

    @property
    def _registry(self) -> Registry:
        if self._made_registry is None:
            from openheim.plugins.registry import Registry

            self._made_registry = Registry(self.catalogue, self.policy)
        return self._made_registry

    def _winner(self, kind: str, name: str) -> Candidate:
        by_status: dict[str, list[tuple[Candidate, str]]] = {}
        for ruling in self.policy.judge(self.catalogue.named(kind, name)):
            by_status.setdefault(ruling.status, []).append((ruling.candidate, ruling.note))
        match by_status:
            case {"available": [(candidate, _note)]}:
                return candidate
            case {"conflict": rivals}:
                raise problems.conflict(kind, name, [candidate for candidate, _note in rivals])
            case {"incompatible": [(candidate, note), *_]}:
                raise problems.incompatible(candidate, note)
            case {"disabled": [(candidate, note), *_]}:
                raise problems.disabled(candidate, note)
            case _:
                raise problems.not_found(kind, name, self.names(kind))

    def _adopt(self, loaded: LoadedPlugin) -> LoadedPlugin:
        self._registry.add(loaded)
        self._loaded[loaded.candidate.key] = loaded
        if loaded.kind == "plugins":
            self._general = None
        return loaded

    def _general_plugins(self) -> list[LoadedPlugin]:
        """Every enabled plugin of kind ``plugins``, loaded when first asked for, in the order of their names."""
        with self._lock:
            if self._general is None:
                general: list[LoadedPlugin] = []
                for name in self.names("plugins"):
                    try:
                        general.append(self.load("plugins", name))
                    except PluginDisabledError:
                        continue
                    except PluginError as err:
                        self._set_aside(err)
                self._general = general
            return self._general

    def _set_aside(self, err: OpenheimError, *, what: str = "") -> None:
        """Reports an error that concerns one plugin only, or raises it under a strict policy."""
        if self.policy.strict:
            raise err
        # Errors about plugins name the plugin themselves.
        line = str(err) if isinstance(err, PluginError) or not what else f"{what} is left out: {err}"
        logger.debug("%s", line, exc_info=err)
        if self._report_once(line) and self._debug:
            traceback.print_exception(err)

    def _report_once(self, line: str) -> bool:
        if line in self._reported:
            return False
        self._reported.add(line)
        self._report(line)
        return True
