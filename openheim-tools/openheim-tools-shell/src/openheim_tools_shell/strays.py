"""What is left of a command when both its supervisor and the guard of that were killed."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from openheim_tools_shell.processes import Process, processes

__all__ = ("MARK", "end_strays")

#: The variable by which processes of a command are known: each command gets another value, which its children inherit.
MARK = "OPENHEIM_COMMAND"

_SECS = 1.0


def end_strays(mark: str, leader: int) -> None:
    """Ends what carries the mark in its environment, or is in the session of the command. It blocks for a second or so.

    The command itself was ended by the system, on Linux. What it started may have left both behind, its session and its
    environment; that cannot be found any more.

    Args:
        leader: process id of the command, which its session and its group have their number from.
    """
    due = time.monotonic() + _SECS
    while (found := _strays(mark, leader)) and time.monotonic() < due:
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for process in found:
                process.send(number)
        time.sleep(0.01)
    if not os.path.exists("/proc/self/stat"):
        with suppress(OSError):
            os.killpg(leader, signal.SIGKILL)


def _strays(mark: str, leader: int) -> list[Process]:
    return [
        process
        for process in processes()
        if process.state != "Z" and (leader in (process.session, process.group) or _carries(process, f"{MARK}={mark}"))
    ]


def _carries(process: Process, variable: str) -> bool:
    try:
        with open(f"/proc/{process.pid}/environ", "rb") as file:
            return variable.encode() in file.read().split(b"\0")
    except OSError:
        return False  # It has ended, or is another user's.
