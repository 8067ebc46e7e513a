"""Commands that plugins bring: one for each transport, and what ``openheim_commands`` adds.

They are looked for only when the command given is none of openheim's own, so that nothing else pays for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from openheim.cli.lean import LeanCommand
from openheim.errors import UsageError
from openheim.plugins.first_party import distribution_of

if TYPE_CHECKING:
    from openheim.config.load import LoadedConfig
    from openheim.plugins.host import PluginHost
    from openheim.transports import Transport

__all__ = ("TRANSPORT_COMMANDS", "plugin_command")

#: What the commands of openheim's own transports are about; ``--help`` lists them whether they are installed or not.
TRANSPORT_COMMANDS = {
    "acp": "ACP agent on standard input and output",
    "serve": "WebSocket and REST server",
    "gateway": "HTTP gateway",
    "web": "Gateway with a browser",
}


def plugin_command(name: str) -> Any:
    """The command of a plugin, or None if there is none.

    Raises:
        UsageError: it belongs to a package that is not installed; the hint says which.
        PluginError: its plugin cannot be used.
    """
    from openheim.cli.starting import make_host, read_settings

    loaded = read_settings()
    host = make_host(loaded)
    if name in host.names("transports"):
        return _transport_command(name, loaded, host)
    added = host.commands().get(name)
    if added is not None:
        return typer.main.get_command(added)
    distribution = distribution_of("transports", name)
    if distribution is not None:
        raise UsageError(f"the command {name!r} is not installed", hint=f"pip install {distribution}")
    return None


def _transport_command(name: str, loaded: LoadedConfig, host: PluginHost) -> Any:
    table = loaded.config.transports.get(name, {})
    settings = host.validate_settings("transports", name, table, where=f"[transports.{name}]")
    transport = host.create_transport(name, settings)
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name, cls=LeanCommand)(transport.command)
    command = typer.main.get_command(app)
    read_options = command.callback
    assert read_options is not None
    # The transport's own function only reads the command line; what it returns is what to serve with.
    command.callback = lambda **given: _serve(transport, read_options(**given), loaded, host)
    return command


def _serve(transport: Transport, options: Any, loaded: LoadedConfig, host: PluginHost) -> int:
    import anyio

    from openheim.cli.starting import note
    from openheim.runtime import Runtime

    # The settings and the plugins that the transport itself was made with.
    runtime = Runtime(loaded, host, report=note)

    async def serve() -> None:
        async with runtime:
            await transport.serve(runtime, options)

    anyio.run(serve)
    return 0
