"""Matching with Python's own regular expressions in a child process; see :mod:`openheim_tools_fs.re_worker`."""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING

from openheim import ToolError
from openheim_tools_fs import re_worker
from openheim_tools_fs.children import start_child
from openheim_tools_fs.matching import PatternTooSlowError, TextTooSlowError, bad_pattern
from openheim_tools_fs.re_worker import EXHAUSTED, NUMBER, TOO_SLOW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ("ReProcess",)

#: Text is sent some lines at a time, of together this size, so that it can be looked whether to go on.
BLOCK_BYTES = 32 * 1024
#: How long such a block may take by the clock, and how often that is looked at. The child has limits of its own, which
#: are shorter and go by the time of the processor.
BLOCK_SECS = 8.0
WATCH_SECS = 0.1

#: How often a child that had to be ended is replaced.
MAX_REPLACED = 2


class ReProcess:
    """An engine (see :class:`~openheim_tools_fs.matching.Engine`) whose process is ended if a pattern takes too long.

    Args:
        needed: what every match holds; text without it is not even sent.
        check: called now and then; what it raises ends the matching.

    Attributes:
        seconds: time that has gone into matching.

    Raises:
        ToolError: the pattern is none.
    """

    def __init__(self, pattern: str, ignore_case: bool, needed: bytes, check: Callable[[], None]) -> None:
        self.seconds = 0.0
        self._request = json.dumps({"pattern": pattern, "ignore_case": ignore_case}).encode() + b"\n"
        self._needed = needed
        self._check = check
        self._replaced = 0
        self._child = _Child(self._request)

    def hits(self, block: bytes) -> Iterator[int]:
        if self._needed not in block:
            return
        for begin, lines in re_worker.pieces_of(block, BLOCK_BYTES):
            self._check()
            if self._needed in lines:
                for hit in self._hits_in(lines):
                    yield begin + hit

    def _hits_in(self, lines: bytes) -> list[int]:
        begin = time.monotonic()
        try:
            return self._child.hits(lines)
        except _ExpiredError as err:
            if self._replaced == MAX_REPLACED:
                raise PatternTooSlowError from err
            self._replaced += 1
            self._child.close()
            self._child = _Child(self._request)
            raise TextTooSlowError from err
        finally:
            self.seconds += time.monotonic() - begin

    def close(self) -> None:
        self._child.close()


class _ExpiredError(Exception):
    """The child had to be ended."""


class _Child:
    """The process, and a thread that ends it when it is due."""

    def __init__(self, request: bytes) -> None:
        self._expired = False
        self._due: float | None = None
        self._closed = threading.Event()
        self._process = start_child(re_worker.__file__, str(os.getpid()))
        self._watch = threading.Thread(target=self._end_when_due, name="openheim-search-watch", daemon=True)
        self._watch.start()
        try:
            with self._deadline():
                self._send(request)
                answer = json.loads(self._answers.readline() or b"{}")
            if reason := answer.get("error"):
                raise bad_pattern(reason)
        except _ExpiredError as err:
            self.close()
            raise bad_pattern("it takes too long to be prepared") from err
        except BaseException:
            self.close()
            raise

    def hits(self, block: bytes) -> list[int]:
        with self._deadline():
            self._send(NUMBER.pack(len(block)) + block)
            (count,) = NUMBER.unpack(self._receive(NUMBER.size))
            if count == TOO_SLOW:
                raise TextTooSlowError
            if count == EXHAUSTED:
                raise PatternTooSlowError
            offsets = self._receive(count * NUMBER.size)
        return [offset for (offset,) in NUMBER.iter_unpack(offsets)]

    def close(self) -> None:
        """Once more does no harm."""
        self._closed.set()
        self._watch.join()
        self._process.kill()
        with suppress(BrokenPipeError), self._process:
            pass  # Leaving the block closes the pipes and waits for the end.

    @property
    def _answers(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def _send(self, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def _receive(self, size: int) -> bytes:
        data = self._answers.read(size)
        if len(data) < size:
            raise BrokenPipeError
        return data

    @contextmanager
    def _deadline(self) -> Iterator[None]:
        self._due = time.monotonic() + BLOCK_SECS
        try:
            yield
        except BrokenPipeError as err:
            if not self._expired:
                raise ToolError("the process that matches the pattern ended unexpectedly") from err
            raise _ExpiredError from err
        finally:
            self._due = None

    def _end_when_due(self) -> None:
        while not self._closed.wait(WATCH_SECS):
            due = self._due
            if due is not None and time.monotonic() > due:
                self._expired = True
                self._process.kill()
                return
