"""search: which files, which lines, and how many."""

from __future__ import annotations

import importlib
import os
import threading
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from openheim import ToolError
from openheim.files import Folder
from openheim.testing import FakeTurn
from openheim_tools_fs import blocks
from tests.tools_fs.calls import call, call_for_result
from tests.tools_fs.searches import found, write_tree

# With google-re2 and with Python's re.
pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("engine")]

# The module; the tool of the same name is what `from openheim_tools_fs.search import search` gives.
searching = importlib.import_module("openheim_tools_fs.search")


async def test_lines(work: Path, turn: FakeTurn) -> None:
    write_tree(work, {"b/y.txt": "no\nneedle\nneedle needle\n", "a.txt": "x needle", "b/a.txt": "need\nle\n"})
    assert await found(turn, "needle") == ["a.txt:1: x needle", "b/y.txt:2: needle", "b/y.txt:3: needle needle"]
    assert await found(turn, "needle", path="b") == ["b/y.txt:2: needle", "b/y.txt:3: needle needle"]
    assert await found(turn, "needle", path="a.txt") == ["a.txt:1: x needle"]
    assert await found(turn, "needle", path=str(work / "a.txt")) == ["a.txt:1: x needle"]


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        ("^b", [2]),
        ("c$", [1, 3]),
        ("^$", [4]),
        ("x*", [1, 2, 3, 4, 5]),
        ("a\\s+b", []),
        ("[^q]+z", [5]),
        ("b|^a", [1, 2]),
        ("(?i)A", [1]),
        ("é.漢", [5]),
        ("\\bz\\b", [5]),
        ("(a)(b)?", [1]),
        ("\\n", []),
        ("a\nb", []),
    ],
)
async def test_a_match_is_within_one_line(work: Path, turn: FakeTurn, pattern: str, lines: list[int]) -> None:
    for content in ("a c\nb\nc\n\né-漢 z\n", "a c\r\nb\r\nc\r\n\r\né-漢 z\r\n", "a c\nb\nc\n\né-漢 z"):
        write_tree(work, {"x": content})
        result = await found(turn, pattern)
        numbers = [int(line.split(":")[1]) for line in result if line.startswith("x:")]
        assert numbers == lines, (content, result)


async def test_case_insensitive(work: Path, turn: FakeTurn) -> None:
    write_tree(work, {"x": "Needle\nÉtude\n"})
    assert await found(turn, "needle", case_insensitive=True) == ["x:1: Needle"]
    assert await found(turn, "étude", case_insensitive=True) == ["x:2: Étude"]
    assert (await found(turn, "needle"))[0].startswith("No matches")


async def test_nothing_found_says_how_much_was_searched(work: Path, turn: FakeTurn) -> None:
    write_tree(work, {"d/x": "a", "d/y": "b", "d/z": b"\0", "e": "c"})
    assert await call(turn, "search", pattern="q", path="d") == (
        "No matches for 'q' in d (3 files searched, 1 binary file skipped)"
    )
    assert await call(turn, "search", pattern="q", glob="*.py") == (
        "No matches for 'q' in . (0 files matching '*.py' searched)"
    )


async def test_hidden_ignored_and_binary_files_are_skipped(work: Path, turn: FakeTurn) -> None:
    write_tree(
        work,
        {
            ".gitignore": "*.log\nbuild/\n!/pkg/build/\n",
            ".ignore": "secret.txt\n",
            "keep/.gitignore": "!keep.log\n",
            ".hidden": "needle",
            ".dir/x": "needle",
            "a.log": "needle",
            "build/x": "needle",
            "pkg/build/x": "needle",
            "pkg/secret.txt": "needle",
            "keep/keep.log": "needle",
            "binary": b"needle\0",
            "binary-later": b"needle\n" * 10_000 + b"\xff\xfe" * 50_000 + b"\0",
            "plain": "needle",
        },
    )
    expected = ["keep/keep.log:1: needle", "pkg/build/x:1: needle", "plain:1: needle"]
    assert await found(turn, "needle") == expected
    (work / ".git").mkdir()
    assert await found(turn, "needle") == expected
    # The rules of the directories above count below, and a directory that is named is searched whatever they say.
    assert await found(turn, "needle", path="pkg") == ["pkg/build/x:1: needle"]
    assert await found(turn, "needle", path=".dir") == [".dir/x:1: needle"]
    assert await found(turn, "needle", path="build") == ["build/x:1: needle"]
    assert await found(turn, "needle", path=".hidden") == [".hidden:1: needle"]


async def test_links_are_not_followed(work: Path, turn: FakeTurn) -> None:
    out = work.parent / "out"
    write_tree(out, {"secret.txt": "needle"})
    write_tree(work, {"d/x": "needle"})
    (work / "out").symlink_to(out)
    (work / "out-file").symlink_to(out / "secret.txt")
    (work / "in").symlink_to("d")
    (work / "in-file").symlink_to("d/x")
    (work / "loop").symlink_to(".")
    os.mkfifo(work / "pipe")
    with anyio.fail_after(10):
        assert await found(turn, "needle") == ["d/x:1: needle"]
    assert await found(turn, "needle", path="in") == ["d/x:1: needle"]
    for path in ("out", "out-file"):
        with pytest.raises(ToolError, match="outside"):
            await call(turn, "search", pattern="needle", path=path)


async def test_what_cannot_be_searched(turn: FakeTurn) -> None:
    with pytest.raises(ToolError, match="does not exist"):
        await call(turn, "search", pattern="x", path="nowhere")
    os.mkfifo(turn.files.root / "pipe")
    with anyio.fail_after(5), pytest.raises(ToolError, match="not a file"):
        await call(turn, "search", pattern="x", path="pipe")
    with pytest.raises(ToolError, match="pattern is empty"):
        await call(turn, "search", pattern="")


async def test_what_is_said_of_a_bad_pattern(work: Path, turn: FakeTurn, engine: str) -> None:
    with pytest.raises(ToolError) as caught:
        await call(turn, "search", pattern="a(")
    assert caught.value.message.endswith("missing ): a(" if engine == "re2" else "at position 1")
    if engine == "re2":
        with pytest.raises(ToolError, match=r"\(\?=; RE2 has no look-around"):
            await call(turn, "search", pattern="a(?=b)")


@pytest.mark.parametrize("pattern", ["(", "[a", "*a", "a{2,1}", "(?P<n", "half \ud800"])
async def test_bad_patterns(work: Path, turn: FakeTurn, pattern: str) -> None:
    write_tree(work, {"x": "a"})
    with pytest.raises(ToolError, match=r"no valid regular expression: \S|surrogate"):
        await call(turn, "search", pattern=pattern)


async def test_200_matches_at_most(work: Path, turn: FakeTurn) -> None:
    write_tree(work, {f"{number:03}": "x\nx\n" for number in range(100)})
    lines = await found(turn, "x")
    assert len(lines) == 200
    assert lines[-1] == "099:2: x"
    write_tree(work, {"100": "x\n"})
    lines = await found(turn, "x")
    assert len(lines) == 201
    assert lines[-1] == "[stopped at 200 matches; narrow the pattern or the path to see the others]"
    write_tree(work, {"000": "x\n" * 300})
    lines = await found(turn, "x", path="000")
    assert lines[199:] == ["000:200: x", "[stopped at 200 matches; narrow the pattern or the path to see the others]"]


async def test_50000_files_at_most(work: Path, turn: FakeTurn, monkeypatch: pytest.MonkeyPatch) -> None:
    assert searching.MAX_FILES == 50_000
    monkeypatch.setattr(searching, "MAX_FILES", 3)
    write_tree(work, {f"d/{number}": "x" for number in range(3)})
    assert await found(turn, "x") == ["d/0:1: x", "d/1:1: x", "d/2:1: x"]
    write_tree(work, {"d/3": "x"})
    note = "[stopped after 3 files; search a smaller directory to see the others]"
    assert await found(turn, "x") == ["d/0:1: x", "d/1:1: x", "d/2:1: x", note]
    assert (await found(turn, "q"))[-1] == note
    monkeypatch.setattr(searching, "MAX_PATHS", 2)
    assert (await found(turn, "q"))[-1].startswith("[stopped after ")


async def test_the_result_is_bounded_in_bytes(work: Path, turn: FakeTurn) -> None:
    write_tree(work, {"x": ("y" * 399 + "\n") * 100})
    text = await call(FakeTurn(work, result_limit_bytes=5000), "search", pattern="y")
    assert len(text.encode()) <= 5000
    assert text.splitlines()[-1].startswith("[stopped at 3976 bytes of matches; ")


async def test_a_result_without_room_for_one_match(work: Path) -> None:
    write_tree(work, {"/".join(["d" * 200] * 10): "x"})
    text = await call(FakeTurn(work, result_limit_bytes=1), "search", pattern="x")
    assert text == "[stopped at 1024 bytes of matches; narrow the pattern or the path to see the others]"


async def test_long_lines_are_cut_around_the_match(work: Path, turn: FakeTurn) -> None:
    write_tree(work, {"m.js": "var a=1;" * 390_000 + "needle();", "s.js": "needle" + "é" * 1000})
    first, second = await found(turn, "needle")
    assert first.startswith("m.js:1: ... ")
    assert first.endswith("var a=1;needle();")
    assert second.startswith("s.js:1: needleéé")
    assert second.endswith("é ...")
    assert len(first) + len(second) < 1000
    assert "\ufffd" not in first + second


async def test_big_files_are_searched_block_by_block(
    work: Path, turn: FakeTurn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 50)
    monkeypatch.setattr(blocks, "MAX_LINE_BYTES", 120)
    content = "".join(f"line {number}{' needle' if number % 7 == 0 else ''}\n" for number in range(1, 100))
    write_tree(work, {"x": content, "y": "z" * 1000 + "needle\nneedle\n"})
    lines = await found(turn, "needle")
    assert lines[:-2] == [f"x:{number}: line {number} needle" for number in range(7, 100, 7)]
    assert [line.split(":")[1] for line in lines[-2:]] == ["1", "2"]


async def test_context(work: Path, turn: FakeTurn) -> None:
    write_tree(work, {"x": "".join(f"{number}\n" for number in range(1, 21)), "y": "5"})
    assert await found(turn, "^(5|7|15)$", context=1) == [
        "x-4- 4",
        "x:5: 5",
        "x-6- 6",
        "x:7: 7",
        "x-8- 8",
        "--",
        "x-14- 14",
        "x:15: 15",
        "x-16- 16",
        "--",
        "y:1: 5",
    ]
    assert await found(turn, "^(1|20)$", context=10**6, path="x") == [
        "x:1: 1",
        *(f"x-{number}- {number}" for number in range(2, 20)),
        "x:20: 20",
    ]


async def test_glob(work: Path, turn: FakeTurn) -> None:
    write_tree(
        work,
        {".gitignore": "*.gen.py\n", "a.py": "x", "b.ts": "x", "src/c.py": "x", "src/d/e.tsx": "x", "f.gen.py": "x"},
    )
    names = {
        "*.py": ["a.py", "src/c.py"],
        "*.{ts,tsx}": ["b.ts", "src/d/e.tsx"],
        "src/**": ["src/c.py", "src/d/e.tsx"],
        "/*.py": ["a.py"],
        "!*.py": ["b.ts", "src/d/e.tsx"],
        "": ["a.py", "b.ts", "src/c.py", "src/d/e.tsx"],
    }
    for glob, expected in names.items():
        lines = await found(turn, "x", glob=glob)
        assert [line.split(":")[0] for line in lines if not line.startswith("No matches")] == expected, glob


@pytest.mark.parametrize(
    ("glob", "error"),
    [
        ("[", "'\\[' is not valid: a bracket is not closed"),
        ("[[:" * 300, "a bracket is not closed"),
        ("a\\", "nothing stands behind the last backslash"),
        ("[[:nonsense:]]", "no class of characters named 'nonsense'"),
        ("{a,b", "a brace is not closed"),
        ("{a,b}" * 12, "more than 1,000 patterns"),
        ("{a,b}" * 9 + "*" * 500, "too many patterns"),
        ("*" * 1001, "1,001 characters, and at most 1,000 are possible"),
        ("!" + "{" * 1_000_000, "1,000,000 characters"),
    ],
)
async def test_globs_that_are_refused(work: Path, turn: FakeTurn, glob: str, error: str) -> None:
    write_tree(work, {"a": "x"})
    with anyio.fail_after(10), pytest.raises(ToolError, match=error):
        await call(turn, "search", pattern="x", glob=glob)


async def test_an_ignore_file_that_counts_in_part_is_told(work: Path, turn: FakeTurn) -> None:
    write_tree(work, {".gitignore": "a" * 2000 + "\nb\n", "a" * 200: "x", "b": "x"})
    note = "[of .gitignore only a part counts, for too many or too long lines]"
    assert await found(turn, "x") == ["a" * 200 + ":1: x", note]
    write_tree(work, {"c/.ignore": "*a*" * 1000})
    assert (await found(turn, "x"))[-1] == (
        "[of .gitignore and 1 other ignore file only a part counts, for too many or too long lines]"
    )


async def test_names(work: Path, turn: FakeTurn) -> None:
    write_tree(work, {"src/main.py": "", "src/domain/x.txt": "main", "README.md": "", ".hidden/main.py": ""})
    (work / "main-out").symlink_to("/etc/passwd")
    (work / "main-broken").symlink_to("nowhere")
    assert await found(turn, "main", names=True) == ["src/domain/x.txt", "src/main.py"]
    assert await found(turn, "main", names=True, path="src", glob="*.py") == ["src/main.py"]
    assert await found(turn, "main", names=True, path="src/main.py") == ["src/main.py"]
    assert await call(turn, "search", pattern="^q", names=True) == "No matches for '^q' in . (3 names searched)"


async def test_unreadable_and_vanishing_files_are_passed_over(
    work: Path, turn: FakeTurn, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(work, {"a": "x", "b": "x", "c": "x"})
    really = Folder.open_file

    def open_file(self: Folder, name: str, *, size: int) -> Any:
        if name == "a":
            raise ToolError("permission denied")
        if name == "b":
            (work / name).unlink()
        return really(self, name, size=size)

    monkeypatch.setattr(Folder, "open_file", open_file)
    assert await found(turn, "x") == ["c:1: x", "[1 file could not be read]"]


async def test_names_that_are_no_text_are_passed_over(work: Path, turn: FakeTurn) -> None:
    write_tree(work, {"a": "x", "new\nline": "x"})
    (work / os.fsdecode(b"\xff")).write_text("x")
    assert await found(turn, "x") == ["a:1: x", r"new\nline:1: x"]


async def test_other_encodings(work: Path, turn: FakeTurn) -> None:
    write_tree(
        work,
        {"a": "grün\n".encode("utf-16"), "b": "grün\n".encode("cp1252"), "c": "\ufeffgrün\n", "d": b"gr\xff\n\xc3\xbc"},
    )
    assert await found(turn, "^grün") == ["a:1: grün", "b:1: grün", "c:1: grün"]
    assert await found(turn, "gr", path="d") == ["d:1: grÿ"]


async def test_cancelling_ends_the_work(work: Path, turn: FakeTurn, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tree(work, {f"{number:03}": "x" for number in range(300)})
    opened = 0
    reached, go_on, left = threading.Event(), threading.Event(), threading.Event()
    really_open, really_run = Folder.open_file, searching._Search.run

    def open_file(self: Folder, name: str, *, size: int) -> Any:
        nonlocal opened
        opened += 1
        reached.set()
        assert go_on.wait(10)
        return really_open(self, name, size=size)

    def run(self: Any) -> Any:
        try:
            return really_run(self)
        finally:
            left.set()

    monkeypatch.setattr(Folder, "open_file", open_file)
    monkeypatch.setattr(searching._Search, "run", run)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(partial(call, turn, "search", pattern="x"))
            assert await anyio.to_thread.run_sync(reached.wait, 10)
            group.cancel_scope.cancel()
        # The caller is gone while the worker still hangs in its first file; let go, it opens no other.
        assert not left.is_set()
        go_on.set()
        assert await anyio.to_thread.run_sync(left.wait, 10)
    assert opened == 1


async def test_display(work: Path, turn: FakeTurn) -> None:
    write_tree(work, {"x": "a\na\n"})
    result = await call_for_result(turn, "search", pattern="a")
    place = str(work / "x")
    assert result.display == {
        "title": "Search for 'a'",
        "locations": [{"path": place, "line": 1}, {"path": place, "line": 2}],
    }
