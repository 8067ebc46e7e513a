"""The process that starts one command, stays beside it, and leaves nothing of it behind.

It runs with ``-I -S``, once for each command, so it uses little of the standard library and nothing of openheim. File
descriptor 0 is a socket to openheim; 1 and 2 are the command's standard output and error.

openheim sends one request: a length of 8 bytes (big-endian), then fields that end with a NUL each: the directory, the
number of arguments, the arguments, and the environment as ``NAME=value``. It comes through the socket and not in the
supervisor's own arguments, where ``pkill -f`` in a command would find it and end the supervisor.

Then the socket is quiet until openheim closes its half of it or dies, however that happens: both end the command. The
supervisor answers in lines, which ``CommandProcess`` takes: ``pid N`` once the command runs or ``failed STEP ERRNO``;
``exit STATUS`` (as of wait) once the command itself has ended; ``left NAMES`` for what it left running, ``alive N`` for
what could not be ended; ``done`` at last.

On Linux it is a subreaper: every descendant whose parent has ended becomes its child, whatever sessions and groups it
has made for itself, so that no descendant is out of its sight. Elsewhere only the command's process group is.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

TYPE_CHECKING = False  # The module typing would cost more than all the others.
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("Process", "Supervisor", "descendants", "main", "processes", "read_process", "read_request")

#: Seconds that what a command left running may take to end by itself: a ``tee`` that writes its last line, say.
LINGER_SECS = 0.25

#: Seconds between the polite signal and the other one, and most seconds that the other one is repeated.
TERM_SECS = 1.0
KILL_SECS = 3.0

#: Seconds after which those that were started meanwhile get either signal.
TERM_AGAIN_SECS = 0.05
KILL_AGAIN_SECS = 0.1

#: Names of processes left running that are told.
_MOST_NAMES = 8

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    supervisor = Supervisor()
    supervisor.start(*read_request(0))
    supervisor.watch()


def read_request(control: int) -> tuple[bytes, list[bytes], dict[bytes, bytes]]:
    """Directory, arguments and environment of the command."""
    length = int.from_bytes(_read_exactly(control, 8), "big")
    directory, count, *rest = _read_exactly(control, length).split(b"\0")[:-1]
    arguments, environment = rest[: int(count)], rest[int(count) :]
    return directory, arguments, dict(variable.split(b"=", 1) for variable in environment)


def _read_exactly(control: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = os.read(control, size - len(data))
        if not piece:
            sys.exit(1)  # openheim is gone before anything was started.
        data += piece
    return data


class Supervisor:
    """One command and all its descendants."""

    def __init__(self) -> None:
        # The command gets 0, 1 and 2 of its own; nobody but it may keep its output open.
        self._control = os.dup(0)
        self._wake, wake = os.pipe()
        for end in (self._wake, wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._asked_to_end = False
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._ask_to_end)
        self._prctl = _prctl()
        # A command may have stopped this process. When openheim is gone, nobody else would wake it up to see that.
        self._prctl(_PR_SET_PDEATHSIG, signal.SIGCONT)
        self._sees_all = self._prctl(_PR_SET_CHILD_SUBREAPER, 1) and os.path.exists("/proc/self/stat")
        self._poll = select.poll()
        self._poll.register(self._wake, select.POLLIN)
        self._poll.register(self._control, select.POLLIN)
        self._pid = 0
        self._status: int | None = None
        self._children = True

    def _ask_to_end(self, *_: object) -> None:
        self._asked_to_end = True

    def start(self, directory: bytes, arguments: list[bytes], environment: dict[bytes, bytes]) -> None:
        """Starts the command; tells openheim how that went."""
        # A signal that comes before the child has given up these handlers is kept for it and not lost in them.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._pid = os.fork()
        except OSError as err:
            self._tell(f"failed fork {err.errno or 0}")
            sys.exit(1)
        if self._pid == 0:
            step = "exec"
            try:
                self._become_command()
                step = "chdir"
                os.chdir(directory)
                step = "exec"
                os.execvpe(arguments[0], arguments, environment)
            except OSError as err:
                self._tell(f"failed {step} {err.errno or 0}")
            finally:
                os._exit(127)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        self._tell(f"pid {self._pid}")
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)

    def _become_command(self) -> None:
        """In the child: a session of its own, so that there is no terminal to ask on, and nothing inherited."""
        os.setsid()
        supervisor = os.getppid()
        self._prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != supervisor:
            os._exit(127)  # It was killed before the line above; nobody would have told.
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)

    def watch(self) -> None:
        """Waits for the command or for openheim's word, ends what is left, and tells of both."""
        while self._status is None and not self._asked_to_end:
            self._wait(None)
        if self._status is not None and self._remains():
            # Nothing may be left; most often it is about to end anyhow.
            self._wait_until_gone(LINGER_SECS, until_asked=True)
            if names := self._names():
                self._tell("left " + names)
        self._end_all()

    def _wait(self, secs: float | None) -> None:
        """Waits for a child to end or for openheim, and takes note of either."""
        for descriptor, _ in self._poll.poll(None if secs is None else max(secs, 0) * 1000):
            if descriptor == self._control:
                self._asked_to_end = True
                self._poll.unregister(self._control)
            else:
                os.read(self._wake, 4096)
        self._reap()

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._children = False
                return
            if pid == 0:
                return
            if pid == self._pid:
                self._status = status
                self._tell(f"exit {status}")

    def _remains(self) -> bool:
        """Whether there is anything left to end."""
        if self._sees_all:
            # Who has a descendant has a child: those whose parent has ended are children of the subreaper.
            return self._children
        try:
            os.killpg(self._pid, 0)
        except ProcessLookupError:
            return self._children
        except PermissionError:
            pass
        return True

    def _wait_until_gone(self, secs: float, *, until_asked: bool = False) -> None:
        due = time.monotonic() + secs
        while self._remains() and (left := due - time.monotonic()) > 0 and not (until_asked and self._asked_to_end):
            # Where there are processes that are nobody's child here, no signal tells of their end.
            self._wait(left if self._sees_all else min(left, 0.02))

    def _end_all(self) -> None:
        due = time.monotonic() + TERM_SECS
        told: set[tuple[int, int]] = set()
        while self._remains() and (left := due - time.monotonic()) > 0:
            # Again and again for those that were started meanwhile; each is told once.
            self._signal_all(signal.SIGTERM, but=told)
            self._wait_until_gone(min(left, TERM_AGAIN_SECS))
        due = time.monotonic() + KILL_SECS
        while self._remains() and time.monotonic() < due:
            self._freeze(due)
            self._signal_all(signal.SIGKILL)
            self._wait_until_gone(KILL_AGAIN_SECS)
        if self._remains():
            self._tell(f"alive {len(self._descendants()) or 1}")
        self._tell("done")

    def _freeze(self, due: float) -> None:
        """Stops every descendant, until none is seen that was not there before: what is stopped starts no others."""
        if not self._sees_all:
            return
        seen: set[tuple[int, int]] = set()
        while time.monotonic() < due:
            new = [process for process in self._descendants() if process.identity not in seen]
            if not new:
                return
            for process in new:
                process.send(signal.SIGSTOP)
                seen.add(process.identity)

    def _signal_all(self, number: int, *, but: set[tuple[int, int]] | None = None) -> None:
        """Sends a signal to all that is left, except to those of ``but``, to which it adds them."""
        if not self._sees_all:
            try:
                os.killpg(self._pid, number)
                os.killpg(self._pid, signal.SIGCONT)
            except OSError:
                pass  # It is gone, or belongs to another user by now.
        for process in self._descendants():
            if but is not None:
                if process.identity in but:
                    continue
                but.add(process.identity)
            process.send(number)
            process.send(signal.SIGCONT)  # A stopped process takes the other one only then.

    def _descendants(self) -> list[Process]:
        return descendants(os.getpid()) if self._sees_all else []

    def _names(self) -> str:
        if not self._sees_all:
            return "processes of its group" if self._remains() else ""
        names = sorted(process.name for process in self._descendants() if process.state != "Z")
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        return ", ".join(names[:_MOST_NAMES]) + more

    def _tell(self, line: str) -> None:
        try:
            os.write(self._control, line.encode("utf-8", "replace") + b"\n")
        except OSError:
            pass  # openheim is gone; what has to be done is the same.


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


def _prctl() -> Callable[[int, int], bool]:
    """A function that calls prctl and says whether that worked; it never does outside Linux."""
    if not sys.platform.startswith("linux"):
        return lambda option, value: False
    try:
        import ctypes

        call = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return lambda option, value: False
    call.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)
    return lambda option, value: bool(call(option, value, 0, 0, 0) == 0)
