"""What is loaded, registered with pluggy, and how its hooks are called."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pluggy

from openheim.plugins import hookspecs, problems
from openheim.plugins.catalogue import Candidate, Catalogue, plugin_key
from openheim.plugins.registration import Refused, checked_hooks
from openheim.plugins.supervision import supervised
from openheim.plugins.wrapping import Wrapper, call_wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from openheim.plugins.policy import PluginPolicy
    from openheim.plugins.wrapping import OnFault, ProblemOf

__all__ = ("LoadedPlugin", "Registry")


@dataclass(frozen=True, slots=True, eq=False)
class LoadedPlugin:
    """A plugin that is loaded.

    Args:
        plugin: the module or object that stands at the entry point.
        candidate: where it came from.
        load_ms: how long its import took; 0 for one that was given.
    """

    plugin: Any
    candidate: Candidate
    load_ms: float = 0.0

    @property
    def kind(self) -> str:
        return self.candidate.kind

    @property
    def name(self) -> str:
        return self.candidate.name

    @property
    def distribution(self) -> str:
        return self.candidate.distribution

    @property
    def settings_model(self) -> Any:
        """The pydantic model that the plugin exposes as ``Settings``, or None. Reading it may import pydantic.

        Raises:
            PluginLoadError: ``Settings`` is something else, or a lazy one could not be made.
        """
        candidate = self.candidate
        try:
            with supervised(f"Plugin {candidate.label} ({candidate.origin}) is making its settings model"):
                model = getattr(self.plugin, "Settings", None)
        except (Exception, SystemExit) as err:
            raise problems.load_failed(candidate.label, candidate.origin, err) from err
        if model is None:
            return None
        from pydantic import BaseModel

        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            raise problems.load_failed(candidate.label, candidate.origin, "its Settings is no pydantic model")
        return model


class Registry:
    """The loaded plugins, behind pluggy. Names that the policy switches off are blocked."""

    def __init__(self, catalogue: Catalogue, policy: PluginPolicy) -> None:
        self._manager = pluggy.PluginManager("openheim")
        self._manager.add_hookspecs(hookspecs)
        self._registered: dict[Candidate, Any] = {}
        #: Hooks that have come back in good time once.
        self._proved: set[tuple[Candidate, str]] = set()
        #: General plugins by label, and those of them with a wrapper that failed.
        self._general: dict[str, Candidate] = {}
        self._faulty: set[Candidate] = set()
        for rivals in catalogue.groups():
            if all(policy.reason_disabled(candidate) for candidate in rivals):
                self._manager.set_blocked(rivals[0].label)
        for pattern in policy.disable:
            # Nothing installed need have the name: a program may come to register it.
            named = plugin_key(pattern)
            if named is not None:
                self._manager.set_blocked(":".join(named))
        if os.environ.get("OPENHEIM_TRACE_PLUGINS", "") not in ("", "0"):
            from openheim.plugins.tracing import trace_hook_calls

            trace_hook_calls(self._manager)

    def is_blocked(self, candidate: Candidate) -> bool:
        return self._manager.is_blocked(candidate.label)

    def add(self, loaded: LoadedPlugin) -> None:
        """Registers a plugin as ``kind:name``. Nothing is left registered when it is refused.

        Raises:
            PluginLoadError: it is no plugin of its kind.
        """
        candidate, plugin = loaded.candidate, loaded.plugin
        try:
            hooks = checked_hooks(self._manager, plugin, candidate.kind)
            # pluggy takes each object once, and one module may stand at several entry points.
            registered = _SameUnderAnotherName(plugin, hooks) if self._manager.is_registered(plugin) else plugin
            self._manager.register(registered, name=candidate.label)
        except Refused as err:
            raise problems.load_failed(candidate.label, candidate.origin, str(err)) from None
        except (Exception, SystemExit) as err:
            # What pluggy finds beyond our checks; and a stranger's object may raise when it is looked at.
            if self._manager.has_plugin(candidate.label):
                self._manager.unregister(name=candidate.label)
            raise problems.load_failed(candidate.label, candidate.origin, err) from err
        self._registered[candidate] = registered
        if candidate.kind == "plugins":
            self._general[candidate.label] = candidate

    def implementations(self, hook: str, loaded: LoadedPlugin) -> Sequence[pluggy.HookImpl]:
        """The plugin's own implementations of a hook."""
        own = self._registered[loaded.candidate]
        return [found for found in self._caller(hook).get_hookimpls() if found.plugin is own]

    def takes(self, hook: str, loaded: LoadedPlugin, argument: str) -> bool:
        """Whether the plugin's implementation of a hook, or a wrapper around it, asks for this argument."""
        own = self._registered[loaded.candidate]
        return any(
            argument in one.argnames
            for one in self._caller(hook).get_hookimpls()
            if one.plugin is own or self._wrapper(one, hook) is not None
        )

    def call(
        self,
        loaded: LoadedPlugin,
        hook: str,
        arguments: dict[str, Any],
        *,
        problem_of: ProblemOf,
        on_fault: OnFault,
    ) -> Any:
        """Calls a hook of one plugin, inside the wrappers of general plugins and of nobody else.

        Args:
            problem_of, on_fault: see :mod:`openheim.plugins.wrapping`. A general plugin whose wrapper failed is not
                called again, here or for another plugin.
        """
        own, candidate = self._registered[loaded.candidate], loaded.candidate
        implementations = self._caller(hook).get_hookimpls()
        caller = self._manager.subset_hook_caller(
            hook, [one.plugin for one in implementations if one.plugin is not own]
        )

        def inner() -> Any:
            if (candidate, hook) in self._proved:
                # Watching takes a thread, and some hooks are called for every session.
                return caller(**arguments)
            with supervised(f"Plugin {candidate.label} ({candidate.origin}) is running {hook}"):
                returned = caller(**arguments)
            self._proved.add((candidate, hook))
            return returned

        # pluggy calls the last one first, so that is the outermost.
        wrappers = [self._wrapper(one, hook) for one in reversed(implementations) if one.plugin is not own]
        present = [wrapper for wrapper in wrappers if wrapper is not None]
        if not present:
            return inner()

        def set_aside(culprit: Candidate, problem: BaseException | str) -> None:
            self._faulty.add(culprit)
            on_fault(culprit, problem)

        return call_wrapped(present, inner, arguments, problem_of=problem_of, on_fault=set_aside)

    def _wrapper(self, implementation: pluggy.HookImpl, hook: str) -> Wrapper | None:
        """The implementation, if it wraps for all. Wrappers of other kinds would count or not by what is loaded."""
        candidate = self._general.get(implementation.plugin_name)
        if candidate is None or candidate in self._faulty or not implementation.wrapper:
            return None
        function = cast(
            "Callable[..., Generator[None, Any, Any]]", implementation.function
        )  # checked when it was added
        return Wrapper(candidate, hook, function, implementation.argnames)

    def _caller(self, hook: str) -> pluggy.HookCaller:
        caller: pluggy.HookCaller = getattr(self._manager.hook, hook)
        return caller


class _SameUnderAnotherName:
    """Stands for an object that is registered already."""

    def __init__(self, plugin: Any, hooks: Sequence[str]) -> None:
        for attribute in hooks:
            setattr(self, attribute, getattr(plugin, attribute))
