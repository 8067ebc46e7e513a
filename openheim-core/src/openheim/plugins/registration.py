"""Whether an object can be a plugin: its hooks checked against the specifications, in words for its author."""

from __future__ import annotations

import inspect
import types
from typing import TYPE_CHECKING, Any

from openheim._slips import closest

if TYPE_CHECKING:
    import pluggy

__all__ = ("ESSENTIAL_HOOKS", "Refused", "checked_hooks", "unmarked_hooks")

#: The hook without which a plugin of that kind is of no use. Those of kind ``plugins`` choose among the others.
ESSENTIAL_HOOKS = {
    "providers": "openheim_create_provider",
    "embeddings": "openheim_create_embedder",
    "tools": "openheim_tools",
    "transports": "openheim_create_transport",
    "gates": "openheim_create_gate",
}

#: Hooks that are called plugin by plugin, so that there is nothing to wrap.
_NOT_WRAPPED = ("openheim_observe", "openheim_commands", "openheim_examine")


class Refused(Exception):
    """An object cannot be a plugin; the message says why."""


def checked_hooks(manager: pluggy.PluginManager, plugin: Any, kind: str) -> list[str]:
    """The names of the attributes of ``plugin`` that implement hooks.

    Raises:
        Refused: it is no plugin of this kind.
    """
    if inspect.isclass(plugin):
        raise Refused(f"{plugin.__name__} is a class; an entry point names a module or an object with hooks")
    attributes: list[str] = []
    implemented: set[str] = set()
    for attribute in dir(plugin):
        options = manager.parse_hookimpl_opts(plugin, attribute)
        if options is None:
            continue
        name = options.get("specname") or attribute
        if options.get("hookwrapper"):
            raise Refused(f"{name} is marked with hookwrapper=True, pluggy's old form; use wrapper=True")
        wraps = bool(options.get("wrapper"))
        specification = getattr(manager.hook, name, None)
        if specification is not None:
            _check(name, getattr(plugin, attribute), specification.spec.argnames, wraps)
        elif not options.get("optionalhook"):
            near = closest(name, list(vars(manager.hook)))
            raise Refused(f"{name} is no hook of openheim's{f' (did you mean {near}?)' if near else ''}")
        attributes.append(attribute)
        if not wraps:
            implemented.add(name)
    if not attributes:
        unmarked = unmarked_hooks(manager, plugin)
        raise Refused(f"{unmarked[0]} is not marked with @hookimpl" if unmarked else "it has no hook implementations")
    essential = ESSENTIAL_HOOKS.get(kind)
    if essential is not None and essential not in implemented:
        raise Refused(f"it does not implement {essential}, as a plugin of kind {kind} must")
    return attributes


def _check(name: str, function: Any, arguments: tuple[str, ...], wraps: bool) -> None:
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise Refused(f"{name} is async; hooks are plain functions that return objects, whose methods may be async")
    unknown = [argument for argument in inspect.signature(function).parameters if argument not in arguments]
    if unknown:
        raise Refused(f"{name} takes {', '.join(unknown)}; the hook has {', '.join(arguments) or 'no arguments'}")
    if wraps and name in _NOT_WRAPPED:
        raise Refused(f"{name} cannot be wrapped; implement it instead")
    if wraps and not inspect.isgeneratorfunction(function):
        raise Refused(f"{name} is marked as a wrapper and does not yield")


def unmarked_hooks(manager: pluggy.PluginManager, plugin: Any) -> list[str]:
    """Functions that are named like a hook and lack ``@hookimpl``, so that they are never called."""
    return [
        name
        for name in vars(manager.hook)
        if isinstance(getattr(plugin, name, None), types.FunctionType | types.MethodType)
        and manager.parse_hookimpl_opts(plugin, name) is None
    ]
