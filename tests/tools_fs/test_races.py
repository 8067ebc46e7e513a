"""Another process swaps directories, links and pipes, as fast as it can, while every tool is at work."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from openheim import ToolError
from openheim.testing import FakeTurn
from tests.tools_fs.calls import call

SECRET = "TOP SECRET"
#: Tells the file outside from all others, where only its size shows.
SIZE = 12_345

SWAPPER = """
import os, shutil, sys
work, out, stop = sys.argv[1:]
os.chdir(work)
count = 0

def quietly(call, *arguments):
    try:
        call(*arguments)
    except OSError:
        pass

def stay():
    # About as long as a call looks at a name.
    for _ in range(1000):
        pass

def put(path, name):
    # Takes the name from whatever has got it meanwhile.
    for _ in range(5):
        try:
            return os.rename(path, name)
        except OSError:
            shutil.rmtree(name, ignore_errors=True)
            quietly(os.unlink, name)

while not os.path.exists(stop):
    # A directory and a link to the one outside, by turns; also one further down.
    for name in ("t", "t/sub", "deep/a/b/c"):
        quietly(os.makedirs, name + ".real")
        for inner in ("secret", "other.txt"):
            with open(os.open(name + ".real/" + inner, os.O_WRONLY | os.O_CREAT), "w") if os.path.isdir(
                name + ".real"
            ) else open(os.devnull, "w") as file:
                file.write("mine needle\\n")
        quietly(os.symlink, out, name + ".link")
        quietly(os.rename, name, name + ".old")
        put(name + ".link", name)
        stay()
        quietly(os.unlink, name)
        put(name + ".real", name)
        stay()
        shutil.rmtree(name + ".old", ignore_errors=True)
    # A file, a link to the one outside, and a pipe, by turns.
    for name in ("f", "t/f"):
        quietly(os.symlink, out + "/secret", name + ".link")
        quietly(os.replace, name + ".link", name)
        stay()
        quietly(os.mkfifo, name + ".pipe")
        quietly(os.replace, name + ".pipe", name)
        stay()
        try:
            with open(name + ".real", "w") as file:
                file.write("mine needle\\n")
        except OSError:
            continue
        quietly(os.replace, name + ".real", name)
        stay()
    count += 1
print(count)
"""


@contextmanager
def swapping(work: Path, out: Path, stop: Path) -> Iterator[None]:
    with subprocess.Popen(
        [sys.executable, "-I", "-c", SWAPPER, str(work), str(out), str(stop)], stdout=subprocess.PIPE, text=True
    ) as swapper:
        try:
            yield
        finally:
            stop.touch()
            said, _ = swapper.communicate(timeout=30)
    assert int(said) > 10


async def any_call(turn: FakeTurn, number: int, rng: random.Random) -> str:
    path = rng.choice(
        ["f", "t/f", "t/secret", "t/other.txt", "t/sub/secret", "deep/a/b/c/secret", "deep/a/b/c", "t", "t/sub", "."]
    )
    files = turn.files
    match number % 11:
        case 0 | 1:
            return await call(turn, "read_file", path=path)
        case 2:
            return await call(turn, "write_file", path=path, content="mine needle\n")
        case 3:
            return await call(turn, "write_file", path=f"{path}/new-{number % 7}", content="mine needle\n")
        case 4:
            return await call(turn, "edit_file", path=path, old_string="needle", new_string="needle needle")
        case 5:
            return await call(turn, "list_dir", path=path)
        case 6:
            return await call(turn, "search", pattern="needle|SECRET", path=path)
        case 7:
            return await call(turn, "search", pattern="outside|secret", path=path, names=True)
        case 8:
            found = files.info(path)
            return SECRET if found is not None and found.size == SIZE else ""
        case 9:
            files.delete(f"{path}/new-{number % 7}")
        case _:
            files.rename(f"{path}/secret", f"{path}/renamed")
    return ""


@pytest.mark.slow
@pytest.mark.anyio
async def test_no_tool_reads_or_writes_outside(tmp_path: Path, long_counts: bool) -> None:
    work, out = tmp_path / "work", tmp_path / "out"
    for folder in (work, out):
        folder.mkdir()
    secret = f"{SECRET} needle\n".ljust(SIZE)
    (out / "secret").write_text(secret)
    (out / "outside").mkdir()
    (out / "outside" / "secret").write_text(secret)
    before = snapshot(out)
    turn = FakeTurn(work)
    rng = random.Random(7)
    done = refused = 0
    with swapping(work, out, tmp_path / "stop"):
        for number in range(20_000 if long_counts else 700):
            try:
                with anyio.fail_after(30):
                    text = await any_call(turn, number, rng)
                done += 1
            except ToolError as err:
                text = str(err)
                refused += 1
            assert SECRET not in text, (number, text)
            assert "outside/" not in text, (number, text)
            if number % 100 == 0:
                assert snapshot(out) == before, number
    assert snapshot(out) == before
    assert done > 10
    assert refused > 10


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}
