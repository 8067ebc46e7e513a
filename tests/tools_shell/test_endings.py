"""However a command ends, and whoever ends it: nothing that it started is alive afterwards."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from openheim import ToolError
from openheim_tools_shell.launch import shell_launch
from openheim_tools_shell.process import CommandProcess, Ending
from openheim_tools_shell.processes import processes
from openheim_tools_shell.sandbox import abilities
from openheim_tools_shell.settings import Settings
from tests.tools_shell.calls import ANCESTRY, ATTACKS, HARD_TO_END, Ready, Shell, alive, attacked, wait_until_gone

pytestmark = pytest.mark.anyio

#: What runs until somebody ends it, and says when it does.
SHAPES = list(HARD_TO_END)

#: These leave nobody but openheim to end the command, so that openheim must not be killed as well.
OF_BOTH = {"kill both", "kill both, the guard first", "kill one and stop the other", "keep both stopped"}

SANDBOXES = ["none", *(kind for kind, ability in abilities(network=True).items() if ability.works)]


def started(shape: str, ready: Ready) -> str:
    return f"{HARD_TO_END[shape]} {ready.say}; sleep 305; sleep 305"


async def cancelled(shell: Shell, command: str, ready: Ready) -> None:
    async with anyio.create_task_group() as group:

        async def run() -> None:
            with suppress(ToolError):  # What has killed its supervisor may have ended before.
                await shell(command)

        group.start_soon(run)
        await ready.wait()
        group.cancel_scope.cancel()


async def seen(shell: Shell, command: str, ready: Ready, **arguments: Any) -> str:
    """The result of a call, whose command was seen alive meanwhile if there was the time for it."""
    error: ToolError | None = None
    text = ""
    async with anyio.create_task_group() as group:
        group.start_soon(ready.wait)
        try:
            text = await shell(command, **arguments)
        except ToolError as err:
            error = err
        group.cancel_scope.cancel()
    if error is not None:
        raise error
    return text


async def timed_out(shell: Shell, command: str, ready: Ready) -> None:
    """On a busy machine the first limit may be over before the command has come so far, which would show nothing."""
    ready.seen = False
    for limit_secs in (0.5, 2, 8):
        with pytest.raises(ToolError, match=r"time limit|was ended"):
            await seen(shell, command, ready, timeout_secs=limit_secs)
        if ready.seen:
            return
    pytest.fail("the command did not come so far")


#: openheim in small: a process that runs one command, and tells of it by its exit status.
CHILD = """
import os, signal, sys
from pathlib import Path
import anyio
from tests.tools_shell.calls import Shell

async def main():
    shell = Shell(Path.cwd(), sandbox=sys.argv[3])
    command = sys.argv[2].replace("OPENHEIM", str(os.getpid()))
    shell.turn.env = {**shell.turn.env, "MARK": sys.argv[1]}
    async with anyio.create_task_group() as group:
        async def heed():
            with anyio.open_signal_receiver(signal.SIGTERM) as signals:
                async for _ in signals:
                    group.cancel_scope.cancel()
        group.start_soon(heed)
        await shell(command)
        await anyio.sleep(20)

anyio.run(main)
"""


def openheim_ended(number: int, shell: Shell, work: Path, command: str, ready: Ready, sandbox: str = "none") -> None:
    checkout = Path(__file__).parent.parent.parent
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, shell.mark.removeprefix("MARK="), command, sandbox],
        cwd=work,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            ready.wait_blocking()
            process.send_signal(number)
            process.wait(20)
        finally:
            process.kill()


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_cancelled_command_leaves_nothing(work: Path, shell: Shell, shape: str) -> None:
    ready = Ready(work, shell.mark)
    await cancelled(shell, started(shape, ready), ready)
    assert shell.alive() == []


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_command_that_takes_too_long_leaves_nothing(work: Path, shell: Shell, shape: str) -> None:
    ready = Ready(work, shell.mark)
    await timed_out(shell, started(shape, ready), ready)
    assert shell.alive() == []


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_command_that_ends_leaves_nothing(work: Path, shell: Shell, shape: str) -> None:
    ready = Ready(work, shell.mark)
    assert "done" in await seen(shell, f"{HARD_TO_END[shape]} {ready.say}; echo done", ready)
    assert ready.seen
    assert shell.alive() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("shape", ["chain", "all"])
def test_when_openheim_is_ended_nothing_is_left(work: Path, shell: Shell, shape: str, number: int) -> None:
    ready = Ready(work, shell.mark)
    openheim_ended(number, shell, work, started(shape, ready), ready)
    assert wait_until_gone(shell.mark) == []


@pytest.mark.parametrize("attack", sorted(ATTACKS.keys() - OF_BOTH))
def test_when_openheim_is_killed_nobody_stands_in_the_way(work: Path, shell: Shell, attack: str) -> None:
    ready = Ready(work, shell.mark)
    openheim_ended(signal.SIGKILL, shell, work, attacked(attack, "OPENHEIM", ready), ready)
    assert wait_until_gone(shell.mark) == []


@pytest.mark.parametrize("attack", [attack for attack in ATTACKS if "stop" not in attack])
async def test_a_command_that_kills_those_above_it_leaves_nothing(work: Path, shell: Shell, attack: str) -> None:
    ready = Ready(work, shell.mark)
    with anyio.fail_after(10), pytest.raises(ToolError, match=r"supervis.* killed"):
        await seen(shell, attacked(attack, os.getpid(), ready), ready)
    assert ready.seen
    assert shell.alive() == []


@pytest.mark.parametrize("attack", [attack for attack in ATTACKS if "stop" in attack])
async def test_a_command_that_stops_those_above_it_is_ended(
    work: Path, shell: Shell, attack: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if attack == "keep both stopped":
        # Nobody but openheim can end this one, once it has waited for so long.
        monkeypatch.setattr("openheim_tools_shell.process.END_SECS", 1.0)
    ready = Ready(work, shell.mark)
    with anyio.fail_after(20):
        await timed_out(shell, attacked(attack, os.getpid(), ready), ready)
    assert shell.alive() == []


@pytest.mark.parametrize("background", [False, True])
async def test_that_a_command_has_ended_is_seen_although_it_stopped_those_above_it(
    shell: Shell, background: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openheim_tools_shell.process.WAKE_SECS", 0.1)
    command = f"{ANCESTRY.format(openheim=os.getpid())} kill -STOP $1 $2; echo done"
    with anyio.fail_after(20):
        if background:
            text = await shell(f"sleep 0.3; {command}", background=True)
            text = await shell.call("job_output", job_id=text.split()[0].strip("["), wait_secs=60)
            assert "running" not in text
        else:
            text = await shell(command, timeout_secs=60)
    assert "done\n" in f"{text}\n"
    assert shell.alive() == []


@pytest.mark.skipif("bwrap" not in SANDBOXES, reason="bubblewrap does not work on this machine")
async def test_that_a_command_has_ended_is_seen_in_bubblewrap_as_well(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openheim_tools_shell.process.WAKE_SECS", 0.1)
    shell = Shell(work, sandbox="bwrap")
    with anyio.fail_after(20):
        said = await shell("kill -STOP $(cut -d' ' -f4 /proc/$PPID/stat) $PPID; echo done", timeout_secs=60)
    assert said == "done\n"
    assert wait_until_gone(shell.mark) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("sandbox", SANDBOXES)
async def test_nothing_is_left_in_100_runs(work: Path, sandbox: str, long_counts: bool) -> None:
    """All shapes and attacks, ended in all ways; more than 100 runs in each sandbox."""
    shell = Shell(work, sandbox=sandbox)
    runs = [("shape", shape) for shape in SHAPES] + [("attack", attack) for attack in ATTACKS]
    rounds = math.ceil(100 / (4 * len(runs)))
    for number, (kind, name) in enumerate(runs * rounds if long_counts else runs[2:3]):
        ready = Ready(work, shell.mark, f"ready-{number}")

        def command(openheim: int | str, ready: Ready = ready, kind: str = kind, name: str = name) -> str:
            return started(name, ready) if kind == "shape" else attacked(name, openheim, ready)

        await cancelled(shell, command(os.getpid()), ready)
        assert wait_until_gone(shell.mark) == [], name
        await timed_out(shell, command(os.getpid()), ready)
        assert wait_until_gone(shell.mark) == [], name
        for ending in (signal.SIGTERM,) if name in OF_BOTH else (signal.SIGTERM, signal.SIGKILL):
            ready.seen = False
            await anyio.to_thread.run_sync(openheim_ended, ending, shell, work, command("OPENHEIM"), ready, sandbox)
            assert wait_until_gone(shell.mark) == [], name


async def test_a_storm_of_forks_is_ended(work: Path, shell: Shell) -> None:
    """Processes that ignore the polite signal and start others all the time."""
    ready = Ready(work, shell.mark)
    one = "(trap '' TERM; while :; do (:) ; (:) & done) &"
    command = f"for i in 1 2 3 4 5 6 7 8 9 10 11 12; do {one} done; {ready.say}; wait"
    await cancelled(shell, command, ready)
    assert shell.alive() == []


async def test_processes_that_breed_are_ended(work: Path, shell: Shell) -> None:
    """Each is replaced by two before it goes, up to a few hundred at a time."""
    ready = Ready(work, shell.mark)
    again = "sh breed $(($1 - 1)) &"
    (work / "breed").write_text(f"trap '' TERM\n[ $1 = 0 ] && exec sleep 306\n{again} {again}\n")
    await cancelled(shell, f"setsid sh breed 6 & sh breed 6 & {ready.say}; sleep 306", ready)
    assert shell.alive() == []


async def test_stopped_processes_are_ended(work: Path, shell: Shell) -> None:
    ready = Ready(work, shell.mark)
    await cancelled(shell, f"sleep 307 & kill -STOP $!; (sleep 307; :) & kill -STOP $!; {ready.say}; sleep 307", ready)
    assert shell.alive() == []


async def test_a_supervisor_that_is_asked_to_end_ends_the_command(work: Path, shell: Shell) -> None:
    ready = Ready(work, shell.mark)
    with pytest.raises(ToolError):
        await seen(shell, f"setsid sleep 309 & {ready.say}; kill -TERM $PPID; sleep 309", ready)
    assert ready.seen
    assert shell.alive() == []


@pytest.mark.parametrize("shape", ["chain", "nohup", "ignored"])
async def test_without_a_subreaper_the_group_of_the_command_is_ended(
    work: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    """As on systems other than Linux."""
    monkeypatch.setattr(
        "openheim_tools_shell.process._RUN_SUPERVISOR",
        "import sys; sys.path.append(sys.argv[1]); from openheim_tools_shell import supervisor; "
        "supervisor._prctl = lambda: lambda option, value: False; supervisor.main()",
    )
    assert await shell("echo one; ps -o args= -p $(ps -o ppid= -p $PPID) | grep -c supervisor || true") == "one\n0\n"
    ready = Ready(work, shell.mark)
    await cancelled(shell, started(shape, ready), ready)
    assert shell.alive() == []


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


async def test_a_command_whose_start_takes_long_is_cancelled_without_waiting_for_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start of a program blocks, on a slow disk for instance; the event loop must not wait for it."""
    entered, go = threading.Event(), threading.Event()
    popen = subprocess.Popen

    def slow(*arguments: Any, **options: Any) -> Any:
        entered.set()
        assert go.wait(20)
        return popen(*arguments, **options)

    monkeypatch.setattr(subprocess, "Popen", slow)
    process = CommandProcess(shell_launch("sleep 312", shell.turn, Settings()))
    process.start()
    await anyio.to_thread.run_sync(entered.wait, 20)
    process.ask_to_end()
    assert process.ending is None
    go.set()
    assert await process.wait(20)
    assert process.ending == Ending()
    assert shell.alive() == []
