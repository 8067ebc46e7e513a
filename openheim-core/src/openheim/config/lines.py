"""On which line of a TOML file each key stands, for messages and for ``openheim config show``."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from openheim._reading import read_regular
from openheim.config.keys import unquoted
from openheim.config.toml import MAX_FILE_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ("key_lines", "line_of")

_TOKEN = re.compile(
    r"""
    (?P<skip>   [ \t\r\ufeff]+ | \#[^\n]* )
  | (?P<end>    \n )
  | (?P<text>   \"{3}(?:[^\\]|\\.)*?\"{3,5} | '{3}.*?'{3,5} | "(?:[^"\\\n]|\\.)*" | '[^'\n]*' )
  | (?P<mark>   [\[\]{}=,.] )
  | (?P<word>   [^\s\#"'\[\]{}=,.]+ )
  | (?P<other>  . )
    """,
    re.VERBOSE | re.DOTALL,
)

#: Levels of nesting that are looked into.
_MAX_DEPTH = 32


def line_of(file: Path, path: Sequence[str]) -> int | None:
    """The line (from 1) of the key at ``path``, or of what holds it; None if it cannot be told."""
    lines = key_lines(file)
    wanted = tuple(path)
    while wanted:
        if wanted in lines:
            return lines[wanted]
        wanted = wanted[:-1]
    return None


def key_lines(file: Path) -> Mapping[tuple[str, ...], int]:
    """The lines of all keys and tables of a valid file; of a file that is not valid or not there, what can be told."""
    try:
        found = file.stat()
        return _lines_of(file, found.st_mtime_ns, found.st_size, found.st_ino)
    except (OSError, UnicodeDecodeError):
        return {}


@lru_cache(maxsize=8)
def _lines_of(file: Path, *_version: int) -> Mapping[tuple[str, ...], int]:
    """Kept, since whoever asks for one key asks for others."""
    return _Scan(read_regular(file, limit=MAX_FILE_BYTES).decode("utf-8-sig")).lines


class _Scan:
    """Reads statement by statement. Values are skipped; keys inside of inline tables are noted."""

    def __init__(self, text: str) -> None:
        self.lines: dict[tuple[str, ...], int] = {}
        self._tokens: list[tuple[str, str, int]] = []
        line = 1
        for found in _TOKEN.finditer(text):
            kind = found.lastgroup or "other"
            if kind != "skip":
                self._tokens.append((kind, found[0], line))
            line += found[0].count("\n")
        self._at = 0
        table: tuple[str, ...] = ()
        while self._at < len(self._tokens):
            kind, token, line = self._tokens[self._at]
            if token == "[":
                self._skip("[")
                table = self._key()
                self._note((), table, line)
                self._to_line_end()
            elif kind in ("word", "text"):
                self._assignment(table, 0)
                self._to_line_end()
            else:
                self._at += 1

    @property
    def _token(self) -> tuple[str, str, int]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("end", "", 0)

    def _skip(self, mark: str) -> None:
        while self._token[1] == mark:
            self._at += 1

    def _to_line_end(self) -> None:
        while self._at < len(self._tokens) and self._token[0] != "end":
            self._at += 1

    def _key(self) -> tuple[str, ...]:
        parts: list[str] = []
        while self._token[0] in ("word", "text") or self._token[1] == ".":
            if self._token[1] != ".":
                parts.append(unquoted(self._token[1]))
            self._at += 1
        return tuple(parts)

    def _note(self, table: tuple[str, ...], key: tuple[str, ...], line: int) -> None:
        for length in range(1, len(key) + 1):
            self.lines.setdefault((*table, *key[:length]), line)

    def _assignment(self, table: tuple[str, ...], depth: int) -> None:
        line = self._token[2]
        key = self._key()
        self._note(table, key, line)
        if self._token[1] == "=":
            self._at += 1
            self._value((*table, *key), depth)

    def _value(self, path: tuple[str, ...], depth: int) -> None:
        opening = self._token[1]
        if opening not in ("[", "{") or self._token[0] != "mark" or depth >= _MAX_DEPTH:
            while self._token[0] != "end" and self._token[1] not in (",", "]", "}"):
                self._at += 1
            return
        closing = {"[": "]", "{": "}"}[opening]
        self._at += 1
        while self._at < len(self._tokens) and self._token[1] != closing:
            before = self._at
            if self._token[0] == "end" or self._token[1] == ",":
                self._at += 1
            elif opening == "{":
                self._assignment(path, depth + 1)
            else:
                self._value(path, depth + 1)
            self._at = max(self._at, before + 1)
        self._at += 1
