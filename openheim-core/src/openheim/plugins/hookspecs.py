"""Every hook that openheim calls. This is the one public list; ``docs/reference/hooks.md`` mirrors it.

Hooks are synchronous and return objects; whatever is asynchronous lives on the objects. pluggy takes the un-awaited
coroutine of an async implementation for its answer, so such an implementation is refused when it is registered. An
implementation may take fewer arguments than the specification has, by name.

A plugin of group ``openheim.plugins`` may wrap the hooks that create something and ``openheim_tools``
(``@hookimpl(wrapper=True)``); wrappers of other plugins are not called. One that fails is reported under its own name
and not called again, and what it wraps goes on without it. What a hook prints goes to standard error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openheim.embeddings import Embedder
    from openheim.events import Event
    from openheim.findings import Finding
    from openheim.gates import Gate
    from openheim.http import HttpClient
    from openheim.providers import Provider, ProviderSettings
    from openheim.tools import Tool, ToolsContext
    from openheim.transports import Transport

__all__ = (
    "hookimpl",
    "hookspec",
    "openheim_commands",
    "openheim_create_embedder",
    "openheim_create_gate",
    "openheim_create_provider",
    "openheim_create_transport",
    "openheim_examine",
    "openheim_observe",
    "openheim_tools",
)

hookspec = pluggy.HookspecMarker("openheim")
hookimpl = pluggy.HookimplMarker("openheim")


@hookspec(firstresult=True)
def openheim_create_provider(kind: str, settings: ProviderSettings, http: HttpClient) -> Provider | None:
    """Creates the provider of one ``[providers.NAME]`` entry.

    Called once per entry and process, when the entry is first used, and only on the plugin whose entry point in group
    ``openheim.providers`` is named ``kind``.

    Args:
        kind: the name that the plugin was found under; a plugin that offers several tells them apart by it.
        settings: the entry; ``settings.options`` is an instance of the plugin's own ``Settings``, if it has one.
        http: the client to make requests with. The plugin does not close it.

    Returns:
        The provider. None means that the plugin does not know the kind after all, which is an error.

    An exception is that entry's error: the command that asked for it fails with one line naming plugin and cause.
    """


@hookspec(firstresult=True)
def openheim_create_embedder(kind: str, settings: ProviderSettings, model: str, http: HttpClient) -> Embedder | None:
    """Creates the embedder of one ``[providers.NAME]`` entry and one of its models.

    Called once per process, when embeddings are first needed, and only on the plugin whose entry point in group
    ``openheim.embeddings`` is named ``kind``. Arguments, None and exceptions: as in ``openheim_create_provider``.

    Args:
        model: the model that makes the embeddings, never blank; ``settings.default_model`` is one that writes text.
    """


@hookspec
def openheim_tools(settings: Any, context: ToolsContext) -> Sequence[Tool]:
    """Returns the tools of a toolset.

    Called once per runtime on every enabled plugin of group ``openheim.tools``, before the first prompt that may use
    tools.

    Args:
        settings: an instance of the plugin's own ``Settings`` from ``[tools.NAME]``, or None if it has no such model.
            A hook that does without spares starts whose settings have no such section the import of pydantic; its tools
            find the section in ``turn.settings``.
        context: where the session may work, and what the settings allow.

    Returns:
        Tools, possibly none. None counts as none. Names must differ from each other; on a clash with another plugin the
        first-party tool wins, else the one of the alphabetically first distribution, with a warning.

    An exception disables the toolset for this process, with one line on stderr; the others go on. Only a
    ``ConfigError`` is the command's error.
    """
    return ()  # A hookspec is only a signature: plugins implement it, and nothing calls it.


@hookspec(firstresult=True)
def openheim_create_transport(name: str, settings: Any) -> Transport | None:
    """Creates a transport.

    Called once, by the subcommand ``name``, on the plugin whose entry point in group ``openheim.transports`` has that
    name.

    Args:
        name: the subcommand.
        settings: an instance of the plugin's own ``Settings`` from ``[transports.NAME]``, or None.

    Returns:
        The transport. None is an error. An exception is the command's error.
    """


@hookspec(firstresult=True)
def openheim_create_gate(name: str, settings: Any) -> Gate | None:
    """Creates a permission gate.

    Called once per session that names it, on the plugin whose entry point in group ``openheim.gates`` has that name.

    Args:
        name: the gate's name.
        settings: an instance of the plugin's own ``Settings`` from ``[gates.NAME]``, or None.

    Returns:
        The gate. None or an exception fails the creation of the session: without its gate it must not run.
    """


@hookspec
def openheim_observe(event: Event, session_id: str) -> None:
    """Sees what happens in sessions, for logs and metrics.

    Called on every plugin of group ``openheim.plugins``, on the event loop, for each event that is no delta, in order.

    Args:
        event: one of :mod:`openheim.events`; not to be changed or kept for long.
        session_id: the session it belongs to.

    The return value is ignored. An exception is reported once and the plugin is not called again in this process.
    """


@hookspec
def openheim_examine(settings: Any, context: ToolsContext) -> Sequence[Finding]:
    """Says what works on this machine and what does not, for ``openheim doctor``.

    Called by that command only, on every enabled plugin of the groups ``openheim.tools`` and ``openheim.plugins``.

    Args:
        settings: a toolset's: as in ``openheim_tools``; None for a general plugin.
        context: as a session in this directory would have it.

    Returns:
        Findings, in the order to show them in; None counts as none. It may take a few seconds and must not change
        anything.

    An exception is reported as a problem of the plugin; the others go on.
    """
    return ()  # A hookspec is only a signature: plugins implement it, and nothing calls it.


@hookspec
def openheim_commands() -> Mapping[str, Any]:
    """Adds commands to the command line.

    Called on every plugin of group ``openheim.plugins`` when the command given is none of openheim's own.

    Returns:
        Command names to ``typer.Typer`` objects. None counts as none. A name that openheim itself uses is ignored.

    An exception is reported with one line on stderr; the others go on.
    """
    return {}  # A hookspec is only a signature: plugins implement it, and nothing calls it.
