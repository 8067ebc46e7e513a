"""The plugin host: calls the hooks of plugins, which are loaded when they are needed."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from openheim.errors import (
    ConfigError,
    OpenheimError,
    PluginConflictError,
    PluginDisabledError,
    PluginLoadError,
)
from openheim.plugins import problems
from openheim.plugins.loader import PluginLoader
from openheim.plugins.settings import check_settings
from openheim.plugins.supervision import supervised
from openheim.plugins.toolsets import OfferedTool, checked_tools, settle

if TYPE_CHECKING:
    from openheim.embeddings import Embedder
    from openheim.findings import Finding
    from openheim.gates import Gate
    from openheim.http import HttpClient
    from openheim.plugins.catalogue import Candidate
    from openheim.plugins.observing import Observer
    from openheim.plugins.registry import LoadedPlugin
    from openheim.plugins.wrapping import ProblemOf
    from openheim.providers import Provider, ProviderSettings
    from openheim.tools import ToolsContext
    from openheim.transports import Transport

__all__ = ("PluginHost",)


class PluginHost(PluginLoader):
    """Calls the hooks of plugins, and loads those that it needs. Arguments as for the loader."""

    #: The general plugins, as the loader listed them, and their observers.
    _observing: tuple[list[LoadedPlugin], tuple[Observer, ...]] | None = None

    # Calling one plugin

    def settings_model(self, kind: str, name: str) -> Any:
        """The plugin's pydantic ``Settings``, or None. Loads the plugin; raises as :meth:`load` does."""
        return self.load(kind, name).settings_model

    def validate_settings(self, kind: str, name: str, table: Mapping[str, Any], *, where: str) -> Any:
        """An instance of the plugin's ``Settings``, or None for a plugin without.

        Args:
            table: the plugin's keys of its section.
            where: names the section in errors, ``[tools.fs]``.

        Raises:
            ConfigError: a key is unknown, missing or wrong.
            PluginError: as :meth:`load`.
        """
        return self._settings(self.load(kind, name), table, where)

    def create_provider(self, kind: str, settings: ProviderSettings, http: HttpClient) -> Provider:
        """Creates the provider of one entry of ``[providers]``.

        Raises:
            PluginError: the plugin cannot be used, or its hook failed or returned no provider.
            OpenheimError: whatever error of ours the hook raised.
        """
        arguments = {"kind": kind, "settings": settings, "http": http}
        provider: Provider = self._create(
            "providers", kind, "openheim_create_provider", arguments, members=("generate", "wire", "default_model")
        )
        return provider

    def create_embedder(self, kind: str, settings: ProviderSettings, model: str, http: HttpClient) -> Embedder:
        """Creates the embedder of one entry of ``[providers]``. Raises as :meth:`create_provider`."""
        arguments = {"kind": kind, "settings": settings, "model": model, "http": http}
        embedder: Embedder = self._create(
            "embeddings", kind, "openheim_create_embedder", arguments, members=("embed", "dimension")
        )
        return embedder

    def create_transport(self, name: str, settings: Any) -> Transport:
        """Creates a transport, with ``settings`` from :meth:`validate_settings`. Raises as :meth:`create_provider`."""
        arguments = {"name": name, "settings": settings}
        transport: Transport = self._create(
            "transports", name, "openheim_create_transport", arguments, members=("serve", "command")
        )
        return transport

    def create_gate(self, name: str, settings: Any) -> Gate:
        """Creates a gate, with ``settings`` from :meth:`validate_settings`. Raises as :meth:`create_provider`."""
        arguments = {"name": name, "settings": settings}
        gate: Gate = self._create("gates", name, "openheim_create_gate", arguments, members=("decide",))
        return gate

    # Calling many plugins

    def tools(
        self,
        context: ToolsContext,
        tables: Mapping[str, Mapping[str, Any]] | None = None,
        only: Collection[str] | None = None,
    ) -> list[OfferedTool]:
        """The tools of every enabled toolset, sorted by name.

        A toolset that fails, and an object that is no tool, are reported and left out; so is the loser of a clash.

        Args:
            context: where tools may work.
            tables: toolset to its section ``[tools.NAME]``.
            only: if not None, ask these toolsets only.

        Raises:
            ConfigError: a toolset's section is wrong.
            OpenheimError: under a strict policy, instead of reporting.
        """
        tables = tables or {}
        installed = self.names("tools")
        for name in sorted({*tables, *(only or ())}.difference(installed)):
            self._set_aside(problems.not_found("tools", name, installed))
        offers: list[OfferedTool] = []
        for name in installed:
            if only is not None and name not in only:
                continue
            try:
                offers += self._toolset(name, context, tables.get(name, {}))
            except PluginDisabledError:
                continue
            except ConfigError:
                # The settings are wrong, not the plugin: going on without its tools would only hide it.
                raise
            except OpenheimError as err:
                loaded = self._loaded.get(("tools", name))
                self._set_aside(err, what=f"toolset {name}" + (f" ({loaded.candidate.origin})" if loaded else ""))
        offered, clashes = settle(offers)
        for line in clashes:
            self._set_aside(PluginConflictError(line, hint="disable one of the toolsets to choose"))
        return offered

    def observers(self) -> tuple[Observer, ...]:
        """The ``openheim_observe`` of every general plugin, resolved once. They may raise: the caller isolates them."""
        with self._lock:
            general = self._general_plugins()
            if self._observing is None or self._observing[0] is not general:
                from openheim.plugins.observing import make_observer

                observers = tuple(
                    make_observer(loaded, implementation)
                    for loaded in general
                    for implementation in self._registry.implementations("openheim_observe", loaded)
                )
                self._observing = general, observers
            return self._observing[1]

    def commands(self) -> dict[str, Any]:
        """The commands that general plugins add, name to ``typer.Typer``.

        A plugin whose hook fails is reported and left out. Of two commands of one name the first plugin's counts.
        """
        found: dict[str, Any] = {}
        for loaded in self._general_plugins():
            try:
                for offered in self._call(loaded, "openheim_commands", {}, _no_list):
                    if not isinstance(offered, Mapping):
                        what = f"it returned {type(offered).__name__} instead of a mapping"
                        raise self._hook_failed(loaded, "openheim_commands", what)
                    try:
                        commands = dict(offered)
                    except (Exception, SystemExit) as err:  # a stranger's mapping may raise anything
                        raise self._hook_failed(loaded, "openheim_commands", err) from err
                    for name, command in commands.items():
                        if found.setdefault(name, command) is not command:
                            self._report_once(f"command {name!r} of {loaded.candidate.origin} is left out: it is taken")
            except OpenheimError as err:
                self._set_aside(err)
        return found

    def findings(self, context: ToolsContext, tables: Mapping[str, Mapping[str, Any]] | None = None) -> list[Finding]:
        """What toolsets and general plugins find out about themselves, for ``openheim doctor``.

        A plugin that fails is reported and left out. So is one whose settings are wrong, which :meth:`tools` tells of.

        Args:
            context, tables: as in :meth:`tools`.
        """
        from openheim.plugins.examining import checked_findings

        found: list[Finding] = []
        for kind, name in [("tools", name) for name in self.names("tools")] + [
            ("plugins", loaded.name) for loaded in self._general_plugins()
        ]:
            try:
                loaded = self.load(kind, name)
                if not self._registry.implementations("openheim_examine", loaded):
                    continue
                table = (tables or {}).get(name, {})
                settings = self._settings(loaded, table, f"[tools.{name}]") if kind == "tools" else None
                arguments = {"settings": settings, "context": context}
                findings, faults = checked_findings(self._call(loaded, "openheim_examine", arguments, _no_list))
            except (PluginDisabledError, ConfigError):
                continue
            except OpenheimError as err:
                self._set_aside(err, what=f"the examination by {kind}.{name}")
                continue
            found += findings
            for fault in faults:
                self._set_aside(self._hook_failed(loaded, "openheim_examine", fault))
        return found

    # Inside

    def _toolset(self, name: str, context: ToolsContext, table: Mapping[str, Any]) -> list[OfferedTool]:
        loaded = self.load("tools", name)
        self._general_plugins()  # Their wrappers may ask for settings.
        settings = None
        # A settings model takes pydantic, which most starts do without.
        if table or self._registry.takes("openheim_tools", loaded, "settings"):
            settings = self._settings(loaded, table, f"[tools.{name}]")
        arguments = {"settings": settings, "context": replace(context, settings=table)}
        returned = self._call(loaded, "openheim_tools", arguments, _no_list)
        # Schemas may be made only when they are looked at.
        with supervised(f"Plugin {loaded.candidate.label} ({loaded.candidate.origin}) is describing its tools"):
            tools, faults = checked_tools(returned)
        for fault in faults:
            self._set_aside(self._hook_failed(loaded, "openheim_tools", fault))
        return [OfferedTool(tool, tool.name, name, loaded.distribution) for tool in tools]

    def _settings(self, loaded: LoadedPlugin, table: Mapping[str, Any], where: str) -> Any:
        model = loaded.settings_model
        try:
            return check_settings(model, table, where=where)
        except OpenheimError:
            raise
        except (Exception, SystemExit) as err:  # what a validator raises, beside what pydantic expects of it
            candidate = loaded.candidate
            # Neither its words nor the error itself: they may quote a secret.
            what = f"its settings model raised {type(err).__name__}"
            raise problems.load_failed(candidate.label, candidate.origin, what, doing=f"check {where}") from None

    def _create(self, kind: str, name: str, hook: str, arguments: dict[str, Any], *, members: Sequence[str]) -> Any:
        def problem_of(created: Any) -> str:
            if created is None:
                return "it returned None"
            missing = [member for member in members if not hasattr(created, member)]
            return f"it returned {type(created).__name__}, which has no {' and no '.join(missing)}" if missing else ""

        return self._call(self.load(kind, name), hook, arguments, problem_of)

    def _call(self, loaded: LoadedPlugin, hook: str, arguments: dict[str, Any], problem_of: ProblemOf) -> Any:
        """What a hook of one plugin returned; ``problem_of`` says why that is no answer."""
        # They may wrap the hook, so they have to be there first.
        self._general_plugins()

        def problem_with(returned: Any) -> str:
            for one in returned if isinstance(returned, list) else [returned]:
                if inspect.iscoroutine(one):
                    one.close()
                    return "it returned a coroutine; hooks return objects"
            return problem_of(returned)

        def wrapper_failed(culprit: Candidate, problem: BaseException | str) -> None:
            err = problems.load_failed(culprit.label, culprit.origin, problem, doing=f"wrap {hook}")
            err.__cause__ = problem if isinstance(problem, BaseException) else None
            self._failed[culprit] = err
            self._set_aside(err)

        try:
            result = self._registry.call(loaded, hook, arguments, problem_of=problem_with, on_fault=wrapper_failed)
            fault = problem_with(result)
        except OpenheimError:
            raise
        except (Exception, SystemExit) as err:
            raise self._hook_failed(loaded, hook, err) from err
        if fault:
            raise self._hook_failed(loaded, hook, fault)
        self._failed.pop(loaded.candidate, None)
        return result

    def _hook_failed(self, loaded: LoadedPlugin, hook: str, problem: BaseException | str) -> PluginLoadError:
        candidate = loaded.candidate
        err = problems.load_failed(candidate.label, candidate.origin, problem, doing=f"run {hook}")
        self._failed[candidate] = err
        return err


def _no_list(returned: Any) -> str:
    """Why the outcome of a hook that gathers is none; pluggy makes a list of what each implementation returned."""
    return "" if isinstance(returned, list) else f"it returned {type(returned).__name__} instead of the list it got"
