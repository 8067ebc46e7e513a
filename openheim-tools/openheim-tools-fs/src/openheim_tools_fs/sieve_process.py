"""Processes that help to pass over files; see :mod:`openheim_tools_fs.sieve`. What they do not do, others have to."""

from __future__ import annotations

import marshal
import os
import socket
import subprocess
import threading
import time
from collections import deque
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from openheim_tools_fs import sieve
from openheim_tools_fs.children import start_child
from openheim_tools_fs.sieve import LENGTH, Sieve

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from openheim_tools_fs.walking import FoundFiles

__all__ = ("Batch", "Helper", "helpers")

#: Of all searches of this process at once: they have the same processors.
MAX_HELPERS = 3

#: Batches that are on their way to a helper: the one that it is at, and some more, so that it never waits.
MAX_ASKED = 4

#: A helper that says nothing for so long is given up.
PATIENCE_SECS = 5.0


class Batch:
    """Some files of a walk, held open until they are done with.

    Attributes:
        doubtful: for each part, the places of the files that have to be looked at; None as long as nobody knows.
    """

    def __init__(self, found: list[FoundFiles]) -> None:
        self.found = found
        self.doubtful: Sequence[Sequence[int]] | None = None

    def sift(self, with_sieve: Sieve) -> None:
        doubtful = []
        for files in self.found:
            directory = files.folder.fileno()
            assert directory is not None
            doubtful.append(with_sieve.doubtful(directory, files.names))
        self.doubtful = doubtful

    def close(self) -> None:
        for files in self.found:
            files.folder.close()


class Helper:
    """A process that sifts batches. It may fail at any time, which is no harm: what it was asked is then forgotten."""

    def __init__(self, needed: bytes) -> None:
        self._asked: deque[Batch] = deque()
        self._received = b""
        self._is_ready = False
        self._heard = time.monotonic()
        self._connection, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = start_child(sieve.__file__, stdin=theirs.fileno(), stdout=subprocess.DEVNULL)
            except OSError:
                self._connection.close()
                raise
        self._connection.settimeout(PATIENCE_SECS)
        try:
            self._connection.sendall(_message(needed))
        except OSError:
            self.close()

    @property
    def has_time(self) -> bool:
        return self._is_ready and len(self._asked) < MAX_ASKED

    def is_at(self, batch: Batch) -> bool:
        """Whether this one is going to fill in what is doubtful about the batch."""
        return batch in self._asked

    def ask(self, batch: Batch) -> None:
        """Hands over a batch; see :meth:`is_at` for whether that worked."""
        if not self._asked:
            self._heard = time.monotonic()
        message = _message([files.names for files in batch.found])
        directories = [files.folder.fileno() for files in batch.found]
        try:
            self._connection.settimeout(PATIENCE_SECS)
            sent = socket.send_fds(self._connection, [message], [one for one in directories if one is not None])
            self._connection.sendall(message[sent:])
        except OSError:
            self.close()
        else:
            self._asked.append(batch)

    def listen(self, seconds: float) -> None:
        """Fills in the answers that have come, or come within that time."""
        if self._process.returncode is not None:
            return
        try:
            self._connection.settimeout(seconds)
            piece = self._connection.recv(1 << 16)
        except (TimeoutError, BlockingIOError):
            if (self._asked or not self._is_ready) and time.monotonic() - self._heard > PATIENCE_SECS:
                self.close()
            return
        except OSError:
            piece = b""
        if not piece:
            self.close()
            return
        self._heard = time.monotonic()
        self._received += piece
        while (end := _end_of_message(self._received)) is not None:
            answer = marshal.loads(self._received[LENGTH.size : end])
            self._received = self._received[end:]
            if self._is_ready:
                self._asked.popleft().doubtful = answer
            self._is_ready = True

    def close(self) -> None:
        """Ends the process. Once more does no harm."""
        self._is_ready = False
        self._asked.clear()
        self._connection.close()
        self._process.kill()
        self._process.wait()


@contextmanager
def helpers(needed: bytes) -> Iterator[list[Helper]]:
    """Helpers for the block: one for each processor but ours, less those that other searches have; perhaps none."""
    with ExitStack() as stack:
        team: list[Helper] = []
        if hasattr(socket, "send_fds"):
            try:
                while _take_place():
                    stack.callback(_give_place_back)
                    helper = Helper(needed)
                    stack.callback(helper.close)
                    team.append(helper)
            except OSError:
                pass  # No more processes, or descriptors: those there are will do.
        yield team


_lock = threading.Lock()
_taken = 0


def _take_place() -> bool:
    """Whether there may be one more helper."""
    global _taken
    with _lock:
        if _taken >= min(_processors() - 1, MAX_HELPERS):
            return False
        _taken += 1
        return True


def _give_place_back() -> None:
    global _taken
    with _lock:
        _taken -= 1


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _message(data: bytes | list[list[str]]) -> bytes:
    content = marshal.dumps(data)
    return LENGTH.pack(len(content)) + content


def _end_of_message(received: bytes) -> int | None:
    """Where the first message ends, if it is there."""
    if len(received) < LENGTH.size:
        return None
    end = LENGTH.size + int(LENGTH.unpack_from(received)[0])
    return end if len(received) >= end else None
