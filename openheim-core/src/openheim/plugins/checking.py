"""``openheim plugins check``: each plugin is tried in a process of its own, so that none can spoil the answer."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from openheim.plugins.catalogue import Candidate
    from openheim.plugins.policy import Ruling

__all__ = ("CheckResult", "check_plugins")

#: Processes at a time. Imports are bound by the processor, so more would only make each slower.
_AT_ONCE = min(4, os.cpu_count() or 1)

#: What is kept of a child's output: its end.
_KEPT_CHUNKS = 16
_CHUNK_BYTES = 16 * 1024

#: How long a dead child's pipes may stay open before whoever holds them is ended too.
_PIPE_GRACE_SECS = 1.0


@dataclass(frozen=True, slots=True)
class CheckResult:
    """An element of ``plugins check --json``. ``load_ms`` is None if the import did not end well."""

    kind: str
    name: str
    distribution: str
    ok: bool
    load_ms: float | None
    error: str | None
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def check_plugins(rulings: Sequence[Ruling], *, timeout_secs: float, config: Path) -> Iterator[CheckResult]:
    """Tries plugins, a few at a time, and yields the results in the order given.

    Whoever closes the iterator early (Ctrl+C, for instance) ends the children that run.

    Args:
        rulings: the candidates and what the policy says of them. An incompatible one fails without being tried.
        timeout_secs: limit for each.
        config: the user's config file; toolsets are asked for their tools with the settings in it.
    """
    children = _Children()
    pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="plugin-check")
    try:
        yield from pool.map(lambda ruling: _check(ruling, children, timeout_secs, config), rulings)
    finally:
        children.end_all()
        pool.shutdown(cancel_futures=True)


def _check(ruling: Ruling, children: _Children, timeout_secs: float, config: Path) -> CheckResult:
    candidate = ruling.candidate
    if ruling.status == "incompatible":
        report: dict[str, Any] = {"load_ms": None, "error": f"it {ruling.note}", "warnings": []}
    else:
        report = _probe(candidate, children, timeout_secs, config)
    error = report["error"]
    if ruling.status == "conflict" and error is None:
        error = f"{ruling.note}; choose one in [plugins.prefer]"
    return CheckResult(
        candidate.kind,
        candidate.name,
        candidate.distribution,
        ok=error is None,
        load_ms=report["load_ms"],
        error=error,
        warnings=tuple(report["warnings"]),
    )


def _probe(candidate: Candidate, children: _Children, timeout_secs: float, config: Path) -> dict[str, Any]:
    # -P: the directory that the user happens to be in is no place to import from.
    command = [sys.executable, "-P", "-m", "openheim.plugins.probe"]
    process = children.start([*command, *candidate.key, candidate.distribution, str(config)])
    if process is None:
        return _failed("the check was interrupted")
    answer, noise = _Tail(process.stdout), _Tail(process.stderr)
    try:
        process.wait(timeout_secs)
        problem = ""
    except subprocess.TimeoutExpired:
        problem = f"it was not done after {timeout_secs:g} s"
    children.end(process, answer, noise)
    if problem:
        return _failed(problem)
    try:
        report: dict[str, Any] = json.loads(answer.text)
    except ValueError:
        return _failed(_how_it_ended(process.returncode, noise.text))
    return report


def _failed(error: str) -> dict[str, Any]:
    return {"load_ms": None, "error": error, "warnings": []}


def _how_it_ended(code: int, noise: str) -> str:
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"it ended the process by signal {signal.Signals(-code).name}"
    last = noise.strip().rpartition("\n")[2].strip()
    return f"it ended the process with exit code {code}" + (f": {last}" if last else "")


class _Tail:
    """Reads a pipe to its end in a thread, and keeps the end of what came."""

    def __init__(self, pipe: IO[bytes] | None) -> None:
        assert pipe is not None
        self._pipe = pipe
        self._kept: deque[bytes] = deque(maxlen=_KEPT_CHUNKS)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError), self._pipe:
            while chunk := os.read(self._pipe.fileno(), _CHUNK_BYTES):
                self._kept.append(chunk)

    def ended(self, within_secs: float) -> bool:
        self._thread.join(within_secs)
        return not self._thread.is_alive()

    @property
    def text(self) -> str:
        return b"".join(self._kept).decode("utf-8", "replace")


class _Children:
    """The processes that run, each the leader of a group of its own, so that it can be ended with what it started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def start(self, command: list[str]) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._closed:
                return None
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            self._running.add(process)
            return process

    def end(self, process: subprocess.Popen[bytes], *pipes: _Tail) -> None:
        """Sees to it that the process, and what it left behind on its pipes, is gone."""
        if process.poll() is None:
            _kill_group(process)
            process.wait()
        for pipe in pipes:
            if not pipe.ended(_PIPE_GRACE_SECS):
                # Somebody it started holds the pipe, so the group is not empty and its number is still its own.
                _kill_group(process)
                pipe.ended(_PIPE_GRACE_SECS)
        with self._lock:
            self._running.discard(process)

    def end_all(self) -> None:
        with self._lock:
            self._closed = True
            for process in self._running:
                if process.poll() is None:
                    _kill_group(process)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
