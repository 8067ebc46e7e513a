"""Which files ignore files name, with git itself as the judge."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from openheim.files import Files
from openheim_tools_fs.ignoring import Lines, Rules
from openheim_tools_fs.walking import walk
from openheim_tools_fs.wildcards import MalformedError, braces_expanded, expression

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is the judge, and there is none here")

GIT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_OPTIONAL_LOCKS": "0", "PATH": os.environ["PATH"]}


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return home


def git(folder: Path, *arguments: str) -> bytes:
    environment = {**GIT, "HOME": os.environ["HOME"]}
    return subprocess.run(
        ["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True, timeout=30
    ).stdout


def judged(folder: Path) -> list[str]:
    """The files below a folder that git would add, but for hidden ones."""
    listed = git(folder, "ls-files", "-z", "--others", "--exclude-standard", ".").split(b"\0")
    paths = [os.fsdecode(path) for path in listed if path]
    return sorted(path for path in paths if not any(name.startswith(".") for name in path.split("/")))


def nothing() -> None:
    """Nobody wants to stop."""


def walked(root: Path, top: str = ".", **options: str) -> list[str]:
    files = Files(root)
    start = root if top == "." else root / top
    with walk(files, top, glob=options.get("glob"), limit=100_000, check=nothing) as found:
        paths = [os.path.relpath(one.path + name, start) for one in found for name in one.names]
        assert not found.more
    assert paths == sorted(paths, key=lambda path: path.split("/"))
    return sorted(paths)


def fill(root: Path, paths: Iterator[str] | list[str]) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")


# fmt: off
LINES = [
    "*.log", "!keep.log", "build/", "/build", "a/b", "/a/*.txt", "**/x", "x/**", "a/**/c", "**", "*", "!*/",
    "!*.c", "a*b*c", "foo ", "foo\\ ", "\\#hash", "#remark", "\\!bang", "", "   ", "[ab]", "[!a]x", "[^b]y",
    "[a-c]z", "[]]", "[!]]", "[[:digit:]]*", "[[:nonsense:]]", "[a", "a\\", "\\a", "a?c", "/", "//", "a//b",
    "**/a/**/b", "a/**/", "**/b/*.c", "***", "a**", "**a", "a/b/**/c.log", "*/x", "/*/x", "*.t[xy]t", "sub/",
    "!sub/keep", "[a-]", "[\\]]", "[[]", "x/*/y", "a/**b", "b**/c", "[!/]x", "a[/]b", "?", "??", "*?*", "*a*a*",
    "\\*", "c/", "!c/", "[z-a]", "[-a]", "foo\\", "A", "é*", "a\r", "!", "!!a", " a", "a/ ", "**/", "/**", "/**/",
    "**/**", "a/**/**/c", "a/*/**", "[[:alpha:][:digit:]]", "[a-c-e]",
]
# fmt: on
# fmt: off
NAMES = [
    "a", "b", "c", "x", "y", "ab", "abc", "aXbYc", "foo", "foo ", "#hash", "!bang", "keep.log", "x.log", "z.txt",
    "tyt.tyt", "1a", "]", "[", "-", "*", "a]", "build", "sub", "keep", "m.c", "ax", "by", "cz", "\\", "A", "éé1",
    " a", "a b", "c.log",
]
# fmt: on


def random_tree(root: Path, rng: random.Random) -> None:
    folders = [""]
    for _ in range(rng.randint(2, 12)):
        folders.append(f"{rng.choice(folders)}{rng.choice(NAMES)}/")
    for _ in range(rng.randint(5, 60)):
        path = root / f"{rng.choice(folders)}{rng.choice(NAMES)}"
        if not path.exists():
            fill(root, [str(path.relative_to(root))])
    for folder in {"", *rng.choices(folders, k=3)}:
        if (root / folder).is_dir():
            lines = rng.choices(LINES, k=rng.randint(1, 6))
            (root / folder / ".gitignore").write_text("\n".join(lines) + rng.choice(("\n", "")), newline="")


@needs_git
@pytest.mark.slow
def test_random_trees(tmp_path: Path, long_counts: bool) -> None:
    for seed in range(1500 if long_counts else 60):
        rng = random.Random(seed)
        root = tmp_path / f"r{seed}"
        root.mkdir()
        git(root, "init", "-q")
        try:
            random_tree(root, rng)
        except (FileExistsError, NotADirectoryError):
            pass  # A file where a folder was to be: what there is will do.
        assert walked(root) == judged(root), (seed, {p: p.read_text() for p in root.rglob(".gitignore")})
        shutil.rmtree(root)


@needs_git
@pytest.mark.parametrize("line", LINES)
def test_single_lines(tmp_path: Path, line: str) -> None:
    root = tmp_path / "work"
    root.mkdir()
    git(root, "init", "-q")
    fill(root, NAMES)
    deeper = ("d1", "d2/d3", "sub2/d")
    fill(root, [f"{folder}/{name}" for folder in deeper for name in NAMES])
    fill(root, ["a2/b/c", "d4/a/b", "d4/a/q/b", "d4/a/q/r/b", "d4/x/m/y", "d4/b/m.c", "d4/build/x"])
    (root / ".gitignore").write_text(f"*.never\n{line}\n", newline="")
    assert walked(root) == judged(root)
    (root / "d4" / ".gitignore").write_text(f"{line}\n", newline="")
    (root / ".gitignore").write_text("*\n!*/\n!*.c\n", newline="")
    assert walked(root) == judged(root)


@needs_git
def test_a_folder_below_the_top_and_one_above_the_boundary(tmp_path: Path, own_home: Path) -> None:
    repository = tmp_path / "repository"
    work = repository / "inner"
    fill(
        repository,
        ["inner/a.log", "inner/b.txt", "inner/sub/c.log", "inner/sub/d.txt", "inner/sub/e.tmp", "inner/sub/f.own"],
    )
    fill(repository, ["inner/g.mine", "inner/build/x", "inner/sub/build/y"])
    git(repository, "init", "-q")
    (repository / ".gitignore").write_text("*.log\n/inner/build\n")
    (repository / ".git" / "info" / "exclude").write_text("*.tmp\n")
    (work / ".gitignore").write_text("*.own\n")
    (own_home / "mine").write_text("*.mine\n")
    (own_home / ".gitconfig").write_text("[user]\n\tname = x\n[core]\n\texcludesFile = ~/mine\n")
    assert walked(work) == judged(work) == ["b.txt", "sub/build/y", "sub/d.txt"]
    assert walked(work, "sub") == judged(work / "sub") == ["build/y", "d.txt"]
    (own_home / ".gitconfig").unlink()
    (own_home / ".config" / "git").mkdir(parents=True)
    (own_home / ".config" / "git" / "ignore").write_text("b.*\n")
    assert walked(work) == judged(work) == ["g.mine", "sub/build/y", "sub/d.txt"]


def test_a_repository_within_has_its_own_rules(tmp_path: Path) -> None:
    fill(tmp_path, ["w/x.log", "w/inner/x.log", "w/inner/x.tmp", "w/inner/y"])
    (tmp_path / "w" / ".gitignore").write_text("*.log\n")
    (tmp_path / "w" / "inner" / ".git" / "info").mkdir(parents=True)
    (tmp_path / "w" / "inner" / ".git" / "info" / "exclude").write_text("*.tmp\n")
    assert walked(tmp_path / "w") == ["inner/x.log", "inner/y"]


def test_ignore_beats_gitignore_whichever_is_nearer(tmp_path: Path) -> None:
    fill(tmp_path, ["w/x.log", "w/sub/x.log", "w/sub/y.log", "w/z.txt"])
    (tmp_path / "w" / ".gitignore").write_text("*.log\n")
    (tmp_path / "w" / ".ignore").write_text("!x.log\nz.*\n")
    (tmp_path / "w" / "sub" / ".gitignore").write_text("x.log\n!y.log\n")
    assert walked(tmp_path / "w") == ["sub/x.log", "sub/y.log", "x.log"]


def test_odd_ignore_files(tmp_path: Path) -> None:
    work = tmp_path / "w"
    fill(work, ["a", "b", "d/x", "e/x", "f/x"])
    (work / ".gitignore").mkdir()
    os.mkfifo(work / ".ignore")
    (work / "d" / ".gitignore").symlink_to(tmp_path / "outside")
    (tmp_path / "outside").write_text("*\n")
    (work / "e" / ".gitignore").write_bytes(b"\xef\xbb\xbfx\n")
    (work / "f" / ".gitignore").write_bytes(b"\xff\xfe\0\n" * 1000)
    assert walked(work) == ["a", "b", "d/x", "f/x"]


@pytest.mark.parametrize("wildcard", ["*a" * 60 + "b", "**/a*/" * 40 + "b", "[a]*" * 60 + "b", "a/**/" * 40 + "b"])
def test_no_line_hangs(wildcard: str) -> None:
    lines = Lines([wildcard], nothing)
    begin = time.monotonic()
    for path in ("a" * 250, "a/" * 1500 + "c", "/".join(["a" * 250] * 15)):
        assert lines.ignores(path, path.rpartition("/")[2], False) is None
    # Matching by trying everything would take years.
    assert time.monotonic() - begin < 20


BOMBS = {
    "stars in one line": "/".join(["*a*"] * 5000),
    "double stars in one line": "**/" * 5000 + "x",
    "classes that are not closed": "[[:" * 5000,
    "classes that are closed at the end": "[[:" * 5000 + "]",
    "backslashes": "\\" * 5000,
    "one long line": "a" * 1_000_000,
    "long lines with stars": ("*a*" * 300 + "b\n") * 1000,
    "many stars": "*a*b*c\n" * 100_000,
    "many double stars": "a/**/b/**/c\n" * 80_000,
    "many names": "".join(f"name{number}\n" for number in range(100_000)),
    "many names of directories brought back": "a/\n!a\n" * 200_000,
    "many sets": "[a-z][!0-9]*[[:alpha:]]\n" * 40_000,
    "empty lines": "\n" * 1_000_000,
    "spaces": "a \\ " * 200_000,
}


@pytest.mark.parametrize("content", BOMBS.values(), ids=BOMBS.keys())
def test_no_ignore_file_takes_long(tmp_path: Path, content: str) -> None:
    fill(tmp_path, [f"d{folder}/{'a' * 200}{number}" for folder in range(3) for number in range(100)])
    (tmp_path / ".gitignore").write_text("*7\n" + content)
    begin = time.monotonic()
    assert len(walked(tmp_path)) == 270
    # It took minutes.
    assert time.monotonic() - begin < 20


def test_what_does_not_count_is_known(tmp_path: Path) -> None:
    fill(tmp_path, ["a", "b", "c/d"])
    files = {
        tmp_path / ".gitignore": ("a\n#" + "x" * 5000 + "\n", False),
        tmp_path / ".ignore": ("a" * 5000 + "\nb\n", True),
        tmp_path / "c" / ".gitignore": ("x\n" * 600_000, True),
        tmp_path / "c" / ".ignore": ("*a*b*c*\n" * 1000, True),
    }
    for path, (content, _) in files.items():
        path.write_text(content)
    with walk(Files(tmp_path), ".", glob=None, limit=100, check=nothing) as found:
        assert [one.path + name for one in found for name in one.names] == [str(tmp_path / "c" / "d")]
        shortened = [str(path.relative_to(tmp_path)) for path, (_, is_shortened) in files.items() if is_shortened]
        assert sorted(found.ignore_files.shortened) == sorted(shortened)


@pytest.mark.parametrize("place", [1, 5, 10])
def test_reading_and_asking_end_when_they_are_to(place: int) -> None:
    class EnoughError(Exception):
        pass

    asked = 0

    def check() -> None:
        nonlocal asked
        asked += 1
        if asked == place:
            raise EnoughError

    with pytest.raises(EnoughError):
        Lines(["*a*"] * 10_000, check)
    lines = Lines(["*a*"], nothing)
    asked, lines._check = 0, check
    with pytest.raises(EnoughError):
        lines.concerned("", ["aaa"] * 10_000)
    asked = 0
    with pytest.raises(EnoughError):
        Rules(git=((0, Lines(["*a*"], nothing)),)).kept("", [("aaa", False)] * 100, check)


@pytest.mark.parametrize("wildcard", ["[", "[a", "[]", "a\\", "[[:x:]]", "[!", "[\\"])
def test_malformed(wildcard: str) -> None:
    with pytest.raises(MalformedError):
        expression(wildcard)


def test_braces() -> None:
    assert sorted(set(braces_expanded("{a,b{c,d}}e"))) == ["ae", "bce", "bde"]
    assert braces_expanded("a\\{b") == ["a\\{b"]
    for wrong in ("{a", "{a,b}{", "{a,b}" * 12):
        with pytest.raises(MalformedError):
            braces_expanded(wrong)


@pytest.mark.parametrize("wildcard", LINES)
def test_expressions_are_expressions(wildcard: str) -> None:
    try:
        re.compile(expression(wildcard))
    except MalformedError:
        pass
