"""``openheim tools``: what a session here would offer, and one call without a model."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from openheim.cli.lean import lean_app
from openheim.cli.printing import print_text
from openheim.cli.starting import make_runtime, note
from openheim.cli.tables import print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openheim.runtime import Runtime

__all__ = ("app",)

app = lean_app(no_args_is_help=True, help="List tools, or call one without a model.")


@app.command("list")
def list_tools(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the tools that a session in this directory would offer, in the mode that the settings say."""
    runtime = make_runtime()
    toolbox, permissions = runtime.toolbox, runtime.loaded.config.permissions
    specs = toolbox.read_only_specs if permissions.mode == "plan" else toolbox.specs
    if as_json:
        print_json(
            [
                {
                    "type": "function",
                    "function": {
                        "name": spec.name,
                        "description": spec.description,
                        "parameters": spec.parameters,
                    },
                }
                for spec in specs
            ]
        )
        return
    if not specs and runtime.host.names("tools"):
        print("no toolset that is installed can be used; see openheim plugins list", file=sys.stderr)
    elif not specs:
        print("no tool is installed; try: pip install openheim-tools-fs", file=sys.stderr)
    for line in _left_out(runtime):
        note(line)
    print_table(("NAME", "DESCRIPTION"), [(spec.name, _first_sentence(spec.description)) for spec in specs])


def _left_out(runtime: Runtime) -> Iterator[str]:
    """What is installed and not offered here, and why."""
    from openheim.runtime.toolboxes import why_no_commands

    toolbox = runtime.toolbox
    if runtime.loaded.config.permissions.mode == "plan":
        others = sorted({spec.name for spec in toolbox.specs} - {spec.name for spec in toolbox.read_only_specs})
        if others:
            yield f"in plan mode only tools that change nothing are offered; left out: {', '.join(others)}"
    elif toolbox.get("execute_command") is None and "shell" in runtime.host.names("tools"):
        yield f"execute_command is left out: {why_no_commands(runtime.loaded)}"


def _first_sentence(text: str) -> str:
    line = " ".join(text.split())
    return line.split(". ", 1)[0].removesuffix(".")


@app.command("call")
def call_tool(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tool's name.")],
    arguments: Annotated[str, typer.Argument(metavar="JSON", help="Its arguments, a JSON object.")] = "{}",
    cwd: Annotated[str | None, typer.Option(metavar="DIR", help="Working directory.")] = None,
) -> int:
    """Run one tool without a model, under the same boundary and permissions as in a session.

    The result goes to standard output; an error result goes to standard error, with exit code 1.
    """
    import anyio

    from openheim.plugins.supervision import diverted_stdout

    runtime = make_runtime()
    # What the tool itself prints is not its result.
    with diverted_stdout():
        result = anyio.run(lambda: runtime.call_tool(name, arguments, cwd=cwd))
    print_text(result.content, file=sys.stderr if result.is_error else sys.stdout)
    return 1 if result.is_error else 0
