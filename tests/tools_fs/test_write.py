"""write_file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from openheim import ToolError
from openheim.testing import FakeTurn
from tests.tools_fs.calls import call, call_for_result

pytestmark = pytest.mark.anyio


async def test_creates_with_parents_and_replaces(work: Path, turn: FakeTurn) -> None:
    assert await call(turn, "write_file", path="a/b.txt", content="one\ntwo\n") == "Created a/b.txt: 2 lines, 8 bytes"
    assert await call(turn, "write_file", path="a/b.txt", content="é") == "Replaced a/b.txt: 1 line, 2 bytes"
    assert (work / "a/b.txt").read_bytes() == "é".encode()
    assert await call(turn, "write_file", path="empty", content="") == "Created empty: 0 lines, 0 bytes"


@pytest.mark.parametrize("content", ["a\r\nb\r\n", "a\nb", " \n\t", "\ufeffx", "\u2028\x0c\x00"])
async def test_content_is_written_as_it_is(work: Path, turn: FakeTurn, content: str) -> None:
    await call(turn, "write_file", path="x", content=content)
    assert (work / "x").read_bytes() == content.encode()


async def test_a_byte_order_mark_is_kept(work: Path, turn: FakeTurn) -> None:
    (work / "x").write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    text = await call(turn, "write_file", path="x", content="a\nc\n")
    assert (work / "x").read_bytes() == b"\xef\xbb\xbfa\nc\n"
    assert text == "Replaced x: 2 lines, 7 bytes; its byte-order mark is kept; its line ends were CR LF and are LF now"
    await call(turn, "write_file", path="x", content="\ufeffd\n")
    assert (work / "x").read_bytes() == b"\xef\xbb\xbfd\n"


async def test_another_encoding_is_mentioned(work: Path, turn: FakeTurn) -> None:
    (work / "x").write_bytes("é".encode("utf-16"))
    assert (await call(turn, "write_file", path="x", content="é")).endswith("; it was UTF-16 and is UTF-8 now")
    (work / "x").write_bytes(b"\0\1\2")
    assert (await call(turn, "write_file", path="x", content="é")).endswith("; it was a binary file")


@pytest.mark.parametrize(
    ("path", "content", "says"),
    [
        ("d", "x", "is a directory"),
        ("d/", "x", "names a directory"),
        ("file/x", "x", "not a directory"),
        ("../x", "x", "outside"),
        ("new", "half \ud83d", "surrogate"),
    ],
)
async def test_what_cannot_be_written(work: Path, turn: FakeTurn, path: str, content: str, says: str) -> None:
    (work / "d").mkdir()
    (work / "file").write_text("kept")
    with pytest.raises(ToolError, match=says):
        await call(turn, "write_file", path=path, content=content)
    assert sorted(os.listdir(work)) == ["d", "file"]
    assert (work / "file").read_text() == "kept"


async def test_display(work: Path, turn: FakeTurn) -> None:
    result = await call_for_result(turn, "write_file", path="x", content="new")
    place = str(work / "x")
    assert result.display == {
        "title": "Write x",
        "locations": [{"path": place, "line": 1}],
        "diff": {"path": place, "old": None, "new": "new"},
    }
    result = await call_for_result(turn, "write_file", path="x", content="newer")
    assert result.display is not None
    assert result.display["diff"] == {"path": place, "old": "new", "new": "newer"}


@pytest.mark.parametrize(("old", "new"), [("", "x" * 70_000), ("x" * 70_000, "")])
async def test_a_long_diff_is_not_shown(work: Path, turn: FakeTurn, old: str, new: str) -> None:
    (work / "x").write_text(old)
    result = await call_for_result(turn, "write_file", path="x", content=new)
    assert result.display is not None
    assert "diff" not in result.display
