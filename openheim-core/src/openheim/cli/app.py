"""The root command and the table of subcommands."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer import _click as click

from openheim.cli.lean import TableGroup
from openheim.cli.options import take_global_options
from openheim.errors import UsageError

__all__ = ("COMMANDS", "RootGroup", "run_command")

COMMANDS = {
    "run": ("openheim.cli.run", "Answer one prompt and exit."),
    "sessions": ("openheim.cli.sessions", "List, search, copy and remove sessions."),
    "init": ("openheim.cli.init", "Write a commented config file."),
    "config": ("openheim.cli.config", "Show, check and change settings."),
    "skills": ("openheim.cli.skills", "List skills."),
    "plugins": ("openheim.cli.plugins", "List, check and switch plugins."),
    "tools": ("openheim.cli.tools", "List tools, or call one without a model."),
    "models": ("openheim.cli.models", "List the models that the settings allow."),
    "doctor": ("openheim.cli.doctor", "Say what works on this machine and what is missing."),
}


class RootGroup(TableGroup):
    table = COMMANDS

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = super().get_command(ctx, cmd_name)
        if found is None and not ctx.resilient_parsing:
            from openheim.cli.extensions import plugin_command

            found = plugin_command(cmd_name)
        return found

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        super().format_commands(ctx, formatter)
        from openheim.cli.extensions import TRANSPORT_COMMANDS
        from openheim.plugins.first_party import distribution_of

        rows = [(name, f"{line}: {distribution_of('transports', name)}") for name, line in TRANSPORT_COMMANDS.items()]
        with formatter.section("Commands that come with packages of their own"):
            formatter.write_dl(rows)


app = typer.Typer(cls=RootGroup, rich_markup_mode=None, no_args_is_help=True)


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """An agent runtime for many model providers, built from plugins."""


def run_command(arguments: list[str]) -> int:
    """Runs a command line and returns its exit code.

    Raises:
        UsageError: the command line is put wrongly.
        OpenheimError: whatever the command failed with.
    """
    rest = take_global_options(arguments)
    if rest[:1] == ["--version"]:
        from openheim import __version__

        print(f"openheim {__version__}")
        return 0
    try:
        result = typer.main.get_command(app).main(args=rest, prog_name="openheim", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as err:
        print(err.format_message())
        return 0
    except click.exceptions.UsageError as err:
        raise UsageError(err.format_message().rstrip("."), hint=_where_to_look(err)) from err
    except typer.Exit as stop:
        code: int = stop.exit_code
        return code
    except typer.Abort as err:
        raise KeyboardInterrupt from err
    return result if isinstance(result, int) else 0


def _where_to_look(err: click.exceptions.UsageError) -> str:
    path = err.ctx.command_path if err.ctx is not None else "openheim"
    return f"see {path} --help"
