"""Processes of the machine, as ``/proc`` shows them. The supervisor uses it too, so it imports next to nothing."""

from __future__ import annotations

import os
import signal

__all__ = ("Process", "children", "descendants", "processes", "read_process")


class Process:
    """A process as ``/proc`` shows it."""

    __slots__ = ("group", "name", "parent", "pid", "session", "started", "state")

    def __init__(self, stat: str) -> None:
        # The name stands in parentheses and may hold anything, parentheses and line ends too.
        before, _, after = stat.rpartition(")")
        pid, _, name = before.partition(" (")
        fields = after.split()
        self.pid = int(pid)
        self.name = "".join(char if char.isprintable() else "?" for char in name)
        self.state = fields[0]
        self.parent, self.group, self.session = int(fields[1]), int(fields[2]), int(fields[3])
        self.started = int(fields[19])

    @property
    def identity(self) -> tuple[int, int]:
        """What no later process has, although it may get the same number."""
        return self.pid, self.started

    def send(self, number: int) -> None:
        """Sends a signal to this process, and to no other that has got its number meanwhile."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        except (OSError, AttributeError):  # The system or the Python is old.
            handle = -1
        try:
            found = read_process(self.pid)
            if found is None or found.started != self.started:
                return
            if handle >= 0:
                signal.pidfd_send_signal(handle, number)
            else:
                os.kill(self.pid, number)
        except OSError:
            pass  # It is gone, or has become another user's.
        finally:
            if handle >= 0:
                os.close(handle)


def read_process(pid: int | str) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return Process(file.read())
    except (OSError, ValueError, IndexError):
        return None


def processes() -> list[Process]:
    """All processes of the machine; none where there is no ``/proc``."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    return [found for name in names if name.isdigit() and (found := read_process(name)) is not None]


def children(pid: int) -> list[Process]:
    """The children of a process, as the kernel lists them; none where it does not."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            names = file.read().split()
    except (OSError, ValueError):
        return []
    return [found for name in names if (found := read_process(name)) is not None and found.parent == pid]


def descendants(root: int) -> list[Process]:
    """All descendants of a process, parents before their children."""
    children: dict[int, list[Process]] = {}
    for process in processes():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    parents = [root]
    while parents:
        below = children.pop(parents.pop(), [])
        found += below
        parents += [process.pid for process in below]
    return found
