"""What a person can ask the demo provider for. A path of None is the session's own directory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = (
    "Describe",
    "Hello",
    "Help",
    "ListFiles",
    "ReadFile",
    "Recall",
    "Remember",
    "ReplaceText",
    "Request",
    "Search",
    "SummariseFile",
    "SummariseText",
    "WriteFile",
)


@dataclass(frozen=True, slots=True)
class ListFiles:
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Describe:
    """``guessed``: the words were not understood, but they are about the directory."""

    path: str | None = None
    guessed: bool = False


@dataclass(frozen=True, slots=True)
class ReadFile:
    path: str


@dataclass(frozen=True, slots=True)
class SummariseFile:
    path: str


@dataclass(frozen=True, slots=True)
class SummariseText:
    """``text`` came with the prompt, on standard input."""

    text: str


@dataclass(frozen=True, slots=True)
class Search:
    words: str
    path: str | None = None


@dataclass(frozen=True, slots=True)
class WriteFile:
    path: str
    text: str


@dataclass(frozen=True, slots=True)
class ReplaceText:
    path: str
    old: str
    new: str
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class Remember:
    note: str


@dataclass(frozen=True, slots=True)
class Recall:
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class Help:
    pass


@dataclass(frozen=True, slots=True)
class Hello:
    pass


Request: TypeAlias = (
    ListFiles
    | Describe
    | ReadFile
    | SummariseFile
    | SummariseText
    | Search
    | WriteFile
    | ReplaceText
    | Remember
    | Recall
    | Help
    | Hello
)
