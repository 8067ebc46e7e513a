"""Typer commands that start quickly.

Two things are changed. Subcommands come from a table and are imported when invoked. And simple values are read without
pydantic, see :mod:`openheim.cli.coercion`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from openheim.cli.coercion import PlainValue, reads_plainly
from openheim.cli.options import GLOBAL_HELP

__all__ = ("LeanCommand", "LeanGroup", "TableGroup", "lean_app")


class _Lean:
    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # a mixin for typer's classes
        for parameter in parameters:
            annotation = parameter.type_descriptor.annotation
            if reads_plainly(annotation):
                parameter._runtime_param = PlainValue(annotation)
        return parameters

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Options of every command"):
            formatter.write_dl(GLOBAL_HELP)


class LeanCommand(_Lean, TyperCommand):
    """A command."""


class LeanGroup(_Lean, TyperGroup):
    """A group of commands."""

    command_class = LeanCommand


class TableGroup(LeanGroup):
    """A group whose commands are modules of ``openheim.cli``, each with an ``app``, imported when invoked.

    ``table`` maps a command's name to the module and the one line that ``--help`` shows.
    """

    table: dict[str, tuple[str, str]]

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        entry = self.table.get(cmd_name)
        if entry is None:
            return None
        command = typer.main.get_command(import_module(entry[0]).app)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_module, line) in self.table.items()])


def lean_app(**options: Any) -> typer.Typer:
    """A typer app for one module of commands."""
    return typer.Typer(cls=LeanGroup, add_completion=False, rich_markup_mode=None, **options)
