"""The tool search in a tree of ten thousand files, against ripgrep where there is one, else against reading them."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import anyio

from openheim.testing import FakeTurn
from openheim_tools_fs.search import search
from tests.benchmarks.measure import Row, interleaved, median

FILES = 10_000
LIMIT = 1.6

#: What is searched for, and the further arguments of the tool and of ripgrep.
SEARCHES: dict[str, tuple[str, dict[str, str], list[str]]] = {
    "a word": ("find_needle", {}, []),
    "a word, *.py": ("find_needle", {"glob": "*.py"}, ["--glob", "*.py"]),
    "a pattern": (r"def \w+_needle\(", {}, []),
    "nothing": ("no_such_word", {}, []),
}


def search_rows(scratch: Path, rounds: int) -> list[Row]:
    tree = scratch / "tree"
    grow(tree)
    program = shutil.which("rg")
    turn = FakeTurn(tree)
    rows = []

    async def ours(pattern: str, arguments: dict[str, str]) -> float:
        start = time.perf_counter()
        await search(pattern, turn, **arguments)
        return time.perf_counter() - start

    for name, (pattern, arguments, options) in SEARCHES.items():
        subjects: dict[str, Callable[[], float]] = {
            "openheim": lambda pattern=pattern, arguments=arguments: anyio.run(ours, pattern, arguments),
            "floor": lambda pattern=pattern, options=options: (
                read_all(tree) if program is None else ripgrep(program, tree, pattern, options)
            ),
        }
        figures = interleaved(subjects, rounds)
        value, floor = (median(figures[subject]) * 1e3 for subject in ("openheim", "floor"))
        label = f"search {FILES:,} files for {name}"
        if program is None:
            rows.append(Row(label, value, "ms", floor, "reading them"))
        else:
            rows.append(Row(label, value, "ms", floor, "ripgrep", LIMIT, relative=True))
    return rows


def ripgrep(program: str, tree: Path, pattern: str, options: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([program, "--line-number", *options, pattern, str(tree)], stdout=subprocess.DEVNULL, check=False)
    return time.perf_counter() - start


def read_all(tree: Path) -> float:
    start = time.perf_counter()
    for folder, _folders, names in os.walk(tree):
        for name in names:
            with open(os.path.join(folder, name), "rb", buffering=0) as file:
                file.read()
    return time.perf_counter() - start


def grow(tree: Path) -> None:
    """Files of 1 to 40 kB in a thousand directories, the same each time."""
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz_", k=rng.randint(2, 10))) for _ in range(3000)]
    lines = [" " * rng.choice((0, 4, 8)) + " ".join(rng.choices(words, k=rng.randint(2, 10))) for _ in range(20_000)]
    for number in range(FILES):
        folder = tree / f"package{number % 40}" / f"module{number // 40 % 25}"
        folder.mkdir(parents=True, exist_ok=True)
        begin = rng.randrange(len(lines) - 1000)
        text = "\n".join(lines[begin : begin + rng.randint(20, 1000)])
        if number % 50 == 0:
            text += "\n    def find_needle(self):\n"
        (folder / f"file{number}{rng.choice(('.py', '.py', '.md', '.txt', '.json', '.c'))}").write_text(text)
    (tree / ".gitignore").write_text("*.log\nbuild/\n__pycache__/\n")
