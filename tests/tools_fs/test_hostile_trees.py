"""Searching trees that nobody would make on purpose, but to do harm."""

from __future__ import annotations

import importlib
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from openheim import ToolError
from openheim.testing import FakeTurn
from openheim_tools_fs.walking import MAX_DEPTH
from tests.tools_fs.calls import call

pytestmark = pytest.mark.anyio

searching = importlib.import_module("openheim_tools_fs.search")

DEEP = 1000


@pytest.fixture
def deep(work: Path) -> Iterator[Path]:
    """A thousand directories in one another, with a file in each; the longest path is too long for the system."""
    here = os.open(work, os.O_RDONLY)
    for _ in range(DEEP):
        os.mkdir("directory", dir_fd=here)
        below = os.open("directory", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
        os.close(os.open("z", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    os.close(here)
    yield work
    # Python's own removing goes as deep as the tree.
    subprocess.run(["rm", "-rf", str(work / "directory")], check=True, timeout=60)


async def test_a_thousand_directories_deep(deep: Path, turn: FakeTurn) -> None:
    before = os.listdir("/proc/self/fd")
    note = f"[what is more than {MAX_DEPTH} directories deep was not searched]"
    with anyio.fail_after(30):
        text = await call(turn, "search", pattern="^(directory/){150}z$", names=True)
        assert text.splitlines() == ["directory/" * 150 + "z", note]
        text = await call(turn, "search", pattern="needle")
        assert text.splitlines() == [f"No matches for 'needle' in . ({MAX_DEPTH - 1} files searched)", note]
    assert os.listdir("/proc/self/fd") == before
    with anyio.fail_after(30):
        below = "/".join(["directory"] * 100)
        text = await call(turn, "search", pattern="needle", path=below)
    assert text.splitlines()[0] == f"No matches for 'needle' in {below} ({MAX_DEPTH} files searched)"


@pytest.mark.slow
@pytest.mark.parametrize("names", [False, True])
async def test_a_directory_with_100000_names(
    work: Path, turn: FakeTurn, names: bool, long_counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 100_000 if long_counts else 2000
    monkeypatch.setattr(searching, "MAX_FILES", count // 2)
    (work / "d").mkdir()
    (work / "d" / "first").write_text("needle")
    directory = os.open(work / "d", os.O_RDONLY)
    for number in range(count):
        os.close(os.open(f"{number:06}", os.O_WRONLY | os.O_CREAT, dir_fd=directory))
    os.close(directory)
    with anyio.fail_after(60):
        text = await call(turn, "search", pattern="needle|000007$", names=names)
    found = "d/000007" if names else f"No matches for 'needle|000007$' in . ({count // 2:,} files searched)"
    assert text.splitlines() == [
        found,
        f"[stopped after {count // 2:,} files; search a smaller directory to see the others]",
    ]


async def test_a_file_that_grows_while_it_is_read(work: Path, turn: FakeTurn) -> None:
    path = work / "log"
    path.write_bytes(b"needle\n" + b"x\n" * 100_000)
    stop = threading.Event()

    def grow() -> None:
        with open(path, "ab") as file:
            while not stop.is_set() and file.tell() < 20_000_000:
                file.write(b"y\n" * 30_000)

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        with anyio.fail_after(30):
            for _ in range(2):
                assert await call(turn, "search", pattern="needle|y_") == "log:1: needle"
                assert await call(turn, "search", pattern="needle") == "log:1: needle"
    finally:
        stop.set()
        writer.join()


async def test_what_is_no_file(work: Path, turn: FakeTurn) -> None:
    (work / "d").mkdir()
    (work / "d" / "x").write_text("needle")
    os.mkfifo(work / "d" / "pipe")
    (work / "d" / "null").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(work / "d" / "socket"))
        with anyio.fail_after(10):
            assert await call(turn, "search", pattern="needle") == "d/x:1: needle"
            assert await call(turn, "search", pattern="needle|pipe|socket", names=True) == (
                "No matches for 'needle|pipe|socket' in . (1 name searched)"
            )
            for name in ("pipe", "socket"):
                with pytest.raises(ToolError, match="not a file"):
                    await call(turn, "search", pattern="needle", path=f"d/{name}")


async def test_names_that_are_no_utf8(work: Path, turn: FakeTurn) -> None:
    odd = work / os.fsdecode(b"d\xff")
    odd.mkdir()
    (odd / "x").write_text("needle")
    (work / os.fsdecode(b"f\xff")).write_text("needle")
    (work / "x").write_text("needle")
    (work / ".gitignore").write_bytes(b"\xff\n")
    for names in (False, True):
        assert (await call(turn, "search", pattern="needle|x", names=names)).split(":")[0] == "x"


async def test_what_cannot_be_read_is_counted(work: Path, turn: FakeTurn, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        (work / name).mkdir()
        (work / name / "x").write_text("needle")
    really = os.open

    def refuse(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path in ("a", "c"):
            raise PermissionError(13, "Permission denied")
        return really(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)
    assert await call(turn, "search", pattern="needle") == "b/x:1: needle\n[2 directories could not be read]"
