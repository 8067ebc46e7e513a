"""What commands in a sandbox can do to other processes, and how they end themselves."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import pytest

from openheim import ToolError
from openheim_tools_shell.sandbox import landlock
from tests.tools_shell.calls import Ready, Shell, refused, tree, wait_until_gone
from tests.tools_shell.test_endings import cancelled, openheim_ended, seen, started, timed_out

pytestmark = pytest.mark.anyio


Sleeper: TypeAlias = "subprocess.Popen[bytes]"


@pytest.fixture
def sleeper() -> Iterator[Sleeper]:
    """A process that is none of the command's."""
    with subprocess.Popen(["sleep", "300"], start_new_session=True) as process:
        yield process
        process.kill()


async def test_processes_outside_cannot_be_ended(confined: Shell, kind: str, sleeper: Sleeper) -> None:
    if kind == "landlock" and landlock.version() < 6:
        pytest.skip("this kernel's Landlock says nothing of signals (Linux 6.12 does), which the docs tell")
    await refused(confined, f"kill -9 {sleeper.pid}")
    await refused(confined, f"kill -9 -- -{sleeper.pid}")
    await refused(confined, f"kill -0 {os.getpid()}")
    assert sleeper.poll() is None


async def test_nothing_can_be_read_from_processes_outside(confined: Shell, kind: str, sleeper: Sleeper) -> None:
    process = f"/proc/{sleeper.pid}"
    for command in (f"cat {process}/environ", f"cat {process}/maps", f"ls {process}/cwd/", f"cat {process}/fd/1"):
        await refused(confined, command)
    if kind == "bwrap":
        await refused(confined, f"ls {process}")


async def test_nothing_is_left_when_time_is_over(confined: Shell, work: Path) -> None:
    ready = Ready(work, confined.mark)
    await timed_out(confined, started("all", ready), ready)
    assert wait_until_gone(confined.mark) == []


async def test_what_is_left_behind_is_told_and_may_finish_its_last_line(confined: Shell, work: Path) -> None:
    said = await confined("sleep 306 & echo done")
    assert said.startswith("done\n")
    assert "left running" in said
    assert "sleep" in said
    await confined("(sleep 0.05; echo last > late) & true")
    assert tree(work)["late"] == "last\n"


async def test_a_command_that_ends_its_own_supervisor_leaves_nothing(confined: Shell, work: Path) -> None:
    ready = Ready(work, confined.mark)
    with suppress(ToolError):
        await seen(confined, f"(setsid sleep 307 &); {ready.say}; kill -9 $PPID", ready)
    assert ready.seen
    assert wait_until_gone(confined.mark) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_when_openheim_is_ended_nothing_is_left(confined: Shell, work: Path, kind: str, number: int) -> None:
    ready = Ready(work, confined.mark)
    openheim_ended(number, confined, work, started("all", ready), ready, sandbox=kind)
    assert wait_until_gone(confined.mark) == []


async def test_a_cancelled_command_leaves_nothing(confined: Shell, work: Path) -> None:
    ready = Ready(work, confined.mark)
    await cancelled(confined, started("all", ready), ready)
    assert confined.alive() == []


async def test_how_it_ended_passes_through(confined: Shell) -> None:
    assert "exit status 3" in await refused(confined, "exit 3")
    assert "killed by signal 9 (SIGKILL)" in await refused(confined, "kill -9 $$")
    assert "killed by signal 15 (SIGTERM)" in await refused(confined, "kill $$")
    assert "exit status 127" in await refused(confined, "no-such-program")


async def test_jobs_in_the_background(confined: Shell, work: Path) -> None:
    ready = Ready(work, confined.mark)
    text = await confined(f"echo started; {ready.say}; sleep 308", background=True)
    job_id = text.split()[0].strip("[")
    await ready.wait()
    assert "started" in await confined.call("job_kill", job_id=job_id)
    assert wait_until_gone(confined.mark) == []
    await confined("sleep 309", background=True)
    await confined.tools["execute_command"].close_session(confined.turn.session_id)  # type: ignore[attr-defined]
    assert confined.alive() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root could do these things without a sandbox")
async def test_root_cannot_get_out(confined: Shell, work: Path, kind: str) -> None:
    before = await Shell(work)("cat /proc/sys/kernel/core_pattern")
    await confined(
        "echo bad > /proc/sys/kernel/core_pattern; mount -o remount,rw / ; mount -t tmpfs none . ; umount /tmp; "
        "mknod disk b 254 0; mknod memory c 1 1; chroot / true; true"
    )
    assert await Shell(work)("cat /proc/sys/kernel/core_pattern") == before
    assert os.listdir(work) == []
    capabilities = await confined("grep CapEff /proc/self/status")
    assert int(capabilities.split()[1], 16) & ~0b10011011011 == 0
