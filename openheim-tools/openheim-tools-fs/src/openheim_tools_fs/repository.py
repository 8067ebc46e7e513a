"""Ignore rules from around a directory: of the directories above it, of the repository, and of the user."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from openheim import ToolError
from openheim_tools_fs.git_settings import excludes_file, user_files
from openheim_tools_fs.ignoring import Lines, Rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from openheim.files import Files, Folder

__all__ = ("IgnoreFiles",)

GIT = ".git"

#: Of longer ignore files the beginning counts.
MAX_BYTES = 1024 * 1024


class IgnoreFiles:
    """Finds and reads the ignore files that a walk needs.

    What is inside the boundary is read within it only: settings of a repository in there lead to no file outside.

    Args:
        files: the boundary.
        check: called now and then; what it raises ends the reading.

    Attributes:
        shortened: the paths of files that count in part only.
    """

    def __init__(self, files: Files, check: Callable[[], None]) -> None:
        self.shortened: list[str] = []
        self._files = files
        self._check = check
        self._outside: dict[str, bytes] = {}
        self._user_lines: dict[str, Lines | None] = {}

    def own_rules(self, above: Rules, folder: Folder, names: frozenset[str], prefix: int) -> Rules:
        """The rules in a directory, made from those of the directory above it and its own files.

        Args:
            names: what is in the directory.
            prefix: length of its path with a slash behind it.
        """
        if GIT in names:  # Another repository begins, where the rules of the one around end.
            exclude = self._lines_in(folder, "exclude", below=f"{GIT}/info")
            root = self._files.root if folder.path == "." else self._files.root / folder.path
            above = Rules(above.plain, self._of_repository(root, exclude, prefix))
        return above.with_files(
            prefix,
            plain=self._lines_in(folder, ".ignore") if ".ignore" in names else None,
            git=self._lines_in(folder, ".gitignore") if ".gitignore" in names else None,
        )

    def rules_above(self, top: str) -> Rules:
        """The rules that come from above a directory: from its repository, else from the boundary's root on.

        Directories above the boundary are looked at for nothing but their ignore files.

        Args:
            top: the directory's canonical path.
        """
        inside = top.split("/") if top != "." else []
        files = self._files
        outside = list(_repository_around(files.root))
        rules = Rules(git=self._of_repository(None, None, len(str(files.root)) + 1))
        for path in outside:
            prefix = len(str(path)) + (str(path) != os.sep)
            if path == outside[0]:
                exclude = self._lines_at(path / GIT / "info" / "exclude")
                rules = Rules(git=self._of_repository(path, exclude, prefix))
            rules = rules.with_files(
                prefix, plain=self._lines_at(path / ".ignore"), git=self._lines_at(path / ".gitignore")
            )
        for depth in range(len(inside)):
            path = files.root.joinpath(*inside[:depth])
            try:
                with files.folder(str(path)) as folder:
                    names = frozenset(name for name in (GIT, ".ignore", ".gitignore") if folder.has(name))
                    rules = self.own_rules(rules, folder, names, len(str(path)) + 1)
            except ToolError:
                continue
        return rules

    def _lines_in(self, folder: Folder, name: str, *, below: str = "") -> Lines | None:
        """An ignore file of a directory that is open, or of one below it; None if there is nothing to be read."""
        try:
            if below:
                inner = folder.folder(below)
                if inner is None:
                    return None
                with inner:
                    return self._lines_in(inner, name)
            opened = folder.open_file(name, size=MAX_BYTES)
        except (ToolError, OSError):
            return None
        if opened is None:
            return None
        data, rest = opened
        if rest is not None:
            rest.close()
        return self._lines(data, f"{folder.path}/{name}".removeprefix("./"), is_whole=rest is None)

    def _lines_at(self, path: str | Path) -> Lines | None:
        data = _data_at(path)
        return self._lines(data, str(path), is_whole=len(data) < MAX_BYTES) if data else None

    def _lines(self, data: bytes, path: str, *, is_whole: bool) -> Lines:
        lines = Lines.of_text(data.decode("utf-8", errors="surrogateescape"), self._check)
        if not (is_whole and lines.is_whole):
            self.shortened.append(path)
        return lines

    def _of_repository(self, root: Path | None, exclude: Lines | None, prefix: int) -> tuple[tuple[int, Lines], ...]:
        """What counts in a whole repository, or, with a root that is None, where there is none."""
        return tuple((prefix, lines) for lines in (exclude, self._of_settings(root)) if lines)

    def _of_settings(self, root: Path | None) -> Lines | None:
        """The list that git is told of by ``core.excludesFile``, or the default one."""
        if root is not None:
            git_dir, is_inside = root / GIT, root.is_relative_to(self._files.root)
            read = self._text_inside if is_inside else self._text_outside
            own = excludes_file([str(git_dir / "config")], str(git_dir), read)
            if own is not None:
                path = os.path.join(root, own)
                if not is_inside:
                    return self._lines_of_user(path)
                data = self._data_inside(path)
                return self._lines(data, own, is_whole=len(data) < MAX_BYTES) if data else None
        git_dir_text = None if root is None else str(root / GIT)
        named = excludes_file(user_files(), git_dir_text, self._text_outside)
        if named is None:
            settings = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser(os.path.join("~", ".config"))
            named = os.path.join(settings, "git", "ignore")
        return self._lines_of_user(os.path.join(root or self._files.root, named))

    def _lines_of_user(self, path: str) -> Lines | None:
        if path not in self._user_lines:
            self._user_lines[path] = self._lines_at(path)
        return self._user_lines[path]

    def _text_outside(self, path: str) -> str:
        self._check()
        if path not in self._outside:
            self._outside[path] = _data_at(path)
        return self._outside[path].decode("utf-8", errors="surrogateescape")

    def _text_inside(self, path: str) -> str:
        self._check()
        return self._data_inside(path).decode("utf-8", errors="surrogateescape")

    def _data_inside(self, path: str) -> bytes:
        try:
            with self._files.open_read(path) as file:
                return file.read(MAX_BYTES)
        except (ToolError, OSError):
            return b""


def _repository_around(root: Path) -> Iterator[Path]:
    """The directories above the boundary's root that belong to its repository, the outermost first."""
    if os.path.lexists(root / GIT):
        return
    above = list(root.parents)
    for index, path in enumerate(above):
        if os.path.lexists(path / GIT):
            yield from reversed(above[: index + 1])
            return


def _data_at(path: str | Path) -> bytes:
    """The beginning of a file outside the boundary; empty if there is none. Nothing is waited for."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return b""
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            return file.read(MAX_BYTES)
    except OSError:
        return b""
