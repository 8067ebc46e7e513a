"""The project's Markdown pages, taken apart."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^(?P<fence>`{3,})(?P<info>[^\n]*)\n(?P<text>.*?)^(?P=fence)[ \t]*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block. ``info`` is what follows the fence: a language, and perhaps words for us."""

    page: str
    line: int
    info: str
    text: str

    @property
    def language(self) -> str:
        return self.info.partition(" ")[0]

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """Paths from the checkout's root: the pages at the root, in ``docs`` and of each distribution."""
    patterns = ("*.md", "docs/**/*.md", "openheim-*/README.md", "openheim-*/*/README.md")
    return sorted(path.relative_to(CHECKOUT).as_posix() for pattern in patterns for path in CHECKOUT.glob(pattern))


def blocks(page: str) -> list[Block]:
    text = (CHECKOUT / page).read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, found.start()) + 1, found["info"].strip(), found["text"])
        for found in _FENCE.finditer(text)
    ]


def links(page: str) -> list[str]:
    """Targets of the links outside code, as they are written."""
    return _LINK.findall(_FENCE.sub("", (CHECKOUT / page).read_text(encoding="utf-8")))
