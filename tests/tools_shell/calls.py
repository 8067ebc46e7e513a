"""Calling the shell tools as the agent loop does, and finding the processes that they started."""

from __future__ import annotations

import os
import select
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from openheim import TextBlock, Tool, ToolError, ToolResult, ToolsContext, Turn
from openheim.testing import FakeTurn
from openheim_tools_shell.plugin import openheim_tools

__all__ = (
    "ANCESTRY",
    "ATTACKS",
    "HARD_TO_END",
    "Ready",
    "Shell",
    "alive",
    "attacked",
    "refused",
    "tree",
    "wait_until_gone",
)

#: What the end of a command must not leave behind: chains of forks, ``nohup``, sessions of their own, an ignored TERM.
HARD_TO_END: Mapping[str, str] = {
    "chain": 'sh -c \'sh -c "sh -c \\"sleep 300 & sleep 300\\" & wait" & wait\' &',
    "nohup": "nohup sleep 301 >/dev/null 2>&1 &",
    "setsid": "setsid sleep 302 & (setsid sh -c 'setsid sleep 302 & sleep 302' &);",
    "ignored": "(trap '' TERM HUP INT; sleep 303; sleep 303) & trap '' TERM HUP INT;",
    "all": "(trap '' TERM HUP INT; setsid nohup sh -c '(setsid sleep 304 & sleep 304) & sleep 304' >/dev/null 2>&1 &);",
}

#: Seconds that a command may take to come to where it says so.
READY_SECS = 20

#: The processes above a command, nearest first: all that it can see, but for openheim, which is the {openheim} here.
ANCESTRY = (
    "pid=$PPID; above=; while [ $pid != {openheim} ] && [ $pid -gt 1 ]; "
    "do above=\"$above $pid\"; pid=$(ps -o ppid= -p $pid | tr -d ' '); done; set -- $above; "
)

#: What a command may do to those that stand over it: its supervisor, the guard of that, or both.
ATTACKS = {
    "kill the supervisor": "kill -9 $1",
    "kill the guard": "kill -9 $2",
    "kill both": 'setsid sh -c "kill -9 $* $$"',
    "kill both, the guard first": "kill -9 $2 $1",
    "stop the supervisor": "kill -STOP $1",
    "stop the guard": "kill -STOP $2",
    "stop both": "kill -STOP $1 $2",
    "stop one and kill the other": "kill -STOP $2; kill -9 $1",
    "kill one and stop the other": "kill -9 $2; kill -STOP $1",
    "keep both stopped": "(trap '' TERM; while :; do kill -STOP $1 $2; done) & sleep 0.1",
}


class Shell:
    """The tools with some settings, and a turn whose commands carry a mark in their environment.

    There is no sandbox unless the settings say so, so that the machine makes no difference.
    """

    def __init__(
        self,
        work: Path,
        *,
        session_id: str | None = None,
        result_limit_bytes: int = 128 * 1024,
        private_paths: tuple[Path, ...] = (),
        data: Path | None = None,
        **settings: Any,
    ) -> None:
        self.mark = f"MARK={uuid.uuid4()}"
        name, value = self.mark.split("=")
        environment = {"PATH": os.environ["PATH"], name: value}
        options = {"session_id": session_id} if session_id is not None else {}
        self.turn = FakeTurn(work, env=environment, result_limit_bytes=result_limit_bytes, **options)
        data = data or work.parent / "data"
        context = ToolsContext(
            work,
            data,
            allow_shell=True,
            private_paths=(data, *private_paths),
            settings={"sandbox": "none", **settings},
        )
        self.tools: dict[str, Tool] = {tool.name: tool for tool in openheim_tools(context=context)}

    async def __call__(self, command: str, **arguments: Any) -> str:
        return await self.call("execute_command", command=command, **arguments)

    async def call(self, name: str, /, *, turn: Turn | None = None, **arguments: Any) -> str:
        """The text that the model gets; raises ToolError for an error result."""
        result = await self.tools[name].run(arguments, turn or self.turn)
        assert isinstance(result, ToolResult)
        (block,) = result.content
        assert isinstance(block, TextBlock)
        return block.text

    def alive(self) -> list[int]:
        return alive(self.mark)


async def refused(shell: Shell, command: str, **arguments: Any) -> str:
    """The error of a call, as the model gets it."""
    with pytest.raises(ToolError) as caught:
        await shell(command, **arguments)
    return str(caught.value)


def tree(folder: Path) -> dict[str, str]:
    """The files of a folder by their names, with what is in them."""
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


class Ready:
    """Two named pipes: by one a command says that it has come so far, at the other it is held until it was looked at.

    Unless something with the mark is alive by then, the wait fails: what never ran would leave nothing behind either.
    """

    def __init__(self, folder: Path, mark: str, name: str = "ready") -> None:
        self.seen = False
        self._mark = mark
        self._pipes = (folder / name, folder / f"{name}-on")
        for path in self._pipes:
            os.mkfifo(path)

    @property
    def say(self) -> str:
        """A part of a command line. Who opens a pipe for writing waits for somebody who reads."""
        return "; ".join(f"echo ready > '{path}'" for path in self._pipes)

    def wait_blocking(self) -> None:
        for path in self._pipes:
            with _reading(path) as pipe:
                assert select.select([pipe], [], [], READY_SECS)[0], "the command did not come so far"
                self._look(pipe)

    async def wait(self) -> None:
        for path in self._pipes:
            with _reading(path) as pipe, anyio.fail_after(READY_SECS):
                await anyio.wait_readable(pipe)
                self._look(pipe)

    def _look(self, pipe: int) -> None:
        assert os.read(pipe, 100) == b"ready\n"
        if not self.seen:
            assert alive(self._mark) != [], "nothing is alive that could be ended"
            self.seen = True


@contextmanager
def _reading(path: Path) -> Iterator[int]:
    # Opened so, it waits for no writer, and having one is not enough to be ready for reading.
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield pipe
    finally:
        os.close(pipe)


def attacked(attack: str, openheim: int | str, ready: Ready) -> str:
    """A command that gets in the way of its own end, once it has left something behind, and has said so."""
    above = ANCESTRY.format(openheim=openheim)
    return f"{HARD_TO_END['setsid']} {above} {ready.say}; {ATTACKS[attack]}; sleep 305; sleep 305"


def alive(mark: str) -> list[int]:
    """Processes with this ``NAME=value`` in their environment."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and mark.encode() in Path("/proc", name, "environ").read_bytes().split(b"\0"):
                found.append(int(name))
        except OSError:
            continue  # It has ended, or is another user's.
    return found


def wait_until_gone(mark: str, *, within_secs: float = 6.0) -> list[int]:
    """Waits until no such process is alive; returns those that are still there."""
    due = time.monotonic() + within_secs
    while pids := alive(mark):
        left = due - time.monotonic()
        if left <= 0:
            return pids
        try:
            handle = os.pidfd_open(pids[0])
        except ProcessLookupError:
            continue
        try:
            select.select([handle], [], [], left)
        finally:
            os.close(handle)
    return []
