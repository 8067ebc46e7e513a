"""Which files the ignore files of a tree name, as git and ripgrep read them.

Nearer files beat those further up, and in one file the last line that matches decides. ``.ignore`` beats
``.gitignore``, which beats the repository's ``info/exclude`` and the user's own list. What is below an ignored
directory cannot be brought back; so a walk that enters no ignored directory needs to ask for each name only once.

One difference to git is meant: ``?`` is a character, as in ripgrep, and not a byte.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openheim_tools_fs.wildcards import MalformedError, expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ("Lines", "Rules")


@dataclass(slots=True, frozen=True)
class _Line:
    """A line of an ignore file. It matches the path below the file's directory, or, if not ``whole``, the last name."""

    pattern: re.Pattern[str]
    ignored: bool
    only_directories: bool
    whole: bool


class Lines:
    """What one ignore file says about the paths below its directory.

    Args:
        text: its content.
    """

    __slots__ = ("_lines", "_names", "_paths")

    def __init__(self, text: str) -> None:
        self._lines: list[_Line] = []
        names: list[str] = []
        paths: list[str] = []
        # Only line feeds end lines; a return before one is no part of the line.
        for raw in text.removeprefix("\ufeff").split("\n"):
            found = _parsed(raw.removesuffix("\r"))
            if found is not None:
                self._lines.append(found)
                (paths if found.whole else names).append(found.pattern.pattern)
        # Nearly all names match no line at all, which one look at all lines together tells.
        self._names = _any_of(names)
        self._paths = _any_of(paths)

    @property
    def is_simple(self) -> bool:
        """Whether every name that :meth:`concerned` gives is to be ignored, whatever it stands for."""
        return all(line.ignored and not line.only_directories for line in self._lines)

    def __bool__(self) -> bool:
        return bool(self._lines)

    def concerned(self, below: str, names: Sequence[str]) -> list[str]:
        """Those names that some line may be about: mostly none, and found in a small part of the time of asking each.

        Args:
            below: the path of their directory, relative to the directory of the file, with a slash behind it, or empty.
            names: in one directory.
        """
        found = []
        if self._names is not None:
            matches = self._names.fullmatch
            found = [name for name in names if matches(name)]
        if self._paths is not None:
            matches = self._paths.fullmatch
            found += [name for name in names if matches(below + name)]
        return found

    def ignores(self, path: str, name: str, is_directory: bool) -> bool | None:
        """Whether a path is to be ignored; None if no line is about it.

        Args:
            path: relative to the directory of the file, with ``/``.
            name: its last component.
        """
        if not (
            (self._names is not None and self._names.fullmatch(name))
            or (self._paths is not None and self._paths.fullmatch(path))
        ):
            return None
        for line in reversed(self._lines):
            if (is_directory or not line.only_directories) and line.pattern.fullmatch(path if line.whole else name):
                return line.ignored
        return None


def _any_of(expressions: Sequence[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(f"(?:{one})" for one in expressions), re.DOTALL) if expressions else None


def _parsed(text: str) -> _Line | None:
    """A line as a rule, or None for one that says nothing."""
    if text.startswith("#"):
        return None
    text = _without_blanks_behind(text)
    ignored = not text.startswith("!")
    text = text.removeprefix("!")
    only_directories = text.endswith("/")
    text = text.removesuffix("/")
    whole = "/" in text
    text = text.removeprefix("/")
    if not text:
        return None
    try:
        pattern = re.compile(expression(text), re.DOTALL)
    except MalformedError:
        return None
    return _Line(pattern, ignored, only_directories, whole)


def _without_blanks_behind(text: str) -> str:
    """Without the spaces at the end, but for one behind a backslash."""
    end = place = 0
    while place < len(text):
        if text[place] == "\\":
            place += 1
            end = place + 1
        elif text[place] != " ":
            end = place + 1
        place += 1
    return text[:end]


@dataclass(slots=True, frozen=True)
class Rules:
    """All ignore files that count in a directory. Each stands with the length of its directory's path and a slash.

    Args:
        plain: those named ``.ignore``, the nearest first.
        git: those named ``.gitignore``, the nearest first, and behind them what counts in the whole repository.
    """

    plain: tuple[tuple[int, Lines], ...] = ()
    git: tuple[tuple[int, Lines], ...] = ()

    def with_files(self, prefix: int, *, plain: Lines | None, git: Lines | None) -> Rules:
        """The rules of a directory that has these files of its own."""
        if not plain and not git:
            return self
        return Rules(
            ((prefix, plain), *self.plain) if plain else self.plain, ((prefix, git), *self.git) if git else self.git
        )

    def kept(self, path: str, entries: list[tuple[str, bool]]) -> list[tuple[str, bool]]:
        """What is not ignored of a directory.

        Args:
            path: the directory's, with a slash behind it.
            entries: names, and whether each is a directory.
        """
        names = [name for name, _ in entries]
        concerned: set[str] = set()
        for prefix, lines in (*self.plain, *self.git):
            concerned.update(lines.concerned(path[prefix:], names))
        if not concerned:
            return entries
        return [entry for entry in entries if entry[0] not in concerned or not self.ignore(path + entry[0], *entry)]

    def ignore(self, path: str, name: str, is_directory: bool) -> bool:
        """Whether a path is ignored, provided that the directories above it are not."""
        for files in (self.plain, self.git):
            if (verdict := _first(files, path, name, is_directory)) is not None:
                return verdict
        return False


def _first(files: Iterable[tuple[int, Lines]], path: str, name: str, is_directory: bool) -> bool | None:
    for prefix, lines in files:
        verdict = lines.ignores(path[prefix:], name, is_directory)
        if verdict is not None:
            return verdict
    return None
