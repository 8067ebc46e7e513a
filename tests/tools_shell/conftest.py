from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools_shell.calls import Shell, wait_until_gone

# Processes are looked for in /proc.
collect_ignore_glob = [] if sys.platform.startswith("linux") else ["test_*.py"]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    return work


@pytest.fixture
def shell(work: Path) -> Iterator[Shell]:
    """The tools with default settings; whatever a test did, nothing that it started is left."""
    shell = Shell(work)
    yield shell
    assert wait_until_gone(shell.mark) == []
