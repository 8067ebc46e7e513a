"""Which process this is, and whether another one is still running.

A pid alone says little: pids are used again, and containers with a process table of their own all begin with 1. So a
process is named by pid, host, when it started, and the process table that the pid is from.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

__all__ = ("Liveness", "ProcessName", "liveness", "this_process")

#: ``unknown``: it cannot be looked up from here.
Liveness: TypeAlias = Literal["alive", "dead", "unknown"]


class ProcessName(NamedTuple):
    """A process, as far as it is known.

    Args:
        start: when it started, in words of its system that differ for any two processes of one pid; None if unknown.
        table: the process table that ``pid`` is from; None where a system has only one.
    """

    pid: int
    host: str
    start: str | None = None
    table: str | None = None


def this_process() -> ProcessName:
    """The process that asks."""
    return _name_of(os.getpid())


@cache
def _name_of(own_pid: int) -> ProcessName:
    # Looked up once a process: a child that was forked has another pid.
    return ProcessName(own_pid, _host(), _look_up(own_pid)[1], _process_table())


def _host() -> str:
    if sys.platform == "win32":
        return os.environ.get("COMPUTERNAME") or "localhost"
    return os.uname().nodename or "localhost"


def liveness(process: ProcessName) -> Liveness:
    """Whether that process is running, as far as can be told from here."""
    here = this_process()
    same_boot = _boot_of(process.start) is not None and _boot_of(process.start) == _boot_of(here.start)
    if process.host != here.host and not same_boot:
        return "unknown"
    if _boot_of(process.start) is not None and not same_boot:
        # The machine was started anew since.
        return "dead"
    if process.table is not None and process.table != here.table:
        return "unknown"
    state, start = _look_up(process.pid)
    if state == "alive" and None not in (start, process.start) and start != process.start:
        # Its pid is used again.
        return "dead"
    return state


def _boot_of(start: str | None) -> str | None:
    """The boot that a start belongs to, where the system names it."""
    boot, slash, _ticks = (start or "").partition("/")
    return boot if slash else None


if sys.platform == "linux":

    def _look_up(pid: int) -> tuple[Liveness, str | None]:
        """Whether there is such a process, and when it started."""
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return "dead", None
        except PermissionError:
            pass
        except OverflowError:
            return "dead", None
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                # The second field is the command's name in brackets, and may hold spaces and brackets.
                fields = file.read().rpartition(b")")[2].split()
            state, ticks = fields[0], int(fields[19])
        except (OSError, ValueError, IndexError):
            # /proc may be missing, or hide the processes of others.
            return "alive", None
        if state in (b"Z", b"X"):
            # It has ended, and nobody has asked yet how.
            return "dead", None
        boot = _boot_id()
        return "alive", f"{boot}/{ticks}" if boot else None

    @cache
    def _boot_id() -> str:
        try:
            with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
                return file.read().strip()
        except OSError:
            return ""

    def _process_table() -> str | None:
        try:
            return os.readlink("/proc/self/ns/pid")
        except OSError:
            return None

elif sys.platform == "win32":

    def _look_up(pid: int) -> tuple[Liveness, str | None]:
        # Asking by signal would end the process here.
        return ("alive", None) if pid == os.getpid() else ("unknown", None)

    def _process_table() -> str | None:
        return None

else:

    def _look_up(pid: int) -> tuple[Liveness, str | None]:
        import subprocess

        try:
            os.kill(pid, 0)
        except (ProcessLookupError, OverflowError):
            return "dead", None
        except PermissionError:
            pass
        try:
            found = subprocess.run(
                ["ps", "-o", "stat=,lstart=", "-p", str(pid)],
                env={"LC_ALL": "C", "TZ": "UTC", "PATH": "/bin:/usr/bin"},
                capture_output=True,
                text=True,
                timeout=5,
            )
        except (OSError, subprocess.SubprocessError):
            return "alive", None
        state, _space, start = found.stdout.strip().partition(" ")
        if state.startswith("Z"):
            return "dead", None
        return "alive", start.strip() or None

    def _process_table() -> str | None:
        return None
