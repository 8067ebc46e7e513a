"""Finding the lines that match a pattern, with an engine that no pattern can hang."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, Protocol

from openheim import ToolError
from openheim_tools_fs import re_worker
from openheim_tools_fs.re_worker import NUMBER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ("Matcher", "open_matcher")

#: How long the fallback may work on one block of text, and how often that is looked at.
BLOCK_SECS = 4.0
WATCH_SECS = 0.1


class Matcher(Protocol):
    """A pattern, ready to be used."""

    def hits(self, block: bytes) -> Iterable[int]:
        """The offset of the first match in each line that has one. A match never spans lines."""
        ...


@contextmanager
def open_matcher(pattern: str, *, ignore_case: bool) -> Iterator[Matcher]:
    """A matcher for the block: RE2 where it is installed, else Python's ``re`` in a process that is ended if it hangs.

    Raises:
        ToolError: the pattern is none, or (from :meth:`Matcher.hits` of the fallback) takes too long.
    """
    try:
        pattern.encode()
    except UnicodeEncodeError as err:
        raise ToolError("the pattern holds half of a surrogate pair, which no file has") from err
    re2 = _re2_module()
    if re2 is not None:
        yield _Re2(re2, pattern, ignore_case)
        return
    process = _ReProcess(pattern, ignore_case)
    try:
        yield process
    finally:
        process.close()


def _re2_module() -> Any:
    """google-re2, or None without it."""
    try:
        module = import_module("re2")
    except ImportError:
        return None
    # Another distribution offers a module of that name, with another interface.
    return module if hasattr(module, "Options") else None


class _Re2:
    """RE2: time in proportion to the text, whatever the pattern."""

    def __init__(self, re2: Any, pattern: str, ignore_case: bool) -> None:
        options = re2.Options()
        options.case_sensitive = not ignore_case
        options.never_nl = True
        options.log_errors = False
        try:
            self._pattern = re2.compile(f"(?m){pattern}", options)
        except re2.error as err:
            reason = err.args[0]
            raise _bad_pattern(reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)) from err

    def hits(self, block: bytes) -> Iterator[int]:
        start = 0
        while start < len(block) and (match := self._pattern.search(block, start)) is not None:
            place = match.start()
            if place == len(block) and block.endswith(b"\n"):
                return  # Behind the last line, where there is no line.
            yield place
            start = block.find(b"\n", place) + 1
            if not start:
                return


class _ReProcess:
    """Python's ``re``, which some patterns keep busy for years, in a process of its own."""

    def __init__(self, pattern: str, ignore_case: bool) -> None:
        self._expired = False
        self._due: float | None = None
        self._closed = threading.Event()
        self._process = subprocess.Popen(
            # Isolated and without site: it needs the standard library only, and starts sooner.
            [sys.executable, "-I", "-S", re_worker.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._watch = threading.Thread(target=self._end_when_due, name="openheim-search-watch", daemon=True)
        self._watch.start()
        try:
            request = json.dumps({"pattern": pattern, "ignore_case": ignore_case}).encode()
            with self._deadline():
                self._send(request + b"\n")
                answer = json.loads(self._answers.readline() or b"{}")
        except BaseException:
            self.close()
            raise
        if reason := answer.get("error"):
            self.close()
            raise _bad_pattern(reason)

    def hits(self, block: bytes) -> Iterator[int]:
        with self._deadline():
            self._send(NUMBER.pack(len(block)) + block)
            (count,) = NUMBER.unpack(self._receive(NUMBER.size))
            offsets = self._receive(count * NUMBER.size)
        for (offset,) in NUMBER.iter_unpack(offsets):
            yield offset

    def close(self) -> None:
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
            raise ToolError(
                f"the pattern takes too long (over {BLOCK_SECS:g} s for one piece of text)",
                hint="avoid nested repetition such as (a+)+; with openheim-tools-fs[re2] no pattern takes long",
            ) from err
        finally:
            self._due = None

    def _end_when_due(self) -> None:
        while not self._closed.wait(WATCH_SECS):
            due = self._due
            if due is not None and time.monotonic() > due:
                self._expired = True
                self._process.kill()
                return


def _bad_pattern(reason: str) -> ToolError:
    return ToolError(f"the pattern is no valid regular expression: {reason}")
