from __future__ import annotations

import os
import pwd
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from openheim_tools_shell.sandbox import abilities
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


@pytest.fixture(params=["bwrap", "landlock"])
def kind(request: pytest.FixtureRequest) -> str:
    """One that works here. Where it does not, that it is refused is tested by test_sandbox_choice."""
    found = abilities(network=True)[request.param]
    if not found.works:
        pytest.skip(reason=f"the sandbox {request.param} does not work on this machine: {found.detail}")
    return str(request.param)


@pytest.fixture
def bwrap() -> None:
    found = abilities(network=False)["bwrap"]
    if not found.works:
        pytest.skip(reason=f"bubblewrap does not work on this machine: {found.detail}")


@pytest.fixture
def confined(work: Path, kind: str) -> Iterator[Shell]:
    shell = Shell(work, sandbox=kind)
    yield shell
    assert wait_until_gone(shell.mark) == []


@pytest.fixture(params=["home", "tmp"])
def outside(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder that is none of the command's, in the user's home and in /tmp."""
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    base = home if request.param == "home" and os.access(home, os.W_OK) else tmp_path
    folder = Path(tempfile.mkdtemp(dir=base, prefix="openheim-test-"))
    yield folder
    shutil.rmtree(folder)
