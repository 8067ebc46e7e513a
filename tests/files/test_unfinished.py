"""A process that is killed while it writes leaves the old content or the new, and nothing else for long."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from openheim import FileChangedError, ToolError
from openheim.files import Files

OLD, NEW = b"old content", b"new content " * 1000

#: Wraps a system call that the writer makes, so that it is killed before, in the middle of or after it.
WRITER = """
import os, signal, sys
from pathlib import Path
from openheim.files import Files

root, call, moment, path = sys.argv[1:]
real = getattr(os, call)

def wrapped(*args, **more):
    if call == "open" and not args[1] & os.O_EXCL:
        return real(*args, **more)
    if moment == "amid":
        real(args[0], args[1][:5])
    if moment == "after":
        real(*args, **more)
    if moment == "wait":
        print("here", flush=True)
        sys.stdin.readline()
        return real(*args, **more)
    os.kill(os.getpid(), signal.SIGKILL)

files = Files(Path(root))
setattr(os, call, wrapped)
files.replace(path, b"new content " * 1000)
"""

STAGES = [
    ("open", "before"),
    ("open", "after"),  # The file is there, and no lock on it yet.
    ("write", "before"),
    ("write", "amid"),
    ("write", "after"),
    ("fchmod", "before"),
    ("fsync", "before"),
    ("fsync", "after"),
    ("replace", "before"),
    ("replace", "after"),
]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    (tmp_path / "work").mkdir()
    return Files(tmp_path / "work")


def names(files: Files) -> list[str]:
    return sorted(os.listdir(files.root))


def command(files: Files, call: str, moment: str, path: str = "x") -> list[str]:
    return [sys.executable, "-c", WRITER, str(files.root), call, moment, path]


@pytest.mark.parametrize(("call", "moment"), STAGES)
def test_killed_at_every_stage(files: Files, call: str, moment: str) -> None:
    (files.root / "x").write_bytes(OLD)
    done = subprocess.run(command(files, call, moment), timeout=30, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    written = (call, moment) == ("replace", "after")
    assert (files.root / "x").read_bytes() == (NEW if written else OLD)
    left = [] if written or (call, moment) == ("open", "before") else [".openheim-unfinished-0"]
    assert names(files) == [*left, "x"]
    files.replace("another", b"1")
    assert names(files) == ["another", "x"]


CHANGES = """
import sys
from pathlib import Path
from openheim.files import Files

files = Files(Path(sys.argv[1]))
for number in range(100_000):
    files.update("x", lambda old: bytes([number % 251]) * 50_000, limit=100_000)
    print(number, flush=True)
"""


@pytest.mark.slow
def test_killed_at_random_moments(files: Files, long_counts: bool) -> None:
    (files.root / "x").write_bytes(bytes([250]) * 50_000)
    chance = random.Random(7)
    for _ in range(200 if long_counts else 3):
        writer = subprocess.Popen([sys.executable, "-c", CHANGES, str(files.root)], stdout=subprocess.PIPE)
        try:
            assert writer.stdout is not None
            for _ in range(chance.randrange(1, 40)):
                assert writer.stdout.readline()
            threading.Event().wait(chance.random() / 500)
        finally:
            writer.kill()
            writer.communicate(timeout=30)
        content = (files.root / "x").read_bytes()
        assert len(content) == 50_000
        assert len(set(content)) == 1
        assert set(names(files)) <= {"x", ".openheim-unfinished-0"}
    files.replace("another", b"1")
    assert names(files) == ["another", "x"]


def test_many_left_over_are_removed_at_once(files: Files) -> None:
    for number in (0, 1, 5, 9):
        (files.root / f".openheim-unfinished-{number}").write_bytes(b"half")
    files.replace("x", NEW)
    assert names(files) == ["x"]


def test_what_is_being_written_stays(files: Files) -> None:
    (files.root / "x").write_bytes(OLD)
    writer = subprocess.Popen(command(files, "fsync", "wait"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "here\n"
        # A stopped process is not a dead one.
        writer.send_signal(signal.SIGSTOP)
        for number in range(5):
            files.replace(f"another-{number}", b"1")
        assert ".openheim-unfinished-0" in names(files)
        assert (files.root / "x").read_bytes() == OLD
        writer.send_signal(signal.SIGCONT)
        writer.communicate("go on\n", timeout=30)
    finally:
        writer.kill()
        writer.wait()
    assert writer.returncode == 0
    assert (files.root / "x").read_bytes() == NEW
    assert names(files) == [*(f"another-{number}" for number in range(5)), "x"]


@pytest.mark.parametrize("kind", ["directory", "link", "pipe", "locked"])
def test_what_is_no_left_over_stays(tmp_path: Path, files: Files, kind: str) -> None:
    taken = files.root / ".openheim-unfinished-0"
    (tmp_path / "outside").write_bytes(OLD)
    held = -1
    match kind:
        case "directory":
            taken.mkdir()
        case "link":
            taken.symlink_to(tmp_path / "outside")
        case "pipe":
            os.mkfifo(taken)
        case "locked":
            taken.write_bytes(OLD)
            held = os.open(taken, os.O_RDONLY)
            fcntl.flock(held, fcntl.LOCK_EX)
    files.replace("x", NEW)
    assert names(files) == [".openheim-unfinished-0", "x"]
    assert (tmp_path / "outside").read_bytes() == OLD
    if held >= 0:
        os.close(held)


def test_where_there_are_no_locks_nothing_is_removed(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be another machine's that writes in the same directory."""

    def none(fd: int, operation: int) -> None:
        raise OSError(95, "Operation not supported")

    (files.root / ".openheim-unfinished-0").write_bytes(b"half")
    monkeypatch.setattr(fcntl, "flock", none)
    files.replace("x", NEW)
    assert (files.root / "x").read_bytes() == NEW
    assert names(files) == [".openheim-unfinished-0", "x"]


def test_what_somebody_removes_meanwhile_is_an_error(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    (files.root / "x").write_bytes(OLD)

    def remove(fd: int) -> None:
        (files.root / ".openheim-unfinished-0").unlink()

    monkeypatch.setattr(os, "fsync", remove)
    with pytest.raises(FileChangedError, match="try again"):
        files.replace("x", NEW)
    assert (files.root / "x").read_bytes() == OLD


def test_writers_do_not_remove_each_others_files(files: Files) -> None:
    """Threads take and leave the same few names as fast as they can."""
    errors: list[BaseException] = []

    def write(name: str) -> None:
        try:
            for number in range(100):
                files.replace(name, f"{name} {number}".encode())
        except BaseException as err:
            errors.append(err)

    threads = [threading.Thread(target=write, args=(f"f{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors
    assert names(files) == [f"f{number}" for number in range(8)]
    assert all((files.root / name).read_bytes() == f"{name} 99".encode() for name in names(files))


@pytest.mark.parametrize("code", [22, 95])
def test_a_file_system_that_cannot_flush_is_no_error(files: Files, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", refuse)
    files.replace("x", NEW)
    assert (files.root / "x").read_bytes() == NEW


@pytest.mark.parametrize("name", [".openheim-unfinished-0", ".openheim-unfinished-x"])
def test_a_name_of_that_kind_is_given_to_nothing_else(files: Files, name: str) -> None:
    with pytest.raises(ToolError, match="such a name is for files that are being written; choose another"):
        files.replace(name, NEW)
    assert names(files) == []
