"""The root command and the table of subcommands."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import _click as click

from openheim.cli.lean import TableGroup
from openheim.cli.options import take_global_options
from openheim.errors import UsageError

__all__ = ("COMMANDS", "run_command")

COMMANDS = {
    "run": ("openheim.cli.run", "Answer one prompt and exit."),
    "init": ("openheim.cli.init", "Write a commented config file."),
    "plugins": ("openheim.cli.plugins", "List, check and switch plugins."),
    "tools": ("openheim.cli.tools", "List tools, or call one without a model."),
    "models": ("openheim.cli.models", "List the models that the settings allow."),
    "doctor": ("openheim.cli.doctor", "Say what works on this machine and what is missing."),
}


class RootGroup(TableGroup):
    table = COMMANDS


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
