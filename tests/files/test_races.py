"""Another thread swaps what a path leads to, as fast as it can, while the path is used."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from openheim import ToolError
from openheim.files import Files

TRIES = 2000


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work, out = tmp_path / "work", tmp_path / "out"
    (work / "t").mkdir(parents=True)
    out.mkdir()
    (work / "t" / "secret").write_text("mine")
    (out / "secret").write_text("TOP")
    return work


@contextmanager
def swapped(swap: Callable[[], None]) -> Iterator[Callable[[], int]]:
    """Runs ``swap`` over and over in another thread; yields how often it has run."""
    ended = threading.Event()
    count = 0

    def run() -> None:
        nonlocal count
        while not ended.is_set():
            swap()
            count += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield lambda: count
    finally:
        ended.set()
        thread.join(30)


def swap_directory(work: Path) -> Callable[[], None]:
    link, parked = work / "link-made", work / "parked"

    def swap() -> None:
        os.symlink(work.parent / "out", link)
        os.rename(work / "t", parked)
        take_name(link, work / "t")
        os.unlink(work / "t")
        take_name(parked, work / "t")

    return swap


def take_name(path: Path, name: Path) -> None:
    """Renames; while the name was free, a write may have made a directory of that name."""
    while True:
        try:
            os.rename(path, name)
        except OSError:
            shutil.rmtree(name, ignore_errors=True)
        else:
            return


def swap_file(work: Path) -> Callable[[], None]:
    link, real = work / "link-made", work / "real-made"

    def swap() -> None:
        os.symlink(work.parent / "out" / "secret", link)
        os.rename(link, work / "t" / "secret")
        real.write_text("mine")
        os.rename(real, work / "t" / "secret")

    return swap


@pytest.mark.parametrize("make_swap", [swap_directory, swap_file])
def test_nothing_outside_is_read_or_written(work: Path, make_swap: Callable[[Path], Callable[[], None]]) -> None:
    files = Files(work)
    read, failed = 0, 0
    with swapped(make_swap(work)) as swaps:
        for number in range(TRIES):
            path = "t/secret"
            try:
                match number % 5:
                    case 0:
                        assert b"TOP" not in files.read_bytes(path, limit=100)[0]
                    case 1:
                        with files.open_read(path) as file:
                            assert file.read() != b"TOP"
                    case 2:
                        files.replace(path, b"mine")
                    case 3:
                        files.replace(f"t/new-{number}", b"mine")
                    case 4:
                        with files.folder("t") as folder:
                            assert folder.open_file("secret", size=100) in ((b"mine", None), None)
                read += 1
            except ToolError:
                failed += 1
        assert swaps() > 10
    assert read + failed == TRIES
    assert read > 0
    out = work.parent / "out"
    assert os.listdir(out) == ["secret"]
    assert (out / "secret").read_text() == "TOP"


def test_a_tree_is_deleted_without_following_what_is_swapped_in(work: Path) -> None:
    files = Files(work)
    with swapped(swap_directory(work)) as swaps:
        for number in range(TRIES // 10):
            try:
                files.replace(f"t/sub-{number}/x", b"1")
                files.delete(f"t/sub-{number}")
                files.rename("t/secret", "t/secret-2")
                files.rename("t/secret-2", "t/secret")
            except ToolError:
                continue
        assert swaps() > 10
    assert os.listdir(work.parent / "out") == ["secret"]
    assert (work.parent / "out" / "secret").read_text() == "TOP"
