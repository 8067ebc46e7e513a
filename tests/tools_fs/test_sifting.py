"""Passing over files without a look at each line: by oneself, and with other processes that help and may fail."""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from openheim.files import Files, Folder
from openheim.testing import FakeTurn
from openheim_tools_fs import sieve, sieve_process, sifting
from openheim_tools_fs.sieve import Sieve
from openheim_tools_fs.sieve_process import Batch, Helper, helpers
from openheim_tools_fs.sifting import sifted
from openheim_tools_fs.walking import FoundFiles, walk
from tests.tools_fs.calls import call

WAIT_SECS = 20


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


@pytest.fixture
def tree(work: Path) -> Path:
    """A thousand files in directories of all sizes."""
    rng = random.Random(1)
    for number in range(1000):
        folder = work / f"a{number % 7}" / f"b{number % 31}" if number % 3 else work / f"c{number % 5}"
        folder.mkdir(parents=True, exist_ok=True)
        content = b"x" * rng.randint(0, 3000) + rng.choice((b"", b"", b"needle\n", b"\0", "grün\n".encode("utf-16")))
        (folder / f"{number}.txt").write_bytes(content)
    return work


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Helpers start with the second directory, however few processors there are."""
    monkeypatch.setattr(sifting, "MAX_ALONE", 1)
    monkeypatch.setattr(sieve_process, "_processors", lambda: 3)


def doubtful_by_hand(work: Path) -> list[str]:
    paths = [path for path in work.rglob("*") if path.is_file()]
    paths = [path for path in paths if b"needle" in path.read_bytes() or b"\0" in path.read_bytes()]
    return [str(path) for path in sorted(paths, key=lambda path: path.parts)]


def doubtful(work: Path) -> list[str]:
    with (
        walk(Files(work), ".", glob=None, limit=10_000, check=lambda: None) as walked,
        closing(sifted(iter(walked), b"needle", lambda: None)) as found,
    ):
        return [files.path + files.names[place] for files, places in found for place in places]


@contextmanager
def folder_of(work: Path) -> Iterator[Folder]:
    with Files(work).folder(str(work)) as folder:
        yield folder


def wait_for(helper: Helper, batch: Batch | None = None) -> None:
    end = time.monotonic() + WAIT_SECS
    while not (helper.has_time if batch is None else batch.doubtful is not None):
        assert time.monotonic() < end
        helper.listen(0.1)


def test_what_is_doubtful(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sieve, "MAX_BYTES", 100)
    (work / "passes").write_bytes(b"x" * 100)
    (work / "empty").write_bytes(b"")
    (work / "holds").write_bytes(b"a needle b")
    (work / "nul").write_bytes(b"a\0b")
    (work / "long").write_bytes(b"x" * 101)
    (work / "link").symlink_to("passes")
    (work / "directory").mkdir()
    os.mkfifo(work / "pipe")
    names = ["passes", "holds", "empty", "nul", "long", "link", "directory", "pipe", "missing"]
    before = descriptors()
    with folder_of(work) as folder:
        directory = folder.fileno()
        assert directory is not None
        assert Sieve(b"needle").doubtful(directory, names) == [1, 3, 4, 5, 6, 7, 8]
    assert descriptors() == before


def test_without_the_search_of_the_system(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ctypes", None)
    (work / "a").write_bytes(b"a needle b")
    (work / "b").write_bytes(b"need\nle")
    with folder_of(work) as folder:
        directory = folder.fileno()
        assert directory is not None
        assert Sieve(b"needle").doubtful(directory, ["a", "b"]) == [0]


def test_a_helper_says_the_same(tree: Path) -> None:
    names = sorted(path.name for path in (tree / "c0").iterdir())
    with Files(tree).folder(str(tree / "c0")) as folder:
        mine, theirs = Batch([FoundFiles("", names, folder)] * 16), Batch([FoundFiles("", names, folder)] * 16)
        mine.sift(Sieve(b"needle"))
        helper = Helper(b"needle")
        try:
            wait_for(helper)
            for _ in range(50):  # The descriptors that it is sent are closed again.
                theirs.doubtful = None
                helper.ask(theirs)
                assert helper.is_at(theirs)
                wait_for(helper, theirs)
                assert theirs.doubtful == mine.doubtful
                assert len(os.listdir(f"/proc/{helper._process.pid}/fd")) < 10
        finally:
            helper.close()
    assert mine.doubtful
    assert any(mine.doubtful)


@pytest.mark.usefixtures("at_once")
def test_the_order_is_that_of_the_walk(tree: Path) -> None:
    before = descriptors()
    expected = doubtful_by_hand(tree)
    for _ in range(5):
        assert doubtful(tree) == expected
    assert descriptors() == before


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    "program",
    [
        "raise SystemExit",
        # Ready, and gone with the first batch.
        "import os, marshal, struct\n"
        "answer = marshal.dumps([])\n"
        "os.write(0, struct.pack('>I', len(answer)) + answer)\n"
        "os.read(0, 1)",
        # Ready, and silent ever after.
        "import os, marshal, struct, time\n"
        "answer = marshal.dumps([])\n"
        "os.write(0, struct.pack('>I', len(answer)) + answer)\n"
        "time.sleep(1000)",
        "import time; time.sleep(1000)",
    ],
)
def test_helpers_that_fail(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    script = tmp_path / "helper.py"
    script.write_text(program)
    monkeypatch.setattr(sieve, "__file__", str(script))
    monkeypatch.setattr(sieve_process, "PATIENCE_SECS", 0.3)
    before = descriptors()
    assert doubtful(tree) == doubtful_by_hand(tree)
    assert descriptors() == before


@pytest.mark.usefixtures("at_once")
def test_no_process_can_be_started(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert doubtful(tree) == doubtful_by_hand(tree)


@pytest.mark.usefixtures("at_once")
def test_searches_at_once_share_the_helpers(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = doubtful_by_hand(tree)
    with helpers(b"needle") as team, helpers(b"needle") as others:
        assert len(team) == 2
        assert others == []
        assert doubtful(tree) == expected  # Alone.
    monkeypatch.setattr(sieve_process, "_processors", lambda: 16)
    with helpers(b"needle") as team:
        assert len(team) == sieve_process.MAX_HELPERS == 3
    with pytest.MonkeyPatch.context() as patch:  # A place whose process does not start is free again.
        patch.setattr(sys, "executable", "/nowhere/python")
        with helpers(b"needle") as team:
            assert team == []
    with helpers(b"needle") as team:
        assert len(team) == 3


def test_a_helper_ends_with_the_process_that_started_it() -> None:
    starter = (
        "import os, sys, time\n"
        "from openheim_tools_fs.sieve_process import Helper\n"
        "helper = Helper(b'x')\n"
        "while not helper.has_time: helper.listen(1)\n"
        "print(helper._process.pid, flush=True)\n"
        "time.sleep(1000)\n"
    )
    with subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        watched = os.pidfd_open(pid)
        try:
            parent.send_signal(signal.SIGKILL)
            ended, _, _ = select.select([watched], [], [], WAIT_SECS)
            assert ended
        finally:
            os.close(watched)


def wait_until_open(expected: set[str]) -> None:
    end = time.monotonic() + WAIT_SECS
    while descriptors() != expected:
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.anyio
@pytest.mark.usefixtures("at_once")
async def test_a_search_with_helpers_leaves_nothing_behind(tree: Path) -> None:
    turn = FakeTurn(tree)
    expected = (await call(turn, "search", pattern="needle")).splitlines()
    assert expected[-1].startswith("[stopped at 200 matches")
    before = descriptors()
    with anyio.fail_after(30):
        for _ in range(5):
            assert (await call(turn, "search", pattern="needle")).splitlines() == expected
        for seconds in (0.001, 0.005, 0.01, 0.02, 0.04):
            with anyio.move_on_after(seconds):
                await call(turn, "search", pattern="no such word")
        await anyio.to_thread.run_sync(wait_until_open, before)  # What was given up ends soon after.
