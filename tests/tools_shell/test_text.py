"""Output as plain text, and what is kept of it."""

from __future__ import annotations

import random
import re

import pytest

from openheim_tools_shell.kept import KeptOutput, Piece
from openheim_tools_shell.text import PlainText, plain


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[31mred\x1b[0m\n", "red\n"),
        ("\x1b[38;2;1;2;3mrgb\x1b[m", "rgb"),
        ("\x1b[2K\x1b[1Gline\n", "line\n"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07text\n", "text\n"),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\\n", "link\n"),
        ("\x1b]0;never ended\nnext\n", "\nnext\n"),
        ("\x1bPq#0;2;0;0;0\x1b\\after", "after"),
        ("\x1b(Btext\x1b=", "text"),
        ("\x1b", ""),
        ("10%\r50%\r100%\n", "100%\n"),
        ("10%\r50%\r", "50%"),
        ("dos\r\nlines\r\r\n", "dos\nlines\n"),
        ("a\bb\n", "b\n"),
        ("_\bu_\bn\b\b\b\b", ""),
        ("nul\0bell\x07del\x7f\n", "nulbelldel\n"),
        ("next\x85line\n", "nextline\n"),
        ("umlaut ä, 語, 🙂\n", "umlaut ä, 語, 🙂\n"),
    ],
)
def test_plain(raw: str, shown: str) -> None:
    assert plain(raw) == shown


def test_pieces_cut_anywhere_give_the_same_text() -> None:
    data = ("\x1b[1mä語🙂\x1b[0m\r\n10%\r100%\n\x1b]0;title\x07x\bend\n" * 20).encode() + b"\xff\xfe\n\xf0\x9f"
    chance = random.Random(7)
    whole = PlainText()
    expected = whole.feed(data) + whole.flush(final=True)
    for _ in range(50):
        pieces = PlainText()
        text, rest = "", data
        while rest:
            size = chance.randint(1, 9)
            text += pieces.feed(rest[:size])
            rest = rest[size:]
        assert text + pieces.flush(final=True) == expected
    assert "ä語🙂\n100%\nend\n" in expected
    assert expected.endswith("\ufffd\ufffd\n\ufffd")


@pytest.mark.parametrize("piece", [b"x" * 5000, b"progress 10%\r" * 500, b"\x1b]0;" + b"x" * 5000, b"\r" * 5000])
def test_a_line_that_never_ends_takes_bounded_memory(piece: bytes) -> None:
    lines = PlainText()
    for _ in range(200):
        lines.feed(piece)
        assert len(lines._open) < 40_000  # What is kept back is seen nowhere else.


def test_of_an_endless_progress_line_only_the_last_state_is_kept() -> None:
    kept = KeptOutput()
    for number in range(10_000):
        kept.feed(f"done {number} of 10000\r".encode())
    kept.feed(b"\nend\n")
    kept.finish()
    text = kept.take().text(65536, "")
    assert text.endswith("done 9999 of 10000\nend\n")
    assert len(text) < 200


def test_output_is_told_once() -> None:
    kept = KeptOutput()
    kept.feed(b"one\ntwo")
    assert kept.take().text(100, "") == "one\ntwo"
    assert kept.take() == Piece(b"", b"", 0)
    kept.feed(b" more\nthree\n")
    assert kept.take().text(100, "") == " more\nthree\n"


def test_the_last_line() -> None:
    kept = KeptOutput()
    assert kept.last_line() == ""
    kept.feed(b"one\n\n")
    assert kept.last_line() == "one"
    kept.feed(b"50%\r60%")
    assert kept.last_line() == "60%"


@pytest.mark.parametrize("size", [10, 1000, 65536, 65537, 70_000, 1_000_000])
@pytest.mark.parametrize("limit", [0, 1, 600, 8192, 65536])
def test_a_piece_is_its_head_a_note_and_its_tail(size: int, limit: int) -> None:
    data = ("ä" * 30 + "\n") * (size // 61) + "x" * (size % 61)
    assert len(data.encode()) == size
    kept = KeptOutput()
    for start in range(0, len(data.encode()), 4096):
        kept.feed(data.encode()[start : start + 4096])
    kept.finish()
    piece = kept.take()
    assert piece.total == size
    text = piece.text(limit, "advice")
    if size <= min(limit, 65536):
        assert text == data
        return
    head, note, tail = re.split(r"(\[\.\.\. [\d,]+ of [\d,]+ bytes left out here; advice \.\.\.\]\n)", text)
    left_out = int(note.split()[1].replace(",", ""))
    if not data.startswith(head):
        head = head.removesuffix("\n")  # The note stands on a line of its own.
    assert data.startswith(head)
    assert data.endswith(tail)
    assert len((head + tail).encode()) <= limit
    assert left_out == size - len((head + tail).encode())
    assert "\ufffd" not in text
