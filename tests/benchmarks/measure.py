"""Running subjects in child processes and putting the figures side by side."""

from __future__ import annotations

import json
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_NOT_FOR_CHILDREN = re.compile(r"^OPENHEIM_|_API_KEY$|^PYTHONDONTWRITEBYTECODE$|^PYTHONPATH$")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Args:
        value, unit: what was measured of openheim.
        floor, floor_name: the same work done by what it is compared with, in the same run; None if nothing compares.
        limit: the budget: a multiple of the floor when ``relative``, else in ``unit``; None for a row without one.
    """

    name: str
    value: float
    unit: str
    floor: float | None = None
    floor_name: str = ""
    limit: float | None = None
    relative: bool = False

    @property
    def ratio(self) -> float | None:
        return self.value / self.floor if self.floor else None

    @property
    def within(self) -> bool | None:
        """Whether the budget is kept; None without one."""
        figure = self.ratio if self.relative else self.value
        return None if self.limit is None or figure is None else figure <= self.limit

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "floor": self.floor,
            "floor_name": self.floor_name,
            "ratio": self.ratio,
            "limit": self.limit,
            "limit_is": "multiple of floor" if self.relative else self.unit,
            "within": self.within,
        }


@dataclass(frozen=True, slots=True)
class Run:
    """One child process, whole: wall and CPU in milliseconds, peak resident memory in MiB."""

    wall_ms: float
    cpu_ms: float
    peak_mib: float


def child_environment(**changes: str) -> dict[str, str]:
    """The environment of a user without settings and keys."""
    kept = {name: value for name, value in os.environ.items() if not _NOT_FOR_CHILDREN.search(name)}
    return kept | changes


def run_process(command: list[str], environment: Mapping[str, str], cwd: Path) -> Run:
    """Runs a command to its end. It has to succeed.

    The kernel counts the parent's memory at the time of the start into the child's peak, so this process stays small.
    """
    start = time.perf_counter()
    process = subprocess.Popen(
        command, env=environment, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    complaint = process.stderr.read()
    _pid, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode:
        raise RuntimeError(f"{command} ended with {process.returncode}: {complaint.decode(errors='replace')[-2000:]}")
    return Run(wall * 1000, (used.ru_utime + used.ru_stime) * 1000, used.ru_maxrss / 1024)


def run_subject(module: str, *arguments: str, environment: Mapping[str, str], cwd: Path) -> dict[str, float]:
    """Runs a module of this package in a child and returns the figures that it prints as JSON."""
    command = [sys.executable, "-m", f"tests.benchmarks.{module}", *arguments]
    done = subprocess.run(command, env=environment, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command} ended with {done.returncode}: {done.stderr[-2000:]}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def interleaved(subjects: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, list[Any]]:
    """Calls every subject once a round, after one call each that does not count."""
    results: dict[str, list[Any]] = {name: [] for name in subjects}
    for number in range(rounds + 1):
        for name, subject in subjects.items():
            result = subject()
            if number:
                results[name].append(result)
    return results


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


def allow_many_descriptors() -> None:
    """Raises the soft limit of open descriptors to the hard one, for a thousand connections."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
