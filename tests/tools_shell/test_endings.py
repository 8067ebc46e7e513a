"""However a command ends, and whoever ends it: nothing that it started is alive afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from openheim import ToolError
from openheim_tools_shell.supervisor import processes
from tests.tools_shell.calls import HARD_TO_END, Ready, Shell, alive, wait_until_gone

pytestmark = pytest.mark.anyio

#: What runs until somebody ends it, and says when it does.
SHAPES = list(HARD_TO_END)

ROUNDS = 100 // (4 * len(SHAPES))


def started(shape: str, ready: Ready) -> str:
    return f"{HARD_TO_END[shape]} {ready.say}; sleep 305; sleep 305"


async def cancelled(shell: Shell, command: str, ready: Ready) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(shell, command)
        await ready.wait()
        assert shell.alive()
        group.cancel_scope.cancel()


async def timed_out(shell: Shell, command: str, ready: Ready) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(ready.wait)
        with pytest.raises(ToolError, match="time limit"):
            await shell(command, timeout_secs=0.4)


#: openheim in small: a process that runs one command, and tells of it by its exit status.
CHILD = """
import signal, sys
from pathlib import Path
import anyio
from tests.tools_shell.calls import Shell

async def main():
    shell = Shell(Path.cwd(), sandbox=sys.argv[3])
    shell.turn.env = {**shell.turn.env, "MARK": sys.argv[1]}
    async with anyio.create_task_group() as group:
        async def heed():
            with anyio.open_signal_receiver(signal.SIGTERM) as signals:
                async for _ in signals:
                    group.cancel_scope.cancel()
        group.start_soon(heed)
        await shell(sys.argv[2])

anyio.run(main)
"""


def openheim_ended(number: int, shell: Shell, work: Path, command: str, ready: Ready, sandbox: str = "none") -> None:
    checkout = Path(__file__).parent.parent.parent
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, shell.mark.removeprefix("MARK="), command, sandbox],
        cwd=work,
        env={**os.environ, "PYTHONPATH": str(checkout)},
    ) as process:
        ready.wait_blocking()
        assert shell.alive()
        process.send_signal(number)
        process.wait(20)


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_cancelled_command_leaves_nothing(work: Path, shell: Shell, shape: str) -> None:
    ready = Ready(work)
    await cancelled(shell, started(shape, ready), ready)
    assert shell.alive() == []


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_command_that_takes_too_long_leaves_nothing(work: Path, shell: Shell, shape: str) -> None:
    ready = Ready(work)
    await timed_out(shell, started(shape, ready), ready)
    assert shell.alive() == []


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_command_that_ends_leaves_nothing(shell: Shell, shape: str) -> None:
    assert await shell(f"{HARD_TO_END[shape]} echo done") != ""
    assert shell.alive() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("shape", ["chain", "all"])
def test_when_openheim_is_ended_nothing_is_left(work: Path, shell: Shell, shape: str, number: int) -> None:
    ready = Ready(work)
    openheim_ended(number, shell, work, started(shape, ready), ready)
    assert wait_until_gone(shell.mark) == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells a child that its parent is gone")
def test_a_command_that_stops_its_supervisor_does_not_outlive_openheim(work: Path, shell: Shell) -> None:
    ready = Ready(work)
    openheim_ended(signal.SIGKILL, shell, work, f"kill -STOP $PPID; {started('chain', ready)}", ready)
    assert wait_until_gone(shell.mark) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_nothing_is_left_in_100_runs(work: Path, shell: Shell, long_counts: bool) -> None:
    for number in range(ROUNDS if long_counts else 1):
        for shape in SHAPES if long_counts else ["all"]:
            ready = Ready(work, f"ready-{number}-{shape}")
            command = started(shape, ready)
            await cancelled(shell, command, ready)
            assert wait_until_gone(shell.mark) == []
            await timed_out(shell, command, ready)
            assert wait_until_gone(shell.mark) == []
            for ending in (signal.SIGTERM, signal.SIGKILL):
                await anyio.to_thread.run_sync(openheim_ended, ending, shell, work, command, ready)
                assert wait_until_gone(shell.mark) == []


async def test_a_storm_of_forks_is_ended(work: Path, shell: Shell) -> None:
    """Processes that ignore the polite signal and start others all the time."""
    ready = Ready(work)
    one = "(trap '' TERM; while :; do (:) ; (:) & done) &"
    command = f"for i in 1 2 3 4 5 6 7 8 9 10 11 12; do {one} done; {ready.say}; wait"
    await cancelled(shell, command, ready)
    assert shell.alive() == []


async def test_processes_that_breed_are_ended(work: Path, shell: Shell) -> None:
    """Each is replaced by two before it goes, up to a few hundred at a time."""
    ready = Ready(work)
    again = "sh breed $(($1 - 1)) &"
    (work / "breed").write_text(f"trap '' TERM\n[ $1 = 0 ] && exec sleep 306\n{again} {again}\n")
    await cancelled(shell, f"setsid sh breed 6 & sh breed 6 & {ready.say}; sleep 306", ready)
    assert shell.alive() == []


async def test_stopped_processes_are_ended(work: Path, shell: Shell) -> None:
    ready = Ready(work)
    await cancelled(shell, f"sleep 307 & kill -STOP $!; (sleep 307; :) & kill -STOP $!; {ready.say}; sleep 307", ready)
    assert shell.alive() == []


async def test_a_supervisor_that_is_killed_takes_the_command_with_it(shell: Shell) -> None:
    with pytest.raises(ToolError, match="its supervisor was killed from outside"):
        await shell("sleep 308 & (sleep 308; sleep 308) & kill -9 $PPID; sleep 308")
    assert wait_until_gone(shell.mark) == []


async def test_a_supervisor_that_is_asked_to_end_ends_the_command(shell: Shell) -> None:
    with pytest.raises(ToolError):
        await shell("setsid sleep 309 & kill -TERM $PPID; sleep 309")
    assert shell.alive() == []


async def test_a_supervisor_that_is_stopped_does_not_hold_the_turn(
    work: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openheim_tools_shell.process.END_SECS", 0.3)
    with anyio.fail_after(20), pytest.raises(ToolError, match="its supervisor was killed from outside"):
        await shell("kill -STOP $PPID; sleep 310", timeout_secs=0.3)
    assert wait_until_gone(shell.mark) == []


async def test_a_command_cannot_be_mistaken_for_its_supervisor(shell: Shell) -> None:
    """``pkill -f`` with a text of the command finds the command's own shell, as everywhere, and not the supervisor."""
    text = await shell("tr '\\0' ' ' < /proc/$PPID/cmdline | grep -c unlikely-text || true")
    assert text == "0\n"


async def test_no_zombies_are_left(shell: Shell) -> None:
    for _ in range(3):
        await shell("sleep 0 & true")
    children = [process for process in processes() if process.parent == os.getpid()]
    assert [process.name for process in children if process.state == "Z"] == []


async def test_cancelled_before_it_starts(shell: Shell) -> None:
    for _ in range(10):
        with anyio.CancelScope() as scope:
            scope.cancel()
            await shell("sleep 311")
    assert alive(shell.mark) == []
