"""search: no pattern hangs it, and a slow one has the time that it needs."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from openheim.files import Folder
from openheim.testing import FakeTurn
from openheim_tools_fs import re_process
from tests.tools_fs.calls import call
from tests.tools_fs.searches import found, write_tree

# With google-re2 and with Python's re.
pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("engine")]

# The module; the tool of the same name is what `from openheim_tools_fs.search import search` gives.
searching = importlib.import_module("openheim_tools_fs.search")

HINT = (
    "avoid repetition that fits one text in many ways, such as (a+)+ or .*.*; with openheim-tools-fs[re2] no pattern "
    "takes long"
)


@pytest.mark.parametrize("length", [28, 5000])
async def test_no_pattern_hangs(work: Path, turn: FakeTurn, engine: str, length: int) -> None:
    write_tree(work, {"a": "a" * length + "b\n", "c": "needle aaa\n"})
    with anyio.fail_after(20):
        lines = await found(turn, "(a+)+$")
    assert lines[0] == "c:1: needle aaa"
    if engine == "re2":
        assert len(lines) == 1
    else:
        assert lines[1:] == [f"[not searched to the end: a; the pattern takes too long; {HINT}]"]
    # Another search is as good as before.
    assert await found(turn, "needle") == ["c:1: needle aaa"]


@pytest.mark.parametrize(
    "lines",
    # Each takes years, each a part of a second, and much text that all takes long.
    [["a" * 5000 + "b"], ["a" * 22 + "b"] * 3, ["a" * 18 + "b"] * 2000, ["a" * 40 + "b"] * 50_000],
)
async def test_many_files_take_no_longer_than_one(
    work: Path, turn: FakeTurn, engine: str, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(work, {f"{number:02}": "\n".join(lines) for number in range(45)} | {"0": "needle aaa\n"})
    spent: list[float] = []
    really = re_process._Child.hits

    def hits(self: Any, block: bytes) -> list[int]:
        try:
            return really(self, block)
        finally:
            spent.append(processor_time(self._process.pid))

    monkeypatch.setattr(re_process._Child, "hits", hits)
    with anyio.fail_after(30):
        first, *others = await found(turn, "(a+)+$")
    assert first == "0:1: needle aaa"
    if engine == "re2":
        assert others == []
    else:
        assert others[0].startswith("[stopped after ")
        assert others[0].endswith(f": the pattern takes too long; {HINT}]")
        assert 1 < len(spent) < 45
        # Time of the processor, which nobody else's work is in.
        assert spent[-1] < 1.0


def processor_time(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def test_plain_patterns_have_the_time_they_need(work: Path, turn: FakeTurn) -> None:
    text = "".join(f"line {number} with some words in it\n" for number in range(30_000))
    write_tree(work, {f"{number:02}": text for number in range(20)} | {"x": "57 words\n"})
    with anyio.fail_after(60):
        assert await found(turn, "^[0-9]+ (words|letters)") == ["x:1: 57 words"]


async def test_slow_patterns_go_on_as_long_as_they_get_on(work: Path, turn: FakeTurn) -> None:
    # With re all of it takes about a second, longer than a pattern may be stuck.
    text = "            def handle(self, request, other=False):  # some words of a program, and no end in sight\n" * 800
    write_tree(work, {f"{number:02}": text for number in range(10)} | {"x": "a Password\n"})
    with anyio.fail_after(60):
        assert await found(turn, ".*(password|secret|token).*", case_insensitive=True) == ["x:1: a Password"]


async def test_the_limit_tells_of_a_slow_pattern(
    work: Path, turn: FakeTurn, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine != "re":
        return
    write_tree(work, {"a": "x\n" * 20 + "y\n" * 20, "b": "x"})
    monkeypatch.setattr(re_process, "BLOCK_BYTES", 40)
    really = re_process.ReProcess._hits_in

    def hits_in(self: Any, lines: bytes) -> list[int]:
        monkeypatch.setattr(searching, "time", SimpleNamespace(monotonic=lambda: float("inf")))
        self.seconds = 40.0
        return really(self, lines)

    monkeypatch.setattr(re_process.ReProcess, "_hits_in", hits_in)
    # It ends in the midst of a file, and what was found there until then is shown.
    *lines, note = await found(turn, "[xy]")
    assert lines == [f"a:{number}: x" for number in range(1, 21)]
    assert note == (
        "[stopped after 60 s and 1 file: the pattern is slow; narrow path or glob; "
        "with openheim-tools-fs[re2] no pattern is]"
    )


async def test_a_search_has_a_limit(work: Path, turn: FakeTurn, monkeypatch: pytest.MonkeyPatch) -> None:
    assert searching.MAX_SECS == 60
    write_tree(work, {"a": "x", "b": "x", ".gitignore": "y" * 2000})
    really = Folder.open_file

    def open_file(self: Folder, name: str, *, size: int) -> Any:
        if name == "b":
            monkeypatch.setattr(searching, "time", SimpleNamespace(monotonic=lambda: float("inf")))
        return really(self, name, size=size)

    monkeypatch.setattr(Folder, "open_file", open_file)
    assert await found(turn, "x") == [
        "a:1: x",
        "[of .gitignore only a part counts, for too many or too long lines]",
        "[stopped after 60 s and 2 files; search a smaller directory]",
    ]


def patient_worker(folder: Path) -> Path:
    """The program of the child with another limit of its own, that is never reached."""
    program = folder / "worker.py"
    content = Path(re_process.re_worker.__file__).read_text()
    for name in ("BLOCK_SECS = 0.2", "SLACK_SECS = 0.6"):
        assert name in content
        content = content.replace(name, f"{name}e3")
    program.write_text(content)
    return program


async def test_a_child_that_does_not_stop_by_itself_is_ended(
    work: Path, turn: FakeTurn, engine: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if engine != "re":
        return
    monkeypatch.setattr(re_process.re_worker, "__file__", str(patient_worker(tmp_path)))
    monkeypatch.setattr(re_process, "BLOCK_SECS", 0.3)
    write_tree(work, {f"{number}": "a" * 40 + "b\n" for number in range(9)} | {"0": "aaa\n"})
    with anyio.fail_after(20):
        assert await found(turn, "(a+)+$") == [
            "0:1: aaa",
            # It is replaced twice, and no more.
            f"[stopped after 4 files: the pattern takes too long; {HINT}]",
            f"[not searched to the end: 2 files; the pattern takes too long; {HINT}]",
        ]


async def test_the_loop_goes_on_while_a_pattern_is_at_work(work: Path, turn: FakeTurn) -> None:
    write_tree(work, {f"{number}": "a" * 26 + "b\n" for number in range(50)})
    ticks = 0
    with pytest.MonkeyPatch.context() as patch, anyio.fail_after(30):
        patch.setattr(re_process, "BLOCK_SECS", 0.3)
        async with anyio.create_task_group() as group:

            async def tick() -> None:
                nonlocal ticks
                while True:
                    await anyio.sleep(0.001)
                    ticks += 1

            group.start_soon(tick)
            await call(turn, "search", pattern="(a+)+(b+)+c")
            group.cancel_scope.cancel()
    assert ticks > 0
