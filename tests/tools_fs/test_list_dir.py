"""list_dir."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from openheim import ToolError
from openheim.files import _files
from openheim.testing import FakeTurn
from openheim_tools_fs import list_dir
from tests.tools_fs.calls import call, call_for_result

pytestmark = pytest.mark.anyio


async def test_names(work: Path, turn: FakeTurn) -> None:
    (work / "b.txt").write_text("")
    (work / ".hidden").write_text("")
    (work / "a").mkdir()
    (work / "a" / "deeper").write_text("")
    (work / "link").symlink_to("a")
    (work / "out").symlink_to("/etc")
    (work / "broken").symlink_to("nowhere")
    (work / "loop").symlink_to("loop")
    os.mkfifo(work / "pipe")
    assert (await call(turn, "list_dir")).splitlines() == [
        ".hidden",
        "a/",
        "b.txt",
        "broken -> nowhere",
        "link -> a",
        "loop -> loop",
        "out -> /etc",
        "pipe",
    ]
    assert await call(turn, "list_dir", path="link") == "deeper"
    assert await call(turn, "list_dir", path=str(work / "a")) == "deeper"


async def test_an_empty_directory_says_so(turn: FakeTurn) -> None:
    assert await call(turn, "list_dir") == "[the directory is empty]"


async def listed(turn: FakeTurn) -> tuple[list[str], list[int]]:
    """All names, got by following the notes, and how many came with each call."""
    names: list[str] = []
    counts: list[int] = []
    offset = 1
    while True:
        lines = (await call(turn, "list_dir", offset=offset)).splitlines()
        note = re.fullmatch(r"\[entries (\d+)-(\d+) of (\d+) are shown; go on with offset=(\d+), or .*\]", lines[-1])
        names += lines if note is None else lines[:-1]
        counts.append(len(lines) - (note is not None))
        if note is None:
            return names, counts
        begin, end, total, following = map(int, note.groups())
        assert (begin, end, following) == (offset, len(names), len(names) + 1)
        assert total > end
        offset = following


@pytest.mark.parametrize(("count", "counts"), [(500, [500]), (501, [500, 1]), (1200, [500, 500, 200])])
async def test_500_at_a_time(work: Path, turn: FakeTurn, count: int, counts: list[int]) -> None:
    names = [f"{number:04}" for number in range(count)]
    for name in names:
        (work / name).touch()
    assert await listed(turn) == (names, counts)


async def test_a_listing_fits_the_limit_of_the_turn(work: Path) -> None:
    names = [f"{number:03}{'x' * 100}" for number in range(200)]
    for name in names:
        (work / name).touch()
    turn = FakeTurn(work, result_limit_bytes=8192)
    assert len((await call(turn, "list_dir")).encode()) <= 8192
    found, counts = await listed(turn)
    assert found == names
    assert len(counts) == 3


async def test_past_the_end(work: Path, turn: FakeTurn) -> None:
    (work / "a").touch()
    for offset in (2, 10**30):
        text = await call(turn, "list_dir", offset=offset)
        assert text == f"[offset {offset} is past the end: the directory has 1 entry]"


async def test_where_a_listing_can_begin(work: Path, turn: FakeTurn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_dir, "MAX_OFFSET", 10)
    for number in range(20):
        (work / f"{number:02}").touch()
    assert (await call(turn, "list_dir", offset=10)).splitlines() == [f"{number:02}" for number in range(9, 20)]
    text = await call(turn, "list_dir", offset=11)
    assert text.startswith("[a listing can begin with one of the first 10 entries; use search with names=true")
    assert await call(turn, "list_dir", offset=21) == "[offset 21 is past the end: the directory has 20 entries]"


async def test_a_very_long_directory(work: Path, turn: FakeTurn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_files, "MAX_NAMES", 600)
    for number in range(601):
        (work / f"{number}").touch()
    text = await call(turn, "list_dir")
    assert "[entries 1-500 of the first 600 that the system gives, and no others, are shown; go on" in text
    text = await call(turn, "list_dir", offset=501)
    assert text.endswith("and no others, are shown; use search with names=true to find files by name]")
    monkeypatch.setattr(list_dir, "MAX_OFFSET", 600)
    assert "one of the first 600 entries" in await call(turn, "list_dir", offset=601)


async def test_odd_names_stay_on_their_line(work: Path, turn: FakeTurn) -> None:
    for name in (b"a\nb", b"tab\t", b"\xff\xfe", "é".encode(), b"esc\x1b[31m"):
        (work / os.fsdecode(name)).touch()
    lines = (await call(turn, "list_dir")).splitlines()
    assert lines == [r"a\nb", r"esc\x1b[31m", r"tab\t", "é", "\ufffd\ufffd"]


@pytest.mark.parametrize(
    ("path", "says"),
    [("x", "is not a directory"), ("nowhere", "does not exist"), ("..", "outside"), ("out", "outside")],
)
async def test_what_cannot_be_listed(work: Path, turn: FakeTurn, path: str, says: str) -> None:
    (work / "x").touch()
    (work / "out").symlink_to("/etc")
    with pytest.raises(ToolError, match=says):
        await call(turn, "list_dir", path=path)


async def test_display(work: Path, turn: FakeTurn) -> None:
    (work / "a").mkdir()
    result = await call_for_result(turn, "list_dir", path="./a")
    assert result.display == {"title": "List a", "locations": [{"path": str(work / "a")}]}
