"""The process that starts one command, stays beside it, and leaves nothing of it behind.

It runs with ``-I -S``, once for each command, so it uses little of the standard library and hardly anything of
openheim. File descriptor 0 is a socket to openheim; 1 and 2 are the command's standard output and error.

openheim sends one request: a length of 8 bytes (big-endian), then fields that end with a NUL each: the directory, the
number of arguments, the arguments, and the environment as ``NAME=value``. It comes through the socket and not in the
supervisor's own arguments, where ``pkill -f`` in a command would find it and end the supervisor.

Then the socket is quiet until openheim closes its half of it or dies, however that happens: both end the command. The
supervisor answers in lines, which ``CommandProcess`` takes: ``pid N`` once the command runs or ``failed STEP ERRNO``;
``exit STATUS`` (as of wait) once the command itself has ended; ``left NAMES`` for what it left running, ``alive N`` for
what could not be ended; ``done`` at last.

On Linux it is a subreaper: every descendant whose parent has ended becomes its child, whatever sessions and groups it
has made for itself, so that no descendant is out of its sight. Elsewhere only the command's process group is.

There, a guard stands over the supervisor, a subreaper as well, since a command may end or stop its supervisor like any
other process of its user. Whichever of the two is killed, the other one ends the command: the guard says ``orphaned``
then, and goes on as the supervisor would have; and so says a supervisor whose guard was killed. A supervisor that is
stopped is woken up by the guard, and the guard by openheim.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

from openheim_tools_shell.processes import Process, descendants

TYPE_CHECKING = False  # The module typing would cost more than all the others.
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    Request: TypeAlias = tuple[bytes, list[bytes], dict[bytes, bytes]]

__all__ = ("Guard", "Supervisor", "main", "read_request")

#: Seconds that what a command left running may take to end by itself: a ``tee`` that writes its last line, say.
LINGER_SECS = 0.25

#: Seconds between the polite signal and the other one, and most seconds that the other one is repeated.
TERM_SECS = 1.0
KILL_SECS = 3.0

#: Seconds after which those that were started meanwhile get either signal.
TERM_AGAIN_SECS = 0.05
KILL_AGAIN_SECS = 0.1

#: Seconds that a guard gives the supervisor to end the command, which is more than it takes for it; and most seconds
#: that the guard then takes itself.
TAKE_OVER_SECS = TERM_SECS + KILL_SECS + 0.25
TAKEN_OVER_SECS = 0.5

#: Names of processes left running that are told.
_MOST_NAMES = 8

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    request = read_request(0)
    # The command gets 0, 1 and 2 of its own; nobody but it may keep its output open.
    control, prctl = os.dup(0), _prctl()
    guard = Guard(control, prctl)
    if not guard.sees_all:
        # Without that, it could do nothing for the supervisor's children.
        _supervise(request, control, prctl)
    guard.start(lambda: _supervise(request, control, prctl))
    guard.watch()
    os._exit(0)


def _supervise(request: Request, control: int, prctl: Callable[[int, int], bool]) -> None:
    """Does all of it, and ends the process."""
    supervisor = Supervisor(control, prctl)
    supervisor.start(*request)
    supervisor.watch()
    # The end of an interpreter takes longer than it needs here.
    os._exit(0)


def read_request(control: int) -> Request:
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


class _Reaper:
    """A process that has one child to look after, and that ends all its descendants."""

    #: What is asked of wait, beside who has ended.
    _wait_options = os.WNOHANG

    def __init__(self, control: int, prctl: Callable[[int, int], bool]) -> None:
        self._control = control
        self._prctl = prctl
        self._parent = os.getppid()
        self._wake, wake = os.pipe()
        for end in (self._wake, wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._asked_to_end = False
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._ask_to_end)
        # Of the parent's end this signal tells a process that is stopped as well.
        signal.signal(signal.SIGCONT, self._look_for_parent)
        prctl(_PR_SET_PDEATHSIG, signal.SIGCONT)
        self.sees_all = prctl(_PR_SET_CHILD_SUBREAPER, 1) and os.path.exists("/proc/self/stat")
        self._poll = select.poll()
        self._poll.register(self._wake, select.POLLIN)
        self._poll.register(control, select.POLLIN)
        self._pid = 0
        self._status: int | None = None
        self._children = True

    def _ask_to_end(self, *_: object) -> None:
        self._asked_to_end = True

    def _look_for_parent(self, *_: object) -> None:
        if not self._asked_to_end and os.getppid() != self._parent:
            self._asked_to_end = True
            self._tell("orphaned")

    def _fork(self, become: Callable[[], None]) -> None:
        """Starts the child; ``become`` is what it does, and must not return."""
        # A signal that comes before the child has given up these handlers is kept for it and not lost in them.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._pid = os.fork()
        except OSError as err:
            self._tell(f"failed fork {err.errno or 0}")
            os._exit(1)
        if self._pid == 0:
            try:
                become()
            finally:
                os._exit(127)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def _let_go_of_output(self) -> None:
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)

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
                pid, status = os.waitpid(-1, self._wait_options)
            except ChildProcessError:
                self._children = False
                return
            if pid == 0:
                return
            if pid != self._pid:
                continue
            if os.WIFSTOPPED(status):
                os.kill(pid, signal.SIGCONT)
            else:
                self._status = status
                self._child_has_ended(status)

    def _child_has_ended(self, status: int) -> None:
        """Called once."""

    def _remains(self) -> bool:
        """Whether there is anything left to end."""
        if self.sees_all:
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
            self._wait(left if self.sees_all else min(left, 0.02))

    def _end_all(self, *, term_secs: float = TERM_SECS, kill_secs: float = KILL_SECS) -> None:
        due = time.monotonic() + term_secs
        told: set[tuple[int, int]] = set()
        while self._remains() and (left := due - time.monotonic()) > 0:
            # Again and again for those that were started meanwhile; each is told once.
            self._signal_all(signal.SIGTERM, but=told)
            self._wait_until_gone(min(left, TERM_AGAIN_SECS))
        due = time.monotonic() + kill_secs
        while self._remains() and time.monotonic() < due:
            self._freeze(due)
            self._signal_all(signal.SIGKILL)
            self._wait_until_gone(KILL_AGAIN_SECS)
        if self._remains():
            self._tell(f"alive {len(self._descendants()) or 1}")
        self._tell("done")

    def _freeze(self, due: float) -> None:
        """Stops every descendant, until none is seen that was not there before: what is stopped starts no others."""
        if not self.sees_all:
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
        if not self.sees_all:
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
        return descendants(os.getpid()) if self.sees_all else []

    def _tell(self, line: str) -> None:
        try:
            os.write(self._control, line.encode("utf-8", "replace") + b"\n")
        except OSError:
            pass  # openheim is gone; what has to be done is the same.


class Guard(_Reaper):
    """Looks after a supervisor."""

    # And who was stopped.
    _wait_options = os.WNOHANG | os.WUNTRACED

    def start(self, supervise: Callable[[], None]) -> None:
        self._fork(supervise)
        self._let_go_of_output()

    def watch(self) -> None:
        """Waits for the supervisor to do its work, and does it if that cannot."""
        while self._status is None and not self._asked_to_end:
            self._wait(None)
        if self._status is None:
            # What openheim has to say, both hear. A signal one of them gets alone.
            os.kill(self._pid, signal.SIGTERM)
            due = time.monotonic() + TAKE_OVER_SECS
            while self._status is None and (left := due - time.monotonic()) > 0:
                self._wait(left)
        if self._status is None:
            self._tell("orphaned")
            self._end_all(term_secs=0, kill_secs=TAKEN_OVER_SECS)
        elif self._status != 0:
            self._tell("orphaned")
            self._end_all()


class Supervisor(_Reaper):
    """Looks after a command."""

    def start(self, directory: bytes, arguments: list[bytes], environment: dict[bytes, bytes]) -> None:
        """Starts the command; tells openheim how that went."""

        supervisor = os.getpid()

        def become() -> None:
            step = "exec"
            try:
                self._become_command(supervisor)
                step = "chdir"
                os.chdir(directory)
                step = "exec"
                os.execvpe(arguments[0], arguments, environment)
            except OSError as err:
                self._tell(f"failed {step} {err.errno or 0}")

        self._fork(become)
        self._tell(f"pid {self._pid}")
        self._let_go_of_output()

    def _become_command(self, supervisor: int) -> None:
        """In the child: a session of its own, so that there is no terminal to ask on, and nothing inherited."""
        os.setsid()
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

    def _child_has_ended(self, status: int) -> None:
        self._tell(f"exit {status}")

    def _names(self) -> str:
        if not self.sees_all:
            return "processes of its group" if self._remains() else ""
        names = sorted(process.name for process in self._descendants() if process.state != "Z")
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        return ", ".join(names[:_MOST_NAMES]) + more


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
