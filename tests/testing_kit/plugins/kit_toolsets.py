"""Toolsets with one fault each, and one without, as objects that an entry point may name."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ClassVar

import anyio
import anyio.lowlevel
import anyio.to_thread

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


@tool(read_only=True, kind="read")
async def whole(turn: Turn, path: Annotated[str, "A file."]) -> str:
    """Gives a whole file, however long."""
    return turn.files.read_bytes(path, limit=10_000_000)[0].decode("utf-8", "replace")


def beginning(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(1000).decode("utf-8", "replace")


@tool(read_only=True, kind="read")
async def peek(turn: Turn, path: Annotated[str, "A file."]) -> str:
    """Gives the beginning of a file, wherever it is."""
    if "\0" in path or len(path) > 200 or not (turn.cwd / path).is_file():
        raise ToolError("no such file")
    return beginning(turn.cwd / path)


@tool
async def put(turn: Turn, file: Annotated[str, "A file."], text: Text) -> str:
    """Writes a file, after a check that any link gets around."""
    if not file.strip() or "\0" in file or ".." in file or file.startswith(("/", "-")) or len(file) > 200:
        raise ToolError("no such place")
    path = turn.cwd / file
    if path.is_dir() or not path.parent.is_dir() or path.is_fifo():
        raise ToolError("no such place")
    path.write_text(text, errors="replace")
    return "done"


def reads_at(name: str, parameters: dict[str, Any], **options: Any) -> FunctionTool:
    """Reads wherever an argument says, which the schema describes."""

    async def read(turn: Turn, **arguments: Any) -> str:
        given = arguments[name]
        path = given if isinstance(given, str) else given[0] if isinstance(given, list) and given else None
        if not isinstance(path, str) or "\0" in path or len(path) > 200 or not (turn.cwd / path).is_file():
            raise ToolError("no such file")
        return beginning(turn.cwd / path)

    details = {name: {"description": "What to read.", **parameters}}
    schema = {"type": "object", "properties": details, "required": [name]}
    return FunctionTool(read, **{"name": "read_at", "description": "Reads.", "parameters": schema, **options})


def store(**options: Any) -> FunctionTool:
    async def store(turn: Turn, path: Annotated[str, "A file."], text: Text) -> str:
        turn.files.replace(path, text.encode(errors="replace"))
        return "done"

    return FunctionTool(store, **{"description": "Writes a file.", "kind": "edit", **options})


whole_file = Toolset(whole)
reads_anything = Toolset(peek)
writes_anywhere = Toolset(put)
path_by_format = Toolset(reads_at("what", {"type": "string", "format": "file-path"}))
path_by_optional_format = Toolset(reads_at("what", {"anyOf": [{"type": "string", "format": "path"}, {"type": "null"}]}))
path_by_name = Toolset(reads_at("inputFile", {"type": "string"}))
paths_by_name = Toolset(reads_at("source_files", {"type": "array", "items": {"type": "string"}, "minItems": 1}))
path_by_target = Toolset(
    reads_at(
        "what", {"type": "string"}, kind="read", target=lambda arguments, turn: turn.files.resolve(arguments["what"])
    )
)
path_by_declaration = Toolset(reads_at("what", {"type": "string"}))
target_as_written = Toolset(store())
no_target = Toolset(store(target=lambda arguments, turn: None))


class Picky:
    name, description = "picky", "Takes no arguments."
    parameters: ClassVar[dict[str, Any]] = {"type": "object"}

    async def run(self, arguments: dict[str, Any], turn: Turn) -> str:
        return self.work(**arguments)

    def work(self) -> str:
        return "done"


made_up_arguments = Toolset(Picky())

_busy = False


@tool(read_only=True)
async def busy(text: Text) -> str:
    """Has one place for all calls."""
    global _busy
    if _busy:
        raise ToolError("busy")
    _busy = True
    try:
        await anyio.sleep(0.001)
    finally:
        _busy = False
    return text


@tool
async def stubborn(text: Text) -> str:
    """Finishes what it has begun."""
    if text != "hello":
        return text
    with anyio.CancelScope(shield=True):
        await anyio.sleep(0.5)
    return text


def start_sleeping(secs: int) -> None:
    _kept.append(subprocess.Popen(["sleep", str(secs)]))


@tool
async def sleeper(secs: Annotated[int, "How long."]) -> str:
    """Starts a process and waits for it."""
    start_sleeping(secs)
    await anyio.sleep(secs)
    return "done"


one_at_a_time = Toolset(busy)
never_cancelled = Toolset(stubborn)
leaves_a_process = Toolset(sleeper)

_kept: list[Any] = []


@tool
async def leaky(text: Text) -> str:
    """Closes nothing."""
    _kept.append(os.open(os.devnull, os.O_RDONLY))
    return text


@tool
async def spawning(text: Text) -> str:
    """Leaves a thread each time."""
    threading.Thread(target=time.sleep, args=(12,), name=f"left-{len(_kept)}", daemon=True).start()
    _kept.append(text)
    return text


@tool
async def chatty(text: Text) -> str:
    """Says what it does."""
    sys.stdout.write("working on it")
    return text


@tool
async def drowsy(text: Text) -> str:
    """Sleeps on the event loop, for the sample alone."""
    if text == "hello":
        doze()
    return text


def doze() -> None:
    time.sleep(0.3)


@tool
async def pondering(text: Text) -> str:
    """Works on the event loop, for the sample alone, with a pause at the beginning."""
    await anyio.lowlevel.checkpoint()
    end = time.thread_time() + (0.3 if text == "hello" else 0)
    while time.thread_time() < end:
        pass
    await anyio.lowlevel.checkpoint()
    return text


@tool
async def thoughtful(text: Text) -> str:
    """Sleeps in a thread, for the sample alone."""
    if text == "hello":
        await anyio.to_thread.run_sync(doze)
    return text


leaks_descriptors = Toolset(leaky)
sleeps_on_the_loop = Toolset(drowsy)
works_on_the_loop = Toolset(pondering)
sleeps_in_a_thread = Toolset(thoughtful)
leaks_threads = Toolset(spawning)
prints = Toolset(chatty)


class Forgetful(FunctionTool):
    async def close_session(self, session_id: str) -> None:
        raise KeyError(session_id)


async def _echo(text: Text) -> str:
    return text


forgets_sessions = Toolset(Forgetful(_echo, name="echo", description="Gives back a text."))
reads_and_edits = Toolset(echo(kind="edit", read_only=True))
writes_again = Toolset(echo(kind="edit", replay="safe"))
