"""The setting core.excludesFile, wherever git reads it from, with git itself as the judge."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from openheim.files import Files
from openheim_tools_fs.git_settings import excludes_file
from openheim_tools_fs.walking import walk

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is the judge, and there is none here")

NAMES = ["a", "b", "c", "d", "e", "sub/a", "sub/b", "sub/c"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home where the list L names the file L, for each of some letters."""
    home = tmp_path / "home"
    for letter in "abcde":
        write(home / "lists" / letter, f"{letter}\n")
    for name in ("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return home


@pytest.fixture
def work(home: Path) -> Path:
    work = home / "projects" / "paper"
    for name in NAMES:
        write(work / name, "x")
    if shutil.which("git"):
        subprocess.run(["git", "init", "-q", str(work)], check=True, capture_output=True, timeout=30)
    return work


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def judged(folder: Path) -> list[str]:
    """The files that git would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--others", "--exclude-standard", "."],
        cwd=folder,
        check=True,
        capture_output=True,
        timeout=30,
    ).stdout
    return sorted(os.fsdecode(path) for path in listed.split(b"\0") if path and not path.startswith(b"."))


def walked(root: Path, top: str = ".") -> list[str]:
    start = root if top == "." else root / top
    with walk(Files(root), top, glob=None, limit=1000, check=lambda: None) as found:
        return sorted(os.path.relpath(one.path + name, start) for one in found for name in one.names)


def ignored(paths: list[str]) -> str:
    return "".join(sorted({name for name in NAMES if "/" not in name} - set(paths)))


CORE = "[core]\n\texcludesFile = ~/lists/a\n"

SETTINGS = {
    "plain": (CORE, "a"),
    "twice": (CORE + "[core]\nexcludesfile = ~/lists/b\n", "b"),
    "on one line": ("[Core] ExcludesFile=~/lists/a", "a"),
    "quoted": ('[core]\n excludesFile = "~/lists/a" ; remark', "a"),
    "partly quoted": ('[core]\n excludesFile = ~/li"sts"/a # remark', "a"),
    "escaped": ('[core]\n excludesFile = "~/lists/\\"\\\\\\t"\n[core]\nexcludesFile=~/lists/b', "b"),
    "on two lines": ("[core]\n excludesFile = ~/li\\\nsts/a\n", "a"),
    "blanks behind": ("[core]\n excludesFile = ~/lists/a   \n", "a"),
    "in another section": ("[other]\n excludesFile = ~/lists/a\n", ""),
    "in a subsection": ('[core "x"]\n excludesFile = ~/lists/a\n', ""),
    "other keys first": ("[user]\n\tname = x\n# remark\n[core]\n\tbare = false\n\texcludesFile = ~/lists/a\n", "a"),
    "a file that is missing": (CORE + "[core]\nexcludesFile = ~/lists/none\n", ""),
    "included": ("[include]\npath = more\n", "c"),
    "included, and beaten": ("[include]\npath = ~/more\n" + CORE, "a"),
    "included behind": (CORE + "[include]\npath = more\n", "c"),
    "included if the place is": ('[includeIf "gitdir:~/projects/"]\npath = more\n', "c"),
    "another place": ('[includeIf "gitdir:~/elsewhere/"]\npath = more\n', ""),
    "somewhere": ('[includeIf "gitdir:projects/"]\npath = more\n', "c"),
    "somewhere below": ('[includeIf "gitdir:projects/**/.git"]\npath = more\n', "c"),
    "relative": ('[includeIf "gitdir:./projects/"]\npath = more\n', "c"),
    "in other letters": ('[includeIf "gitdir/i:~/PROJECTS/"]\npath = more\n', "c"),
    "in wrong letters": ('[includeIf "gitdir:~/PROJECTS/"]\npath = more\n', ""),
    "exactly": ('[includeIf "gitdir:~/projects/paper/.git"]\npath = more\n', "c"),
    "not exactly": ('[includeIf "gitdir:~/projects/paper"]\npath = more\n', ""),
    "a star": ('[includeIf "gitdir:~/*/paper/.git"]\npath = more\n', "c"),
}


@needs_git
@pytest.mark.parametrize(("text", "expected"), SETTINGS.values(), ids=SETTINGS.keys())
def test_settings_of_the_user(home: Path, work: Path, text: str, expected: str) -> None:
    write(home / "more", "[core]\nexcludesFile = ~/lists/c\n")
    write(home / ".gitconfig", text)
    assert walked(work) == judged(work)
    assert ignored(walked(work)) == expected
    assert walked(work, "sub") == judged(work / "sub")


@needs_git
def test_which_file_beats_which(home: Path, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(expected: str) -> None:
        assert ignored(walked(work)) == ignored(judged(work)) == expected
        # The same from outside of the boundary.
        assert walked(work / "sub") == judged(work / "sub")

    check("")
    write(home / ".config" / "git" / "ignore", "e\n")
    check("e")
    monkeypatch.delenv("GIT_CONFIG_NOSYSTEM")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", str(tmp_path / "system"))
    write(tmp_path / "system", CORE)
    check("a")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    check("e")
    monkeypatch.delenv("GIT_CONFIG_NOSYSTEM")
    write(home / ".config" / "git" / "config", CORE.replace("/a", "/b"))
    check("b")
    write(home / ".gitconfig", CORE.replace("/a", "/c"))
    check("c")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "global"))
    check("a")
    write(tmp_path / "global", CORE.replace("/a", "/d"))
    check("d")
    write(work / "mine", "b\n")
    with open(work / ".git" / "config", "a") as config:
        config.write("[core]\nexcludesFile = mine\n")
    check("b")
    write(work / ".git" / "more", "[core]\nexcludesFile = other\n")
    write(work / "other", "c\n")
    with open(work / ".git" / "config", "a") as config:
        config.write("[include]\npath = more\n")
    check("c")


def test_settings_inside_lead_to_nothing_outside(home: Path, tmp_path: Path) -> None:
    """Unlike git: whoever writes them, perhaps the model, learns nothing of files outside the work directory."""
    work = tmp_path / "inner"
    for name in NAMES:
        write(work / name, "x")
    (work / "link").symlink_to(home / "lists" / "a")
    write(home / "more", CORE)
    for text in (
        CORE,
        f"[core]\nexcludesFile = {home}/lists/a\n",
        "[core]\nexcludesFile = ../home/lists/a\n",
        "[core]\nexcludesFile = link\n",
        f"[include]\npath = {home}/more\n",
        "[include]\npath = ../../home/more\n",
    ):
        write(work / ".git" / "config", text)
        assert ignored(walked(work)) == "", text


def test_odd_settings(home: Path, tmp_path: Path) -> None:
    work = tmp_path / "inner"
    write(work / "a", "x")
    (work / ".git").mkdir()
    for text in (
        "[include]\npath = .gitconfig\n" * 100,
        "[" * 100_000,
        '[core]\nexcludesFile = "' + "a" * 100_000,
        "[core]\nexcludesFile\n",
        "[core]\nexcludesFile =\n",
        "[core]\nexcludesFile = \\x\n",
        "=\n",
        '[includeIf "gitdir:[a"]\npath = more\n',
        '[includeIf "gitdir:' + "**/" * 50_000 + '"]\npath = more\n',
        "\xff\0",
    ):
        write(home / ".gitconfig", text)
        assert walked(work) == ["a"], text[:50]
    os.remove(home / ".gitconfig")
    os.mkfifo(home / ".gitconfig")
    assert walked(work) == ["a"]


def test_settings_that_include_themselves_end() -> None:
    read: list[str] = []

    def content(path: str) -> str:
        read.append(path)
        return "[include]\npath = x\npath = y\n"

    assert excludes_file(["/x"], None, content) is None
    assert len(read) == 50
