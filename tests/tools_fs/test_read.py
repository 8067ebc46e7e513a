"""read_file: ranges, notes that lead on, encodings, and files that are too big for memory."""

from __future__ import annotations

import base64
import os
import re
import struct
import zlib
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openheim import ImageBlock, TextBlock, ToolError
from openheim.testing import FakeTurn
from openheim_tools_fs import read
from openheim_tools_fs.encoding import UTF_8, detect
from openheim_tools_fs.images import MAX_IMAGE_BYTES
from tests.tools_fs.calls import call, call_for_result

pytestmark = pytest.mark.anyio

NEXT = re.compile(r"go on with offset=(\d+)(?: and column=(\d+))?")


def next_call(text: str) -> dict[str, int]:
    """The arguments that the note at the end gives; nothing if there is none."""
    found = NEXT.search(text.splitlines()[-1]) if text else None
    if found is None:
        return {}
    return {"offset": int(found[1])} | ({"column": int(found[2])} if found[2] else {})


async def test_a_short_file_comes_whole_and_without_a_note(work: Path, turn: FakeTurn) -> None:
    for text in ("one\ntwo\n", "no end", "\n", "mixed\r\nends\n", "tab\tand é 漢 🎉\n"):
        (work / "x").write_bytes(text.encode())
        assert await call(turn, "read_file", path="x") == text


async def test_ranges(work: Path, turn: FakeTurn) -> None:
    (work / "x").write_text("".join(f"{number}\n" for number in range(1, 11)))
    assert await call(turn, "read_file", path="x", offset=9) == "9\n10\n"
    assert await call(turn, "read_file", path="x", offset=9, limit=2) == "9\n10\n"
    assert await call(turn, "read_file", path="x", limit=2) == "1\n2\n[lines 1-2 of 10 are shown; go on with offset=3]"
    assert await call(turn, "read_file", path="x", offset=4, limit=1) == (
        "4\n[lines 4-4 of 10 are shown; go on with offset=5]"
    )


@pytest.mark.parametrize(
    ("content", "offset", "note"),
    [
        ("", 1, "[the file is empty]"),
        ("", 5, "[the file is empty]"),
        ("a\n", 2, "[offset 2 is past the end: the file has 1 line]"),
        ("a\nb", 3, "[offset 3 is past the end: the file has 2 lines]"),
        ("a\nb\n", 3, "[offset 3 is past the end: the file has 2 lines]"),
        ("a\nb\n", 10**9, "[offset 1000000000 is past the end: the file has 2 lines]"),
    ],
)
async def test_past_the_end(work: Path, turn: FakeTurn, content: str, offset: int, note: str) -> None:
    (work / "x").write_text(content)
    for _ in range(2):
        assert await call(turn, "read_file", path="x", offset=offset) == note


async def test_a_long_file_stops_at_a_line_end(work: Path, turn: FakeTurn) -> None:
    line = "x" * 99 + "\n"
    (work / "x").write_text(line * 2000)
    text = await call(turn, "read_file", path="x")
    body, note = text.rsplit("[", 1)
    assert body == line * 1024
    assert len(body) == 102400
    assert note == "lines 1-1024 of 2000 are shown; go on with offset=1025]"


async def test_the_limit_of_the_turn_counts_if_it_is_lower(work: Path) -> None:
    (work / "x").write_text("x" * 99 + "\n" + "y\n" * 9000)
    text = await call(FakeTurn(work, result_limit_bytes=5000), "read_file", path="x")
    assert len(text.encode()) <= 5000
    assert next_call(text)


async def test_a_long_line_can_be_read_to_its_end(work: Path, turn: FakeTurn) -> None:
    line = "".join(f"{number}é漢🎉," for number in range(30_000))
    (work / "x").write_text(f"first\n{line}\nlast\n")
    arguments = {"offset": 2}
    parts = []
    while arguments:
        text = await call(turn, "read_file", path="x", **arguments)
        assert len(text.encode()) <= 102400 + 300
        arguments = next_call(text)
        parts.append(text.rsplit("\n", 1)[0] if arguments else text)
    assert "".join(parts) == f"{line}\nlast\n"
    assert len(parts) > 3


async def test_what_is_no_text_fits_the_limit_too(work: Path, turn: FakeTurn) -> None:
    (work / "x").write_bytes(b"x" * 70_000 + b"\n" + b"\0" * 200_000 + b"\nthe end\n" + b"y\0\n" * 60_000 + b"z")
    turn.result_limit_bytes = 50_000
    arguments: dict[str, int] = {"offset": 1}
    text = ""
    while arguments:
        part = await call(turn, "read_file", path="x", **arguments)
        assert len(part.encode()) <= 50_000
        arguments = next_call(part)
        text += part
    assert text.count("\ufffd") - text.count("shown as \ufffd") == 260_000
    assert "the end" in text
    assert text.endswith("z\n[bytes that are not UTF-8 text are shown as \ufffd]\n")


async def test_the_note_of_a_cut_line_names_the_next_line_too(work: Path, turn: FakeTurn) -> None:
    (work / "x").write_text("x" * 200_000 + "\nnext\n")
    text = await call(turn, "read_file", path="x")
    assert text.endswith(
        "\n[line 1 is cut: bytes 1-102400 of it are shown; go on with offset=1 and column=102401, "
        "or with offset=2 for the next line]"
    )
    assert await call(turn, "read_file", path="x", offset=2) == "next\n"


async def test_a_column_past_the_line(work: Path, turn: FakeTurn) -> None:
    (work / "x").write_text("abc\ndef\n")
    assert await call(turn, "read_file", path="x", column=3) == "c\ndef\n"
    for column in (4, 5, 100):
        assert "fewer than" in await call(turn, "read_file", path="x", column=column)


@given(
    lines=st.lists(st.text(alphabet="ab\r é漢", max_size=12), max_size=30),
    ends=st.booleans(),
    size=st.integers(4, 60),
    chunk=st.integers(1, 40),
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_following_the_notes_gives_the_whole_file(
    tmp_path: Path, lines: list[str], ends: bool, size: int, chunk: int
) -> None:
    content = "\n".join(lines) + ("\n" if ends and lines else "")
    (tmp_path / "x").write_bytes(content.encode())
    parts: list[str] = []
    arguments: dict[str, int] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read, "_CHUNK_BYTES", chunk)
        while True:
            wanted = read._Wanted(arguments.get("offset", 1), arguments.get("column", 1), None, size)
            with open(tmp_path / "x", "rb") as file:
                text = read._read(file, detect(content.encode()) or UTF_8, wanted, lambda: None)
            if not content:
                assert text == "[the file is empty]"
                return
            arguments = next_call(text)
            if not arguments:
                break
            body = text[: text.rindex("[line")]
            parts.append(body.removesuffix("\n") if "column" in arguments else body)
    assert "".join((*parts, text)) == content


async def test_a_changed_file_is_read_anew(work: Path, turn: FakeTurn) -> None:
    (work / "x").write_text("old\n" * 9)
    await call(turn, "read_file", path="x", limit=3)
    (work / "x").write_text("a rather new text\n" * 9)
    assert await call(turn, "read_file", path="x", offset=4, limit=1) == (
        "a rather new text\n[lines 4-4 of 9 are shown; go on with offset=5]"
    )


TEXT = "grün\nnaïve “quoted”\n"


@pytest.mark.parametrize(
    ("data", "label"),
    [
        (TEXT.encode("utf-16"), "UTF-16"),
        (b"\xfe\xff" + TEXT.encode("utf-16-be"), "UTF-16"),
        (TEXT.encode("utf-16-le"), "UTF-16"),
        (TEXT.encode("utf-16-be"), "UTF-16"),
        (TEXT.encode("utf-32"), "UTF-32"),
        (TEXT.encode("cp1252"), "Windows-1252"),
        ("grün\nnaïve\x81\n".encode("latin-1"), "Latin-1"),
    ],
)
async def test_other_encodings_are_recognised(work: Path, turn: FakeTurn, data: bytes, label: str) -> None:
    (work / "x").write_bytes(data)
    text = await call(turn, "read_file", path="x")
    expected = TEXT if label != "Latin-1" else "grün\nnaïve\x81\n"
    assert text == f"{expected}[this file is not UTF-8; it is shown as {label}]\n"
    text = await call(turn, "read_file", path="x", offset=2, limit=1)
    assert text.startswith(expected.splitlines(keepends=True)[1])


async def test_a_mark_of_utf8_is_not_text(work: Path, turn: FakeTurn) -> None:
    (work / "x").write_bytes(b"\xef\xbb\xbfone\ntwo\n")
    assert await call(turn, "read_file", path="x") == "one\ntwo\n"
    assert (await call(turn, "read_file", path="x", limit=1)).startswith("one\n[")
    assert await call(turn, "read_file", path="x", offset=2) == "two\n"


async def test_damaged_utf8_is_shown_with_a_note(work: Path, turn: FakeTurn) -> None:
    (work / "x").write_bytes("é漢\n".encode() * 5 + b"\xff\n")
    text = await call(turn, "read_file", path="x")
    assert text == "é漢\n" * 5 + "\ufffd\n[bytes that are not UTF-8 text are shown as \ufffd]\n"


@pytest.mark.parametrize(
    "data", [b"\x7fELF" + bytes(range(256)) * 4, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", bytes(range(1, 256)) * 9, b"a\0b"]
)
async def test_binary_files_are_refused(work: Path, turn: FakeTurn, data: bytes) -> None:
    (work / "x").write_bytes(data)
    with pytest.raises(ToolError, match=f"'x' is a binary file of {len(data)} bytes"):
        await call(turn, "read_file", path="x")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n" + b"x" * 99, r"\(PDF document\).*pdftotext"),
        (b"PK\x03\x04\x14\0\0\0", r"\(ZIP archive.*archives"),
        (b"SQLite format 3\0" + bytes(84), r"\(SQLite database\).*sqlite3"),
        (b"x" * 257 + b"ustar\0" + bytes(200), r"\(tar archive\)"),
        (b"\x7fELF\2\1\1\0", r"ELF\).*sources"),
        (b"\0\1\2\3", "4 bytes, not text$"),
    ],
)
async def test_a_binary_file_is_named_with_what_may_help(work: Path, turn: FakeTurn, data: bytes, says: str) -> None:
    (work / "x").write_bytes(data)
    with pytest.raises(ToolError, match=says):
        await call(turn, "read_file", path="x")


def png(width: int, height: int, *, more: bytes = b"") -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = zlib.compress(b"".join(b"\0" + bytes(width) for _ in range(min(height, 100))))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + more + chunk(b"IEND", b"")


GIF = b"GIF89a\x03\x00\x02\x00\x80\0\0" + bytes(6) + b",\0\0\0\0\3\0\2\0\0\2\2\x84\x51\0;"
JPEG = b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0\xff\xff\xc0\0\x0b\x08\0\2\0\3\1\1\x11\0\xff\xda\0\2\0\xff\xd9"
WEBP = {
    kind: b"RIFF" + struct.pack("<I", 4 + 8 + len(body)) + b"WEBP" + kind + struct.pack("<I", len(body)) + body
    for kind, body in {
        b"VP8 ": b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 3, 2),
        b"VP8L": b"\x2f" + struct.pack("<I", 2 | 1 << 14) + b"\0",
        b"VP8X": b"\0\0\0\0" + b"\2\0\0" + b"\1\0\0",
    }.items()
}
IMAGES = [(png(3, 2), "png"), (GIF, "gif"), (JPEG, "jpeg"), *((data, "webp") for data in WEBP.values())]


@pytest.mark.parametrize(("data", "kind"), IMAGES, ids=["png", "gif", "jpeg", "webp", "webp-l", "webp-x"])
async def test_images_are_shown_to_models_that_take_them(work: Path, data: bytes, kind: str) -> None:
    (work / "picture").write_bytes(data)
    result = await call_for_result(FakeTurn(work, takes_images=True), "read_file", path="picture")
    text, image = result.content
    assert isinstance(image, ImageBlock)
    assert (base64.b64decode(image.data), image.mime_type) == (data, f"image/{kind}")
    assert isinstance(text, TextBlock)
    assert "3 x 2 pixels" in text.text
    # Others are told, and so is whoever gave only half of it.
    with pytest.raises(ToolError, match="this model takes no images"):
        await call(FakeTurn(work), "read_file", path="picture")
    (work / "picture").write_bytes(data[:-3])
    with pytest.raises(ToolError, match="damaged or cut off"):
        await call_for_result(FakeTurn(work, takes_images=True), "read_file", path="picture")


async def test_images_that_are_too_large(work: Path) -> None:
    turn = FakeTurn(work, takes_images=True)
    (work / "wide.png").write_bytes(png(9000, 1))
    with pytest.raises(ToolError, match=r"9000 x 1 pixels too large.*8000 pixels"):
        await call_for_result(turn, "read_file", path="wide.png")
    (work / "long.png").write_bytes(png(3, 2, more=bytes(MAX_IMAGE_BYTES)))
    with pytest.raises(ToolError, match="too large to be shown"):
        await call_for_result(turn, "read_file", path="long.png")


async def test_what_is_no_file(work: Path, turn: FakeTurn) -> None:
    (work / "d").mkdir()
    os.mkfifo(work / "pipe")
    for path, says in (("d", "is a directory"), ("nowhere", "does not exist"), ("pipe", "pipe")):
        with anyio.fail_after(5), pytest.raises(ToolError, match=says):
            await call(turn, "read_file", path=path)


async def test_display(work: Path, turn: FakeTurn) -> None:
    (work / "x").write_text("1\n2\n")
    result = await call_for_result(turn, "read_file", path="./x", offset=2)
    assert result.display == {"title": "Read x from line 2", "locations": [{"path": str(work / "x"), "line": 2}]}
