"""A phrase with its quoted parts masked, and what paths look like in it."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ("Phrase", "is_file_name")

#: Each quoted part is stood for by one character of a range that has no meaning of its own.
_FIRST_MASK = 0xE000
_MOST_QUOTES = 256

_QUOTED = re.compile(
    r"""(?<![^\s(:,])(?:"([^"]*)"|'((?:[^']|'(?=\w))*)'|`([^`]*)`|“([^”]*)”|‘((?:[^’]|’(?=\w))*)’)(?![\w])""",  # noqa: RUF001  quotes as people type them
)

_POLITE = re.compile(
    r"(?:(?:please|hey|hi|hello|ok|okay|now|so|well|also|then|and|first|next|finally)[,!]?\s+)*"
    r"(?:(?:(?:can|could|would|will)\s+you|i(?:\s+would|'d)\s+like\s+(?:you\s+)?to|i\s+want\s+(?:you\s+)?to|let's)\s+(?:please\s+)?)?",
    re.IGNORECASE,
)
_TAIL_WORDS = re.compile(r"(?<=[\s,])(?:please|for me)$", re.IGNORECASE)
_TAIL_MARKS = " \t\r\n?!.,;:"

_FILES_OF = re.compile(r"(?:all\s+)?(?:of\s+)?(?:the\s+|these\s+|my\s+)?files(?:\s+(?:in|of|under))?\s+", re.IGNORECASE)
_HERE = re.compile(
    r"(?:(?:this|the|my|our|your|current|working)\s+)*"
    r"(?:directory|dir|folder|project|repo|repository|checkout|codebase|workspace|package)(?:\s+here)?"
    r"|(?:all\s+)?(?:the\s+|these\s+|my\s+)?files|everything|this|here|there|\.|\./",
    re.IGNORECASE,
)
_WORDS_AROUND = re.compile(
    r"(?:the\s+)?(?P<before>(?:file|directory|folder|dir)\s+)?(?P<path>\S+?)(?P<after>\s+(?:file|directory|folder|dir))?",
    re.IGNORECASE,
)
_NOT_A_PATH = frozenset(
    ("", "a", "all", "file", "files", "it", "me", "something", "that", "the", "them", "these", "this", "those", "you")
)
_PLAIN_NAMES = frozenset(
    ("readme", "license", "licence", "makefile", "dockerfile", "changelog", "authors", "notice", "copying", "justfile")
)


def is_file_name(path: str) -> bool:
    """Whether a path looks like a file's: it has an extension, or is a name that files have by custom."""
    if path.endswith("/"):
        return False
    name = path.rpartition("/")[2]
    return name.lower() in _PLAIN_NAMES or bool(re.search(r"\.\w[\w-]{0,15}$", name))


@dataclass(frozen=True, slots=True)
class Phrase:
    """``masked`` is the text with one character in place of each quoted part, ``quotes`` what those stand for."""

    masked: str
    quotes: dict[str, str]

    @classmethod
    def of(cls, text: str) -> Phrase:
        quotes: dict[str, str] = {}

        def mask(match: re.Match[str]) -> str:
            if len(quotes) == _MOST_QUOTES:
                return match[0]
            character = chr(_FIRST_MASK + len(quotes))
            quotes[character] = next((group for group in match.groups() if group is not None), "")
            return character

        # What looks like one of our own marks is dropped: it could stand for nothing a person wants to say.
        plain = re.sub(f"[{chr(_FIRST_MASK)}-{chr(_FIRST_MASK + _MOST_QUOTES)}]", "", text)
        return cls(_QUOTED.sub(mask, plain.strip()), quotes)

    @property
    def is_quoted(self) -> bool:
        """Whether it is one quoted part and nothing else."""
        return self.masked in self.quotes

    def part(self, start: int, end: int | None) -> Phrase:
        return Phrase(self.masked[start:end].strip(), self.quotes)

    def without_tail(self) -> Phrase:
        """Without punctuation and "please" at the end."""
        masked = self.masked.rstrip(_TAIL_MARKS)
        while (words := _TAIL_WORDS.search(masked)) is not None:
            masked = masked[: words.start()].rstrip(_TAIL_MARKS)
        return Phrase(masked, self.quotes)

    def without_lead(self) -> Phrase:
        """Without polite words at the beginning."""
        polite = _POLITE.match(self.masked)
        return Phrase(self.masked[polite.end() if polite else 0 :], self.quotes)

    def bare(self) -> Phrase:
        return self.without_lead().without_tail()

    def text(self) -> str:
        """The words as they were; a phrase that is quoted as a whole loses its quotes."""
        if self.is_quoted:
            return self.quotes[self.masked]
        return "".join(f'"{self.quotes[one]}"' if one in self.quotes else one for one in self.masked)

    def place(self) -> str | None:
        """The path that the phrase names, ``""`` for the directory one is in, None if it is no path."""
        masked = self.masked
        if _HERE.fullmatch(masked):
            return ""
        files_of = _FILES_OF.match(masked)
        if files_of is not None:
            return Phrase(masked[files_of.end() :], self.quotes).place()
        match = _WORDS_AROUND.fullmatch(masked)
        if match is None:
            return None
        path = match["path"]
        if path in self.quotes:
            return self.quotes[path] or None
        if path.strip(".") and not path.endswith("/.."):
            path = path.rstrip("?!,;:.")
        return None if path.lower() in _NOT_A_PATH else path

    @property
    def is_surely_a_place(self) -> bool:
        """Whether a path is said to be one: by quotes, by a slash, or by the word "directory" beside it."""
        match = _WORDS_AROUND.fullmatch(self.masked)
        return match is not None and (
            match["path"] in self.quotes or "/" in match["path"] or bool(match["before"] or match["after"])
        )
