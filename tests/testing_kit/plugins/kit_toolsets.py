"""Toolsets with one fault each, and one without, as objects that an entry point may name."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Annotated, Any, ClassVar

from openheim import ToolError, ToolResult, Turn, hookimpl, tool
from openheim.messages import TextBlock
from openheim.tools import FunctionTool

Text = Annotated[str, "Any text."]


class Toolset:
    def __init__(self, *tools: Any, make: Callable[[], list[Any]] | None = None) -> None:
        self._make = make or (lambda: list(tools))

    @hookimpl
    def openheim_tools(self) -> list[Any]:
        return self._make()


def echo(**options: Any) -> FunctionTool:
    """A tool without a fault, except for what the options change."""

    async def echo(text: Text) -> str:
        if not text.strip():
            raise ToolError("text is blank")
        return text

    return FunctionTool(echo, **{"description": "Gives back a text.", **options})


@tool(read_only=True, kind="read")
async def first_line(
    turn: Turn, path: Annotated[str, "A file."], number: Annotated[int, "Which line."] = 1
) -> ToolResult:
    """Gives one line of a file."""
    data, _ = turn.files.read_bytes(path, limit=10_000)
    lines = data.decode("utf-8", "replace").splitlines()
    if not 1 <= number <= len(lines):
        raise ToolError(f"{path} has {len(lines)} lines")
    return ToolResult((TextBlock(lines[number - 1]),), {"title": path})


good = Toolset(echo(read_only=True), first_line)

none = Toolset()
bad_name = Toolset(echo(name="echo it"))
two_of_a_name = Toolset(echo(), echo())
no_description = Toolset(echo(description="  "))
bad_kind = Toolset(echo(kind="shouting"))
bad_replay = Toolset(echo(replay="sometimes"))
bad_schema = Toolset(echo(parameters={"type": "string"}))


@tool
async def bare(text: str) -> str:
    """Has an argument without a description."""
    return text


undescribed_argument = Toolset(bare)


class Blocking:
    name, description = "blocking", "Is not async."
    parameters: ClassVar[dict[str, Any]] = {"type": "object"}

    def run(self, arguments: dict[str, Any], turn: Turn) -> str:
        return ""


not_async = Toolset(Blocking())

_counter = itertools.count()
changing = Toolset(make=lambda: [echo(description=f"Asked {next(_counter)} times.")])


@tool
async def failing() -> str:
    """Always fails."""
    raise ToolError("no luck")


@tool
async def wrong_result() -> Any:
    """Returns a number."""
    return 42


sample_fails = Toolset(failing)
returns_a_number = Toolset(wrong_result)


async def _lax(text: str = "") -> str:
    return text.upper()


async def _strict(text: str) -> str:
    return text


# The schema lets everything through, so that the function gets what it cannot take.
lax_schema = Toolset(
    FunctionTool(
        _lax,
        name="lax",
        description="Takes anything.",
        parameters={"type": "object", "properties": {"text": {"description": "Text, one hopes."}}},
    )
)


@tool(read_only=True)
async def number(text: Text) -> str:
    """Reads a number."""
    return str(int(text))


odd_values_crash = Toolset(number)


@tool(read_only=True)
async def leaves_traces(turn: Turn, text: Text) -> str:
    """Says that it is read-only."""
    turn.files.replace("trace.txt", text.encode())
    return "done"


not_read_only = Toolset(leaves_traces)


class _Async:
    @hookimpl
    async def openheim_tools(self) -> list[Any]:
        return []


class _WrongArgument:
    @hookimpl
    def openheim_tools(self, config: Any) -> list[Any]:
        return []


async_hook = _Async()
wrong_argument = _WrongArgument()
