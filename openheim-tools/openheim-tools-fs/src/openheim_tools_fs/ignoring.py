"""Which files the ignore files of a tree name, as git and ripgrep read them.

Nearer files beat those further up, and in one file the last line that matches decides. ``.ignore`` beats
``.gitignore``, which beats the repository's ``info/exclude`` and the user's own list. What is below an ignored
directory cannot be brought back; so a walk that enters no ignored directory needs to ask for each name only once.

One difference to git is meant: ``?`` is a character, as in ripgrep, and not a byte.

An ignore file comes with the tree, so what it may cost is bounded: what goes beyond does not count, and
:attr:`Lines.is_whole` says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openheim_tools_fs.wildcards import MalformedError, expression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ("MAX_LINES", "MAX_LINE_CHARS", "Lines", "Rules")

#: What counts of one file: lines, characters of a line, and of all lines with wildcards the characters and the stars.
#: Each star may have to look at every character of a name.
MAX_LINES = 20_000
MAX_LINE_CHARS = 1000
MAX_WILDCARD_CHARS = 50_000
MAX_STARS = 1500

#: Lines, or names, after which it is looked whether to go on.
_STEP = 64

_WILDCARDS = frozenset("*?[\\")


class _Line:
    """A line of an ignore file. It matches the path below the file's directory, or, if not ``whole``, the last name."""

    __slots__ = ("_pattern", "expression", "ignored", "only_directories", "text", "whole")

    def __init__(self, text: str, *, ignored: bool, only_directories: bool, whole: bool) -> None:
        self.text = text
        self.ignored = ignored
        self.only_directories = only_directories
        self.whole = whole
        #: None if the text has no wildcards and matches itself.
        self.expression = None if _WILDCARDS.isdisjoint(text) else expression(text)
        self._pattern: re.Pattern[str] | None = None

    def matches(self, path: str, name: str) -> bool:
        subject = path if self.whole else name
        if self.expression is None:
            return subject == self.text
        if self._pattern is None:
            self._pattern = re.compile(self.expression, re.DOTALL)
        return self._pattern.fullmatch(subject) is not None


class Lines:
    """What one ignore file says about the paths below its directory.

    Args:
        lines: those of the file.
        check: called now and then; what it raises ends the reading.

    Attributes:
        is_whole: whether all lines count.
    """

    __slots__ = ("_check", "_lines", "_names", "_paths", "is_whole")

    def __init__(self, lines: Iterable[str], check: Callable[[], None]) -> None:
        self._lines: list[_Line] = []
        self._check = check
        self.is_whole = True
        chars = stars = 0
        for number, text in enumerate(lines):
            if number % _STEP == 0:
                check()
            if len(self._lines) == MAX_LINES:
                self.is_whole = False
                break
            if text.startswith("#"):
                continue
            if len(text) > MAX_LINE_CHARS:
                self.is_whole = False
                continue
            line = _parsed(text)
            if line is None:
                continue
            if line.expression is not None:
                chars += len(line.text)
                stars += line.text.count("*")
                if chars > MAX_WILDCARD_CHARS or stars > MAX_STARS:
                    self.is_whole = False
                    continue
            self._lines.append(line)
        # Nearly all names match no line at all, which one look at all lines together tells.
        self._names = _AnyOf([line for line in self._lines if not line.whole])
        self._paths = _AnyOf([line for line in self._lines if line.whole])

    @classmethod
    def of_text(cls, text: str, check: Callable[[], None]) -> Lines:
        """The content of an ignore file."""
        # Only line feeds end lines; a return before one is no part of the line.
        return cls((line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")), check)

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
        found: list[str] = []
        for begin in range(0, len(names), _STEP):
            self._check()
            some = names[begin : begin + _STEP]
            if self._names:
                found += filter(self._names.matches, some)
            if self._paths:
                found += [name for name in some if self._paths.matches(below + name)]
        return found

    def ignores(self, path: str, name: str, is_directory: bool) -> bool | None:
        """Whether a path is to be ignored; None if no line is about it.

        Args:
            path: relative to the directory of the file, with ``/``.
            name: its last component.
        """
        if not (self._names.matches(name) or self._paths.matches(path)):
            return None
        for line in reversed(self._lines):
            if (is_directory or not line.only_directories) and line.matches(path, name):
                return line.ignored
        return None


class _AnyOf:
    """Several lines at once."""

    __slots__ = ("_pattern", "_texts", "matches")

    def __init__(self, lines: Sequence[_Line]) -> None:
        self._texts = frozenset(line.text for line in lines if line.expression is None)
        together = "|".join(f"(?:{line.expression})" for line in lines if line.expression is not None)
        self._pattern = re.compile(together, re.DOTALL) if together else None
        #: Whether one of them matches a name, or a path.
        self.matches: Callable[[str], object]
        if self._pattern is None:
            self.matches = self._texts.__contains__
        elif not self._texts:
            self.matches = self._pattern.fullmatch
        else:
            self.matches = self._either

    def __bool__(self) -> bool:
        return bool(self._texts or self._pattern)

    def _either(self, text: str) -> object:
        assert self._pattern is not None
        return text in self._texts or self._pattern.fullmatch(text)


def _parsed(text: str) -> _Line | None:
    """A line as a rule, or None for one that says nothing."""
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
        return _Line(text, ignored=ignored, only_directories=only_directories, whole=whole)
    except MalformedError:
        return None


def _without_blanks_behind(text: str) -> str:
    """Without the spaces at the end, but for one behind a backslash."""
    if not text.endswith(" "):
        return text
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

    def kept(self, path: str, entries: list[tuple[str, bool]], check: Callable[[], None]) -> list[tuple[str, bool]]:
        """What is not ignored of a directory.

        Args:
            path: the directory's, with a slash behind it.
            entries: names, and whether each is a directory.
            check: called now and then; what it raises ends this.
        """
        names = [name for name, _ in entries]
        concerned: set[str] = set()
        for prefix, lines in (*self.plain, *self.git):
            concerned.update(lines.concerned(path[prefix:], names))
        if not concerned:
            return entries
        kept = []
        for entry in entries:
            if entry[0] in concerned:
                check()
                if self._ignore(path + entry[0], *entry):
                    continue
            kept.append(entry)
        return kept

    def _ignore(self, path: str, name: str, is_directory: bool) -> bool:
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
