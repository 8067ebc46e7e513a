"""The one setting of git that a search needs, ``core.excludesFile``, read from its files as ``git-config(1)`` says.

Nothing is run for it. Conditions of ``includeIf`` count if they are about the place of the repository (``gitdir:`` and
``gitdir/i:``); those about branches and remotes never hold.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from openheim_tools_fs.wildcards import MalformedError, expression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ("excludes_file", "user_files")

#: Files within files, as for git; and files in all.
MAX_DEPTH = 10
MAX_FILES = 50
#: Longest condition or path that counts.
MAX_CHARS = 1000

_SECTION = re.compile(r'\[\s*([-.\w]+)(?:\s+"((?:[^"\\\n]|\\.)*)")?\s*\]')
_KEY = re.compile(r"([A-Za-z][-A-Za-z0-9]*)[ \t]*(=?)[ \t]*")
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b"}


class _Setting(NamedTuple):
    section: str
    subsection: str
    key: str
    value: str


def user_files() -> Iterator[str]:
    """The files of settings that count in all repositories, those that count more later."""
    if not os.environ.get("GIT_CONFIG_NOSYSTEM"):
        yield os.environ.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig"
    if "GIT_CONFIG_GLOBAL" in os.environ:
        yield os.environ["GIT_CONFIG_GLOBAL"]
        return
    home = os.path.expanduser("~")
    yield os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "git", "config")
    yield os.path.join(home, ".gitconfig")


def excludes_file(files: Iterable[str], git_dir: str | None, read: Callable[[str], str]) -> str | None:
    """What the last of the settings says, as it stands there but for ``~/`` at the beginning; None if none does.

    Args:
        files: paths of files with settings, in the order in which they count.
        git_dir: full path of the repository's ``.git``; None outside of repositories.
        read: gives the content of a file, empty where there is none.
    """
    reader = _Reader(git_dir, read)
    for path in files:
        reader.take(path, 1)
    return reader.found


class _Reader:
    def __init__(self, git_dir: str | None, read: Callable[[str], str]) -> None:
        self.found: str | None = None
        self._git_dir = git_dir
        self._read = read
        self._files_left = MAX_FILES

    def take(self, path: str, depth: int) -> None:
        if depth > MAX_DEPTH or not self._files_left:
            return
        self._files_left -= 1
        for setting in _settings(self._read(path)):
            name = (setting.section, setting.key)
            if name == ("core", "excludesfile") and not setting.subsection:
                self.found = os.path.expanduser(setting.value)
            elif (name == ("include", "path") and not setting.subsection) or (
                name == ("includeif", "path") and self._holds(setting.subsection, os.path.dirname(path))
            ):
                self.take(os.path.join(os.path.dirname(path), os.path.expanduser(setting.value)), depth + 1)

    def _holds(self, condition: str, folder: str) -> bool:
        kind, _, pattern = condition.partition(":")
        if self._git_dir is None or kind not in ("gitdir", "gitdir/i") or not pattern or len(pattern) > MAX_CHARS:
            return False
        if pattern.startswith("~/"):
            pattern = os.path.expanduser(pattern)
        elif pattern.startswith("./"):
            pattern = os.path.realpath(folder) + pattern[1:]
        elif not pattern.startswith("/"):
            pattern = f"**/{pattern}"
        if pattern.endswith("/"):
            pattern += "**"
        try:
            matcher = re.compile(
                expression(pattern.lstrip("/")), re.DOTALL | (re.IGNORECASE if kind[-2:] == "/i" else 0)
            )
        except MalformedError:
            return False
        paths = {self._git_dir, os.path.realpath(self._git_dir)}
        return any(matcher.fullmatch(path.lstrip("/")) for path in paths)


def _settings(text: str) -> Iterator[_Setting]:
    """The settings in a file, up to the first place that is not valid."""
    section = subsection = ""
    place = 1 if text.startswith("\ufeff") else 0
    while place < len(text):
        if text[place].isspace():
            place += 1
        elif text[place] in "#;":
            end = text.find("\n", place)
            place = len(text) if end < 0 else end
        elif text[place] == "[":
            header = _SECTION.match(text, place)
            if header is None:
                return
            section, subsection = header[1].lower(), re.sub(r"\\(.)", r"\1", header[2] or "")
            place = header.end()
        else:
            key = _KEY.match(text, place)
            if key is None:
                return
            value, place = _value(text, key.end()) if key[2] else ("", key.end())
            if value is None:
                return
            yield _Setting(section, subsection, key[1].lower(), value)


def _value(text: str, place: int) -> tuple[str | None, int]:
    """The value that begins at ``place``, and where the line ends; None if it is not valid."""
    pieces: list[str] = []
    # Blanks at the end do not count, unless they are quoted.
    kept = 0
    quoted = False
    while place < len(text) and text[place] != "\n":
        char = text[place]
        place += 1
        if char == '"':
            quoted = not quoted
            kept = len(pieces)
        elif char == "\\":
            escaped = text[place : place + 1]
            place += 1
            if escaped == "\r" and text[place : place + 1] == "\n":
                place += 1
            elif escaped in _ESCAPES or escaped in ("\\", '"'):
                pieces.append(_ESCAPES.get(escaped, escaped))
                kept = len(pieces)
            elif escaped != "\n":
                return None, place
        elif char in "#;" and not quoted:
            end = text.find("\n", place)
            place = len(text) if end < 0 else end
        else:
            pieces.append(char)
            if quoted or not char.isspace():
                kept = len(pieces)
    return (None if quoted else "".join(pieces[:kept])), place
