"""Which lines of a file somebody may have meant whose text is not in it."""

from __future__ import annotations

import difflib
import itertools
import re

__all__ = ("nearest_lines",)

#: Bounds of the comparison, which is quadratic in the length of a line.
MAX_LINES = 20_000
MAX_LINE_CHARS = 300
MAX_SHOWN = 3
MAX_WORDS = 2_000

_WORDS = re.compile(r"\w{3,80}")


def nearest_lines(text: str, sought: str) -> str:
    """A clause that names the lines most like the first telling line of ``sought``, or ``""``."""
    telling = max(sought.splitlines(), key=lambda line: len(line.strip()), default="").strip()[:MAX_LINE_CHARS]
    if not telling:
        return ""
    numbered = list(itertools.islice(enumerate(text.splitlines(), 1), MAX_LINES))
    same = [(number, line) for number, line in numbered if telling in line]
    if same:
        return _clause("part of it stands in", same[:MAX_SHOWN])
    words = set(telling.split())
    # Sharing a word is a cheap test that leaves few lines for the dear one.
    candidates = [(number, line) for number, line in numbered if not words.isdisjoint(line.split())][:1000]
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(telling)
    rated = []
    for number, line in candidates:
        matcher.set_seq1(line.strip()[:MAX_LINE_CHARS])
        if matcher.real_quick_ratio() > 0.6 and matcher.quick_ratio() > 0.6 and (ratio := matcher.ratio()) > 0.6:
            rated.append((-ratio, number, line))
    alike = [(number, line) for _, number, line in sorted(rated)[:MAX_SHOWN]] or _with_words_alike(numbered, telling)
    return _clause("most alike", alike) if alike else ""


def _with_words_alike(numbered: list[tuple[int, str]], telling: str) -> list[tuple[int, str]]:
    """Lines with a word that the longest word of ``telling`` may be a slip for."""
    word = max(_WORDS.findall(telling), key=len, default="")
    found: dict[str, tuple[int, str]] = {}
    for number, line in numbered:
        for other in _WORDS.findall(line[:MAX_LINE_CHARS]):
            if abs(len(other) - len(word)) <= 2:
                found.setdefault(other, (number, line))
        if len(found) >= MAX_WORDS:
            break
    close = difflib.get_close_matches(word, found, MAX_SHOWN, 0.75)
    return sorted(dict(found[one] for one in close).items())


def _clause(what: str, lines: list[tuple[int, str]]) -> str:
    shown = "\n".join(f"  {number}: {line[:MAX_LINE_CHARS]}" for number, line in lines)
    return f"; {what}:\n{shown}"
