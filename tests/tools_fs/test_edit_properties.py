"""edit_file over random files: a reference that knows nothing but text says what the bytes must be."""

from __future__ import annotations

import codecs
import re
import tempfile
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openheim import ToolError
from openheim.testing import FakeTurn
from tests.tools_fs.calls import call

#: Codec, the mark that files begin with, and letters that it has.
ENCODINGS = {
    "utf-8": ("utf-8", b"", "abc  é漢🎉ä“"),
    "utf-8 with mark": ("utf-8", codecs.BOM_UTF8, "abc  é漢🎉ä“"),
    "utf-16-le": ("utf-16-le", codecs.BOM_UTF16_LE, "abc  é漢🎉ä\u0a0d\u0d0a"),
    "utf-16-be": ("utf-16-be", codecs.BOM_UTF16_BE, "abc  é漢🎉ä\u0a0d\u0d0a"),
    "utf-32": ("utf-32-le", codecs.BOM_UTF32_LE, "abc  é漢🎉"),
    "utf-16 without mark": ("utf-16-le", b"", "abcdefgh "),
    "windows-1252": ("cp1252", b"", "abc  éäöÜñ"),
    "ascii": ("ascii", b"", "abc \t()[]*.$\\"),
}

#: Stands before the rest of some files, so that what tells their encoding comes after the part that is looked at first.
FILLING = ["", "", "", "plain words\n" * 6_000, "plain words\r\n" * 20_000, "one line " * 8_000]


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    codec, mark, letters = ENCODINGS[draw(st.sampled_from(sorted(ENCODINGS)))]
    ends = draw(st.sampled_from([["\n"], ["\r\n"], ["\n", "\r\n"], ["\n", "\r\n", "\r"]]))
    line = st.text(letters, max_size=12)
    lines = draw(st.lists(st.tuples(line, st.sampled_from(ends)), min_size=1, max_size=25))
    text = "".join(words + end for words, end in lines) * draw(st.sampled_from([1, 1, 1, 3, 200]))
    if draw(st.booleans()):
        text = text.rstrip("\r\n")
    if codec == "cp1252":
        text = "é" + text  # So that it shows.
    if not mark and codec == "utf-16-le":
        text = "plain text " + text
    filling = draw(st.sampled_from(FILLING))
    # Mostly of what is there once.
    begin = draw(st.integers(-20 if filling else 0, max(0, len(text) - 1))) + len(filling)
    text = filling + text
    old = text[begin : begin + draw(st.integers(1, 40))]
    match draw(st.integers(0, 5)):
        case 0:
            old = old.replace("\r\n", "\n")
        case 1:
            old = old.replace("\r\n", "\n").replace("\n", "\r\n")
        case 2:
            old += draw(st.text(letters, max_size=2))
    new = draw(st.text(letters + "\n\n☃", max_size=20)).replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    return {"codec": codec, "mark": mark, "text": text, "old": old, "new": new, "everywhere": draw(st.booleans())}


def expected(codec: str, mark: bytes, text: str, old: str, new: str, everywhere: bool) -> bytes | None:
    """The bytes after the edit; None where it has to be refused."""
    if not old or old == new:
        return None
    if old not in text:
        for end in ("\r\n", "\n"):
            other = with_ends(old, end)
            if "\n" in old and other != old and other in text:
                old, new = other, with_ends(new, end)
                break
        else:
            return None
        follows = False
    else:
        follows = "\n" not in old and "\n" in new
    places = [found.start() for found in re.finditer(f"(?={re.escape(old)})", text)]
    if len(places) > 1 and not everywhere:
        return None
    pieces, done = [], 0
    for place in places:
        if place >= done:
            pieces += [text[done:place], with_ends(new, line_end(text, place)) if follows else new]
            done = place + len(old)
    try:
        return mark + "".join([*pieces, text[done:]]).encode(codec)
    except UnicodeEncodeError:
        return None


def uncertain(data: bytes, codec: str, old: str, new: str, **_: object) -> bool:
    """Whether the edit would be wrong if the file's characters had several bytes, which not all files tell."""
    if codec != "cp1252":
        return False
    high = rb"[\x80-\xff]"
    piece = re.escape(old.encode(codec, "replace").replace(b"\r\n", b"\n")).replace(b"\\\n", b"\r?\n")
    inside = rb"(?<=%s)(?=[0-\xff])" % high
    return not new.isascii() or re.search(rb"%s%s|%s%s" % (inside, piece, piece, inside), data) is not None


def with_ends(text: str, end: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", end)


def line_end(text: str, place: int) -> str:
    """The end of the line at a place, or of the one before."""
    feed = text.find("\n", place)
    if feed < 0:
        feed = text.rfind("\n", 0, place)
    return "\r\n" if feed > 0 and text[feed - 1] == "\r" else "\n"


@pytest.mark.slow
def test_random_edits_of_random_files(long_counts: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file")
        turn = FakeTurn(Path(folder))

        @given(cases())
        @settings(max_examples=2000 if long_counts else 150)
        def check(case: dict[str, Any]) -> None:
            before = case["mark"] + case["text"].encode(case["codec"])
            path.write_bytes(before)
            path.chmod(0o640)
            after = expected(**case)
            arguments = {"old_string": case["old"], "new_string": case["new"], "replace_all": case["everywhere"]}
            try:
                anyio.run(edit, turn, arguments)
                edited = True
            except ToolError:
                edited = False
            # ASCII is what a file without other characters is taken for, and then new ones may be of any kind.
            if case["codec"] == "ascii" and not case["new"].isascii():
                after = expected(**{**case, "codec": "utf-8"})
            if not edited and uncertain(before, **case):
                after = None
            assert edited == (after is not None)
            assert path.read_bytes() == (before if after is None else after)
            assert path.stat().st_mode & 0o777 == 0o640

        check()


async def edit(turn: FakeTurn, arguments: dict[str, Any]) -> None:
    await call(turn, "edit_file", path="file", **arguments)
