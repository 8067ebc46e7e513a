"""``openheim plugins``: what is installed, whether it works, and switching it on and off."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openheim.cli import options
from openheim.cli.failures import warn
from openheim.cli.lean import LeanCommand, lean_app
from openheim.cli.printing import one_line
from openheim.cli.tables import print_json, print_table
from openheim.config.paths import config_file
from openheim.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openheim.plugins.catalogue import Catalogue
    from openheim.plugins.policy import PluginPolicy

__all__ = ("app",)


app = lean_app(no_args_is_help=True, help="List, check and switch plugins.")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[str, typer.Argument(help="A plugin (shell or tools.shell) or a distribution.")]


# Flags only: an option with a value would make typer import pydantic.
@app.command("list", cls=LeanCommand)
def list_plugins(as_json: AsJson = False) -> None:
    """List what is installed, without importing it."""
    from openheim.plugins.listing import row_to_dict, rows

    catalogue, policy = _look_around()
    for line in (*catalogue.problems, *policy.unmatched(catalogue)):
        warn(line)
    found = list(rows(catalogue, policy))
    if as_json:
        print_json([row_to_dict(row) for row in found])
        return
    print_table(
        ("KIND", "NAME", "DISTRIBUTION", "VERSION", "STATUS", "NOTE"),
        [(c.kind, c.name, c.distribution, c.version, row.status, row.note) for row in found for c in [row.candidate]],
    )


@app.command("show", cls=LeanCommand)
def show_plugin(name: Name, as_json: AsJson = False) -> None:
    """Show all that is known of a plugin, without importing it."""
    from openheim.plugins.listing import row_to_dict, rows
    from openheim.plugins.switching import find

    catalogue, policy = _look_around()
    wanted = find(catalogue, name)
    found = [row for row in rows(catalogue, policy) if row.candidate in wanted]
    if as_json:
        print_json([row_to_dict(row) for row in found])
        return
    for place, row in enumerate(found):
        if place:
            print()
        facts = row_to_dict(row) | {"location": row.candidate.location, "first_party": row.candidate.first_party}
        for key, value in facts.items():
            text = ", ".join(value) if isinstance(value, list) else "yes" if value is True else value
            if text:
                print(f"{key + ':':14}{one_line(str(text))}")


@app.command("check", cls=LeanCommand)
def check_plugins(
    name: Annotated[
        str | None, typer.Argument(help="A plugin or a distribution; all that are enabled if left out.")
    ] = None,
    as_json: AsJson = False,
    timeout: Annotated[float, typer.Option(help="Seconds that each plugin may take.")] = 20.0,
) -> None:
    """Try each plugin in a process of its own; exit code 1 if any fails."""
    from openheim.plugins.checking import check_plugins as run_checks
    from openheim.plugins.switching import find

    if not timeout > 0:
        raise UsageError("--timeout must be more than 0 seconds", hint="leave it out for 20")
    catalogue, policy = _look_around()
    rulings = [ruling for rivals in catalogue.groups() for ruling in policy.judge(rivals)]
    if name is None:
        rulings = [ruling for ruling in rulings if ruling.status != "disabled"]
    else:
        wanted = find(catalogue, name)
        rulings = [ruling for ruling in rulings if ruling.candidate in wanted]
    results = []
    progress = sys.stderr.isatty()
    for result in run_checks(rulings, timeout_secs=timeout, config=config_file(options.current().config)):
        results.append(result)
        if progress:
            print(f"\r{len(results)} of {len(rulings)} checked", end="", file=sys.stderr, flush=True)
    if progress and results:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    if as_json:
        print_json([result.to_dict() for result in results])
    else:
        print_table(
            ("RESULT", "PLUGIN", "DISTRIBUTION", "LOAD MS", "REASON"),
            [
                (
                    "ok" if result.ok else "failed",
                    f"{result.kind}.{result.name}",
                    result.distribution,
                    "" if result.load_ms is None else f"{result.load_ms:.0f}",
                    result.error or "",
                )
                for result in results
            ],
        )
        for result in results:
            for line in result.warnings:
                warn(f"{result.kind}.{result.name} of {result.distribution}: {line}")
    if not all(result.ok for result in results):
        raise typer.Exit(1)


@app.command("enable", cls=LeanCommand)
def enable_plugin(name: Name, as_json: AsJson = False) -> None:
    """Take a plugin off the list of disabled ones in the config file."""
    _switch(name, as_json, on=True)


@app.command("disable", cls=LeanCommand)
def disable_plugin(name: Name, as_json: AsJson = False) -> None:
    """Put a plugin on the list of disabled ones in the config file: it is not imported any more."""
    _switch(name, as_json, on=False)


def _switch(name: str, as_json: bool, *, on: bool) -> None:
    from openheim.plugins.catalogue import scan
    from openheim.plugins.switching import find_one, switch

    catalogue = scan()
    path = config_file(options.current().config)
    entry, changed = switch(path, catalogue, name, on=on)
    word = "enabled" if on else "disabled"
    if as_json:
        print_json({"plugin": entry, "enabled": on, "changed": changed, "file": str(path)})
    else:
        print(one_line(f"{entry} is {word} {'in' if changed else 'already in'} {path}"))
    if on:
        # The file is not all that counts.
        policy = _policy(_plugins_table())
        for candidate in find_one(catalogue, name)[1]:
            reason = policy.reason_disabled(candidate)
            if reason:
                warn(f"{candidate.dotted} of {candidate.distribution} stays disabled: {reason}")


def _look_around() -> tuple[Catalogue, PluginPolicy]:
    """What is installed and what the settings say. Settings that cannot be read are no reason to show nothing."""
    from openheim.plugins.catalogue import scan

    try:
        policy = _policy(_plugins_table())
    except ConfigError as err:
        warn(f"{err}; going on without [plugins]")
        policy = _policy({})
    return scan(), policy


def _plugins_table() -> Mapping[str, Any]:
    from openheim.config.sections import read_section

    # Alone: what is wrong elsewhere in the settings is no reason to leave it out.
    named = options.current().config
    return read_section("plugins", config_file(named), given=named is not None)


def _policy(table: Mapping[str, Any]) -> PluginPolicy:
    from openheim.config.sections import managed_section
    from openheim.plugins.policy import policy_from, unknown_keys

    for line in unknown_keys(table):
        warn(line)
    return policy_from(table, os.environ, safe_mode=options.current().safe_mode, managed=managed_section("plugins"))
