"""A command that runs: it is started here, and a thread attends it until nothing of it is left."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

import openheim_tools_shell
from openheim_tools_shell.bell import Bell
from openheim_tools_shell.kept import KeptOutput
from openheim_tools_shell.launch import interpreter_environment
from openheim_tools_shell.processes import children
from openheim_tools_shell.strays import MARK, end_strays

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openheim_tools_shell.launch import Launch

__all__ = ("CommandProcess", "Ending")

#: Seconds that the supervisor and its guard have to end a command, which is more than they take for it (see there).
END_SECS = 5.0

#: Seconds that it takes for them to go at most once they have done so.
EXIT_SECS = 0.5

#: Seconds that a task waits in addition for the thread to do it without them.
STRAYS_SECS = 2.0

#: Seconds without a word after which the guard is woken. A command may have stopped it and the supervisor and ended
#: itself, and then nobody else would notice: whoever is woken wakes the other one and sees how the command ended.
WAKE_SECS = 3.0

_READ_BYTES = 64 * 1024

#: Bytes that are still read once all is over. More than a pipe holds means that somebody else goes on writing.
_LAST_BYTES = 2 * 1024 * 1024

#: Without site and the user's settings it starts sooner; imported, it comes from byte code. The folder stands last on
#: the path, so that none of its modules hides one of the standard library.
_RUN_SUPERVISOR = "import sys; sys.path.append(sys.argv[1]); from openheim_tools_shell.supervisor import main; main()"


@dataclass(slots=True)
class Ending:
    """How a command ended.

    Args:
        status: its exit status as of wait; None if it did not end by itself, or was not started.
        failure: why it could not be started: the step (``start``, ``fork``, ``chdir``, ``exec``) and the error.
        left: names of what it left running, which was ended.
        alive: how many of its processes could not be ended.
        timed_out: whether it was ended since its time was over.
        orphaned: whether its supervisor, or the guard of that, was ended from outside, and the command therefore.
        unattended: whether both were, so that processes of it may be left.
    """

    status: int | None = None
    failure: tuple[str, OSError] | None = None
    left: str = ""
    alive: int = 0
    orphaned: bool = False
    unattended: bool = False
    timed_out: bool = False


class CommandProcess:
    """One command with its supervisor (see :mod:`openheim_tools_shell.supervisor`).

    Attributes:
        stdout, stderr: what it writes.
        ending: how it ended; None while it runs.
    """

    def __init__(self, launch: Launch) -> None:
        self.stdout = KeptOutput()
        self.stderr = KeptOutput()
        self.ending: Ending | None = None
        self._launch = launch
        self._mark = os.urandom(16).hex()
        self._bell = Bell()
        self._pid = 0
        self._ending = Ending()
        self._done = False
        #: Held for what takes no time, so that the event loop may take it.
        self._lock = threading.Lock()
        self._control, self._theirs = socket.socketpair()
        self._ask, self._asked = socket.socketpair()
        self._asked_to_end = False
        self._due: float | None = None
        self._give_up: float | None = None

    def start(self, *, limit_secs: float | None = None) -> None:
        """Starts it, in a thread. It is a daemon: if openheim ends, its end of the socket tells the supervisor.

        Args:
            limit_secs: when to end it, whether or not anybody waits.
        """
        if limit_secs is not None:
            self._due = time.monotonic() + limit_secs
        threading.Thread(target=self._run, name="openheim-command", daemon=True).start()

    async def wait(self, secs: float, *, each: Callable[[], None] | None = None, every_secs: float = 0.5) -> bool:
        """Waits until it has ended, for at most ``secs``; says whether it has.

        Args:
            each: called every ``every_secs`` meanwhile.
        """
        due = time.monotonic() + secs
        with self._bell.listening() as bell:
            while self.ending is None:
                left = due - time.monotonic()
                if left <= 0:
                    return False
                await bell.wait(left if each is None else min(left, every_secs))
                if each is not None and self.ending is None:
                    each()
        return True

    async def wait_for_start(self, secs: float) -> None:
        """Waits until it runs or has ended, for at most ``secs``."""
        due = time.monotonic() + secs
        with self._bell.listening() as bell:
            while self._pid == 0 and self.ending is None and (left := due - time.monotonic()) > 0:
                await bell.wait(left)

    def ask_to_end(self) -> None:
        """Has the supervisor end the command and all that it started. It may be called from any thread."""
        with self._lock:
            if not self._asked_to_end:
                self._asked_to_end = True
                with suppress(OSError):  # It has ended already.
                    self._control.shutdown(socket.SHUT_WR)
                with suppress(OSError):
                    self._ask.close()

    async def end(self) -> None:
        """Ends the command and all that it started, and waits for that; cancelling does not keep it from it."""
        with anyio.CancelScope(shield=True):
            self.ask_to_end()
            await self.wait(END_SECS + STRAYS_SECS)

    # --- in the thread ---

    def _run(self) -> None:
        try:
            with self._theirs:
                running = self._start_supervisor()
            if running is not None:
                self._attend(running)
        finally:
            with self._lock:
                for end in (self._control, self._ask, self._asked):
                    end.close()
            self.stdout.finish()
            self.stderr.finish()
            self.ending = self._ending
            self._bell.ring()

    def _start_supervisor(self) -> subprocess.Popen[bytes] | None:
        """The one place where a command is started."""
        if self._asked_to_end:
            return None
        try:
            return subprocess.Popen(
                [*self._launch.around_supervisor, *_supervisor_command()],
                stdin=self._theirs.fileno(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd="/",
                env={**interpreter_environment(), MARK: self._mark},
                # What a terminal sends to openheim's group is openheim's to act on.
                start_new_session=True,
            )
        except OSError as err:
            self._ending.failure = ("start", err)
            return None

    def _attend(self, running: subprocess.Popen[bytes]) -> None:
        assert running.stdout is not None and running.stderr is not None
        with running.stdout, running.stderr:
            streams = {running.stdout.fileno(): self.stdout, running.stderr.fileno(): self.stderr}
            for stream in streams:
                os.set_blocking(stream, False)
            with suppress(OSError):  # If the supervisor has ended, that is seen below.
                self._control.sendall(self._launch.request({MARK: self._mark}))
            self._read_until_done(running, streams)
            if not self._done:
                self._end_unattended(running)
            for stream, kept in streams.items():
                self._read_the_rest(stream, kept)
        try:
            running.wait(EXIT_SECS)
        except subprocess.TimeoutExpired:
            running.kill()  # It has no more to do; it may have been stopped.
            with suppress(subprocess.TimeoutExpired):
                running.wait(END_SECS)
        if self._pid == 0 and not self._done and self._ending.failure is None and not self._asked_to_end:
            said = self.stderr.last_line()
            self._ending.failure = ("start", OSError(0, f"what starts it has ended{f': {said}' if said else ''}"))

    def _end_unattended(self, running: subprocess.Popen[bytes]) -> None:
        """Neither the supervisor nor its guard can do it any more."""
        running.kill()
        if self._pid == 0:
            return  # There was no command yet.
        self._ending.orphaned = True
        if not self._launch.around_supervisor:
            # A sandbox around the supervisor ends with it, and all within; the numbers of processes are its own.
            self._ending.unattended = True
            end_strays(self._mark, self._pid)

    def _read_until_done(self, running: subprocess.Popen[bytes], streams: Mapping[int, KeptOutput]) -> None:
        """Returns once the supervisor is done or has ended with its guard, or both have had the time for it."""
        answers = b""
        with selectors.DefaultSelector() as selector:
            for source in (self._control.fileno(), self._asked.fileno(), *streams):
                selector.register(source, selectors.EVENT_READ)
            while not self._done and ((left := self._secs_left()) is None or left > 0):
                ready = selector.select(WAKE_SECS if left is None else min(left, WAKE_SECS))
                if not ready:
                    self._wake(running)
                for key, _ in ready:
                    if key.fd == self._asked.fileno():
                        selector.unregister(key.fd)
                        self._give_up = time.monotonic() + END_SECS
                        running.send_signal(signal.SIGCONT)  # If it was stopped, it cannot hear.
                        continue
                    if key.fd in streams:
                        try:
                            data = os.read(key.fd, _READ_BYTES)
                        except BlockingIOError:
                            continue
                        if data:
                            streams[key.fd].feed(data)
                        else:
                            selector.unregister(key.fd)
                        continue
                    try:
                        data = self._control.recv(4096)
                    except ConnectionError:
                        data = b""
                    if not data:
                        return
                    *lines, answers = (answers + data).split(b"\n")
                    for line in lines:
                        self._take(line.decode("utf-8", "replace"))

    def _wake(self, running: subprocess.Popen[bytes]) -> None:
        """Wakes the guard, if it was stopped; the signal does nothing to a process that was not."""
        running.send_signal(signal.SIGCONT)
        if self._launch.around_supervisor:
            # Between it and the guard there stands the first process of the sandbox.
            for first in children(running.pid):
                for guard in children(first.pid):
                    guard.send(signal.SIGCONT)

    def _secs_left(self) -> float | None:
        """Seconds until the command has to be ended, or to have ended once that was asked; None for no limit."""
        if self._give_up is not None:
            return self._give_up - time.monotonic()
        if self._due is None:
            return None
        if (left := self._due - time.monotonic()) > 0:
            return left
        self._due = None
        self._ending.timed_out = True
        self.ask_to_end()  # Which is heard at once.
        return None

    def _read_the_rest(self, stream: int, kept: KeptOutput) -> None:
        left = _LAST_BYTES
        with suppress(BlockingIOError):  # Somebody else has it open; what was written by now is read.
            while left > 0 and (data := os.read(stream, _READ_BYTES)):
                kept.feed(data)
                left -= len(data)

    def _take(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        match word:
            case "pid":
                self._pid = int(rest)
                self._bell.ring()
            case "failed":
                step, number = rest.split(" ")
                self._ending.failure = (step, OSError(int(number), os.strerror(int(number))))
            case "exit":
                self._ending.status = int(rest)
            case "left":
                self._ending.left = rest
            case "alive":
                self._ending.alive = int(rest)
            case "orphaned":
                self._ending.orphaned = True
            case "done":
                self._done = True


def _supervisor_command() -> list[str]:
    # A sandbox may not have the links that lead to the interpreter, so that it is named itself.
    folder = os.path.dirname(os.path.dirname(os.path.realpath(openheim_tools_shell.__file__)))
    return [os.path.realpath(sys.executable), "-I", "-S", "-c", _RUN_SUPERVISOR, folder]
