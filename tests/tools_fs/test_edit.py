"""edit_file: what is replaced, and that nothing else is."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openheim import ToolError
from openheim.testing import FakeTurn
from openheim_tools_fs.encoding import UTF_8
from openheim_tools_fs.replacing import find_edit
from tests.tools_fs.calls import call, call_for_result

pytestmark = pytest.mark.anyio


async def edited(work: Path, turn: FakeTurn, data: bytes, old: str, new: str, **more: bool) -> bytes:
    (work / "x").write_bytes(data)
    await call(turn, "edit_file", path="x", old_string=old, new_string=new, **more)
    return (work / "x").read_bytes()


async def refused(work: Path, turn: FakeTurn, data: bytes, old: str, new: str, **more: bool) -> str:
    (work / "x").write_bytes(data)
    with pytest.raises(ToolError) as caught:
        await call(turn, "edit_file", path="x", old_string=old, new_string=new, **more)
    assert (work / "x").read_bytes() == data
    return str(caught.value)


async def test_one_occurrence(work: Path, turn: FakeTurn) -> None:
    (work / "x").write_text("one\ntwo\nthree\n")
    text = await call(turn, "edit_file", path="x", old_string="two", new_string="2")
    assert text == "Edited x: replaced 1 occurrence at line 2"
    assert (work / "x").read_text() == "one\n2\nthree\n"


async def test_replace_all(work: Path, turn: FakeTurn) -> None:
    (work / "x").write_text("a\nb a\n\na")
    text = await call(turn, "edit_file", path="x", old_string="a", new_string="aa", replace_all=True)
    assert text == "Edited x: replaced 3 occurrences at lines 1, 2, 4"
    assert (work / "x").read_text() == "aa\nb aa\n\naa"
    (work / "x").write_text("a\n" * 50)
    text = await call(turn, "edit_file", path="x", old_string="a\n", new_string="", replace_all=True)
    assert text.endswith("at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 40 more")
    assert (work / "x").read_text() == ""


async def test_several_occurrences_are_refused(work: Path, turn: FakeTurn) -> None:
    said = await refused(work, turn, b"x = 1\ny = 2\nx = 1\n", "x = 1", "x = 9")
    assert "more than once, at lines 1, 3" in said
    assert "replace_all" in said
    # Overlapping ones too: which of them is meant?
    assert "more than once" in await refused(work, turn, b"aaa", "aa", "b")
    assert await edited(work, turn, b"aaa", "aa", "b", replace_all=True) == b"ba"


async def test_no_occurrence_names_what_is_near(work: Path, turn: FakeTurn) -> None:
    data = b"def total(items):\n    return sum(item.price for item in items)\n"
    said = await refused(work, turn, data, "    return sum(item.cost for item in items)", "x")
    assert "old_string is not in 'x'" in said
    assert "2:     return sum(item.price for item in items)" in said
    said = await refused(work, turn, data, "return sum(item.price for item in items)  # all", "x")
    assert "2:     return" in said
    said = await refused(work, turn, data, "def total(items):\n\treturn sum(item.price for item in items)", "x")
    assert "part of it stands in:\n  2:" in said
    assert (await refused(work, turn, data, "nothing like it", "x")).endswith("with all blanks")
    # A word with a slip, in a line that is much longer or shares no word with it.
    assert "most alike:\n  1: def total(items):" in await refused(work, turn, data, "totla", "x")
    assert "most alike:\n  1: alpha" in await refused(work, turn, b"alpha\nbeta\n", "alpah", "x")


@pytest.mark.parametrize("old", ["\n\n\n", "x" * 100_000, "漢" * 5000, "\ud800"])
async def test_hints_are_bounded_whatever_was_sought(work: Path, turn: FakeTurn, old: str) -> None:
    data = b"x y z\n" * 50_000 + b"x" * 1_000_000
    if old.encode(errors="ignore") in data and old.isascii():
        data = b"a b c\n" * 50_000
    with anyio.fail_after(20):
        assert len(await refused(work, turn, data, old, "new")) < 2000


async def test_useless_calls(work: Path, turn: FakeTurn) -> None:
    assert "empty" in await refused(work, turn, b"x", "", "y")
    assert "the same" in await refused(work, turn, b"x", "x", "x")
    with pytest.raises(ToolError, match="does not exist"):
        await call(turn, "edit_file", path="nowhere", old_string="a", new_string="b")
    with pytest.raises(ToolError, match="is a directory"):
        await call(turn, "edit_file", path=".", old_string="a", new_string="b")


async def test_big_files_are_refused_with_their_size(work: Path, turn: FakeTurn) -> None:
    limit = 10 * 1024 * 1024
    data = b"a" + b"." * (limit - 1)
    assert (await edited(work, turn, data, "a", "b"))[:2] == b"b."
    assert f"{limit + 1} bytes" in await refused(work, turn, data + b".", "a", "b")


@pytest.mark.parametrize(
    ("data", "old", "new", "expected"),
    [
        # The text's own line ends follow the file where only they differ.
        (b"one\r\ntwo\r\nthree\r\n", "one\ntwo\n", "1\n2\n2b\n", b"1\r\n2\r\n2b\r\nthree\r\n"),
        (b"one\r\ntwo\r\n", "one\r\ntwo", "1\r\n2", b"1\r\n2\r\n"),
        (b"one\ntwo\n", "one\r\ntwo", "1\r\n2", b"1\n2\n"),
        # A new line gets the end of the line where it is put in.
        (b"one\r\ntwo\r\n", "one", "1\n1b", b"1\r\n1b\r\ntwo\r\n"),
        (b"one\ntwo\r\n", "one", "1\n1b", b"1\n1b\ntwo\r\n"),
        (b"one\ntwo\r\n", "two", "2\n2b", b"one\n2\r\n2b\r\n"),
        (b"one\r\nend", "end", "2\n3", b"one\r\n2\r\n3"),
        (b"end", "end", "2\n3", b"2\n3"),
        # Where the old text has line ends that fit, the new ones are meant as they are.
        (b"a\nb\nc\r\n", "a\nb", "a\nx\nb", b"a\nx\nb\nc\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "a\nb", b"a\nb\r\n"),
        # No other byte changes.
        (b"\xef\xbb\xbfModule A\r\n", "Module A", "Module B", b"\xef\xbb\xbfModule B\r\n"),
        (b"\xef\xbb\xbfModule A\r\n", "\ufeffModule", "Module", b"Module A\r\n"),
        (b"head\nbody \xe4\xb8", "head", "HEAD", b"HEAD\nbody \xe4\xb8"),
        (b"a\0\x01 key=1 \xff\xfe", "key=1", "key=2", b"a\0\x01 key=2 \xff\xfe"),
        (b"v = (.*) $1\n", "(.*) $1", "\\1 \\g<0> $&", b"v = \\1 \\g<0> $&\n"),
    ],
)
async def test_bytes(work: Path, turn: FakeTurn, data: bytes, old: str, new: str, expected: bytes) -> None:
    assert await edited(work, turn, data, old, new) == expected


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-32", "cp1252"])
async def test_other_encodings(work: Path, turn: FakeTurn, codec: str) -> None:
    """What read_file shows can be edited, and the file keeps its encoding."""
    before, after = "grün und naïv\r\nzwei\r\n", "grün und süß\r\nneu\r\nzwei\r\n"
    data = await edited(work, turn, before.encode(codec), "naïv", "süß\nneu")
    assert data.decode(codec) == after
    assert data[:2] == before.encode(codec)[:2]


async def test_characters_that_the_encoding_has_not(work: Path, turn: FakeTurn) -> None:
    assert "Windows-1252, which has no character '漢'" in await refused(work, turn, "naïv".encode("cp1252"), "na", "漢")


async def test_utf16_is_matched_at_whole_characters(work: Path, turn: FakeTurn) -> None:
    # The bytes of 'a' begin in the middle of the first character here.
    data = b"\xff\xfe" + "\u6100\u0062a".encode("utf-16-le")
    assert await edited(work, turn, data, "a", "x") == b"\xff\xfe" + "\u6100\u0062x".encode("utf-16-le")


PIECES = st.lists(
    st.sampled_from([b"a", b"b", b"\r\n", b"\n", b"\r", "é".encode(), b"\xff", b"\0", b"ab"]), max_size=20
)


@given(before=PIECES, after=PIECES, old=st.text("ab\né", min_size=1, max_size=4), new=st.text("xyz\r\n", max_size=4))
@settings(max_examples=300, deadline=None)
def test_bytes_that_are_not_edited_stay(before: list[bytes], after: list[bytes], old: str, new: str) -> None:
    data = b"".join((*before, old.encode(), *after))
    edit = find_edit(data, UTF_8, old, new)
    assert edit is not None
    assert edit.old == old.encode()
    result = edit.applied(data)
    feeds = new.encode().replace(b"\r\n", b"\n")
    # What stands between the places stands between the replacements.
    position = 0
    end = 0
    for place, replacement in zip(edit.places, edit.new, strict=True):
        kept = data[end:place]
        assert result[position : position + len(kept)] == kept
        position += len(kept)
        assert result[position : position + len(replacement)] == replacement
        # As given, or with the line ends of the place.
        assert replacement in (new.encode(), feeds, feeds.replace(b"\n", b"\r\n"))
        position += len(replacement)
        end = place + len(edit.old)
    assert result[position:] == data[end:]
    assert old.encode() not in data[end:]


async def test_concurrent_edits_of_one_file_are_all_there(work: Path, turn: FakeTurn) -> None:
    (work / "x").write_text("".join(f"<{number}>\n" for number in range(40)))
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for number in range(40):
                change = {"path": "x", "old_string": f"<{number}>", "new_string": f"[{number}]"}
                group.start_soon(partial(call, FakeTurn(work), "edit_file", **change))
    assert (work / "x").read_text() == "".join(f"[{number}]\n" for number in range(40))


async def test_display(work: Path, turn: FakeTurn) -> None:
    (work / "x").write_text("one\ntwo\n")
    result = await call_for_result(turn, "edit_file", path="x", old_string="two", new_string="2")
    place = str(work / "x")
    assert result.display == {
        "title": "Edit x",
        "locations": [{"path": place, "line": 2}],
        "diff": {"path": place, "old": "one\ntwo\n", "new": "one\n2\n"},
    }
    (work / "x").write_text("one\n" + "." * 70_000)
    result = await call_for_result(turn, "edit_file", path="x", old_string="one", new_string="1")
    assert result.display is not None
    assert result.display["diff"] == {"path": place, "old": "one", "new": "1"}


async def test_an_encoding_that_shows_far_below_counts(work: Path, turn: FakeTurn) -> None:
    old = b"first\n" + b"plain text\n" * 9_000 + "café\n".encode("latin-1")
    new = await edited(work, turn, old, "first", "héllo")
    assert new == old.replace(b"first", "héllo".encode("latin-1"))
