"""list_dir."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from openheim import ToolError
from openheim.testing import FakeTurn
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


@pytest.mark.parametrize(
    ("more", "note"), [(0, None), (1, "[1 more entry not shown; "), (700, "[700 more entries not shown; ")]
)
async def test_at_most_500(work: Path, turn: FakeTurn, more: int, note: str | None) -> None:
    names = [f"{number:04}" for number in range(500 + more)]
    for name in names:
        (work / name).touch()
    lines = (await call(turn, "list_dir")).splitlines()
    assert lines[:500] == names[:500]
    assert len(lines) == 500 + (note is not None)
    if note is not None:
        assert lines[-1].startswith(note)


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
