"""Files that are bigger than the memory that reading and searching them may take."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SIZE = 200 * 1024 * 1024

CHILD = """
import json, resource, sys
from pathlib import Path
import anyio
from openheim.testing import FakeTurn
from tests.tools_fs.calls import call

turn = FakeTurn(Path(sys.argv[1]))

async def main():
    await call(turn, "read_file", path="small")
    await call(turn, "search", pattern="small", path="small")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    results = []
    for name, arguments in json.loads(sys.argv[2]):
        results.append((await call(turn, name, **arguments))[-200:])
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(json.dumps({"grown_mb": grown, "results": results}))

anyio.run(main)
"""


def in_a_child(work: Path, calls: list[tuple[str, dict[str, object]]]) -> list[str]:
    """The ends of the results of some calls, made in a process whose memory must not grow by much."""
    (work / "small").write_text("small\n")
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(work), json.dumps(calls)],
        cwd=Path(__file__).parent.parent.parent,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["grown_mb"] < 40, report
    results: list[str] = report["results"]
    return results


def test_a_file_of_200_mb_with_many_lines(work: Path) -> None:
    line = b"a line of sixty-four bytes, as good as any other one in here..\n"
    count = SIZE // len(line)
    with open(work / "big", "wb") as file:
        for _ in range(count // 10_000):
            file.write(line * 10_000)
        file.write(line * (count % 10_000 - 1) + b"needle\n")
    first, later, last, past, found = in_a_child(
        work,
        [
            ("read_file", {"path": "big"}),
            ("read_file", {"path": "big", "offset": count // 2, "limit": 1}),
            ("read_file", {"path": "big", "offset": count}),
            ("read_file", {"path": "big", "offset": count + 1}),
            ("search", {"pattern": "needle|big thing"}),
        ],
    )
    lines = 102400 // len(line)
    # Too far from the end for counting: the total is left out, and known once the end was seen.
    assert first.endswith(f"[lines 1-{lines} are shown; go on with offset={lines + 1}]")
    assert later.endswith(f"[lines {count // 2}-{count // 2} are shown; go on with offset={count // 2 + 1}]")
    assert last == "needle\n"
    assert past == f"[offset {count + 1} is past the end: the file has {count} lines]"
    assert found == f"big:{count}: needle"


@pytest.mark.parametrize("fill", ["hole", "text"])
@pytest.mark.slow
def test_a_line_of_200_mb(work: Path, fill: str, long_counts: bool) -> None:
    size = 1 << 30 if long_counts else SIZE
    with open(work / "big", "wb") as file:
        file.write(b"x" * 100_000 + b"\n")
        if fill == "hole":
            file.truncate(size)
        else:
            for _ in range(size // 1_000_000):
                file.write(b"y" * 1_000_000)
        file.seek(0, 2)
        file.write(b"\nneedle\n")
    first, cut, last, found = in_a_child(
        work,
        [
            ("read_file", {"path": "big", "limit": 1}),
            ("read_file", {"path": "big", "offset": 2}),
            ("read_file", {"path": "big", "offset": 3}),
            ("search", {"pattern": "^needle", "path": "big"}),
        ],
    )
    assert "go on with offset=2]" in first
    # What is no text is shown by a longer character, so there is less of it.
    assert f"line 2 is cut: bytes 1-{'34126' if fill == 'hole' else '102400'}" in cut
    assert last == "needle\n"
    if fill == "hole":
        assert "1 binary file skipped" in found
    else:
        assert found.endswith("needle")


@pytest.mark.slow
def test_a_sparse_file(work: Path, long_counts: bool) -> None:
    with open(work / "big", "wb") as file:
        file.write(b"first\n" + b"x" * 70_000 + b"\n")
        file.truncate(1 << 30 if long_counts else SIZE)
        file.seek(0, 2)
        file.write(b"\nneedle\n")
    first, last, past, found = in_a_child(
        work,
        [
            ("read_file", {"path": "big", "limit": 2}),
            ("read_file", {"path": "big", "offset": 4}),
            ("read_file", {"path": "big", "offset": 5}),
            ("search", {"pattern": "^needle", "path": "big"}),
        ],
    )
    assert first.endswith("[lines 1-2 are shown; go on with offset=3]")
    assert last == "needle\n"
    assert past == "[offset 5 is past the end: the file has 4 lines]"
    assert "1 binary file skipped" in found


CALLS = """
import os, sys
from pathlib import Path
import anyio
from openheim.testing import FakeTurn
from tests.tools_fs.calls import call

work, count = Path(sys.argv[1]), int(sys.argv[2])
line = "needle in a line of some sixty bytes, as good as any other ...\\n"
(work / "text").write_text(line * (1024 * 1024 // len(line)))
(work / "line").write_text("needle" * (1024 * 1024 // 6))
turn = FakeTurn(work)
page = os.sysconf("SC_PAGE_SIZE")

def used() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * page / 2**20

async def main():
    before = 0.0
    for number in range(count):
        await call(turn, "read_file", path=("text", "line")[number % 2], offset=1)
        await call(turn, "search", pattern="needle", context=number % 3)
        if number % 10 == 0:
            await call(turn, "write_file", path="written", content=line * 16000)
            await call(turn, "edit_file", path="written", old_string="needle", new_string="pin", replace_all=True)
        if number == count // 10:
            before = used()
    print(used() - before)

anyio.run(main)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured by /proc")
def test_memory_stays_flat_over_many_calls(work: Path, long_counts: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CALLS, str(work), str(10_000 if long_counts else 100)],
        cwd=Path(__file__).parent.parent.parent,
        capture_output=True,
        text=True,
        timeout=800 if long_counts else 50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert abs(float(done.stdout)) < 20, f"{done.stdout} MB more"


def test_following_the_notes_passes_each_byte_once(work: Path) -> None:
    """Otherwise reading a file to its end would take time in proportion to the square of its length."""
    from openheim.testing import FakeTurn
    from openheim_tools_fs import read
    from openheim_tools_fs.encoding import UTF_8

    (work / "big").write_bytes(b"x" * 99 + b"\n")
    with open(work / "big", "ab") as file:
        for _ in range(400):
            file.write((b"y" * 99 + b"\n") * 1024)
    files = FakeTurn(work).files
    passed = 0

    def count_chunk() -> None:
        nonlocal passed
        passed += 1

    offset, calls = 1, 0
    while True:
        with files.open_read("big") as file_read:
            text = read._read(file_read, UTF_8, read._Wanted(offset, 1, None, 102400), count_chunk)
        calls += 1
        note = text[-100:].partition("go on with offset=")[2]
        if not note:
            break
        offset = int(note[:-1])
    assert calls == 401
    # About one chunk a call, and once the rest of the file, for its number of lines.
    assert passed < 2 * calls + (work / "big").stat().st_size / read._CHUNK_BYTES
