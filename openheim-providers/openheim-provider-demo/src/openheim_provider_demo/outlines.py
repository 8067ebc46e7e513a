"""What a file is about, told from its text by simple rules."""

from __future__ import annotations

import re

__all__ = ("gist", "outline")

_LONGEST = 200
_MOST_HEADINGS = 20

_NAME = re.compile(r"""^\s*["']?name["']?\s*[=:]\s*["']([^"'\n]+)["']""", re.MULTILINE)
_DESCRIPTION = re.compile(r"""^\s*["']?description["']?\s*[=:]\s*(["'])((?:\\.|(?!\1)[^\n])+)\1""", re.MULTILINE)
_MODULE = re.compile(r"^module\s+(\S+)", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$")
_DEFINITION = re.compile(
    r"^(?:export\s+|pub\s+|async\s+)*(?:class|def|function|fn|struct|enum|trait|interface)\s+(\w+)"
)


def gist(path: str, text: str) -> str:
    """One line: name and description of a manifest, else title and first sentence."""
    name = path.rpartition("/")[2]
    if name.endswith((".toml", ".json", ".cfg", ".mod")):
        declared = _declared(text)
        if declared:
            return declared
    title, sentence = _title(text), _first_sentence(text, markup=name.lower().endswith((".md", ".rst", "readme")))
    return ". ".join(part for part in dict.fromkeys((title, sentence)) if part) or "no text that says what it is"


def outline(path: str, text: str) -> list[str]:
    """Headings of a text, or names defined in a source file, in order."""
    found = []
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        match = None if fenced else (_HEADING if path.endswith(".md") else _DEFINITION).match(line)
        if match is not None:
            found.append(_plain(match[1]))
    return found[:_MOST_HEADINGS]


def _declared(text: str) -> str:
    name = _NAME.search(text) or _MODULE.search(text)
    description = _DESCRIPTION.search(text)
    if name is None:
        return ""
    return f"{name[1]}. {_cut(description[2])}" if description is not None else name[1]


def _title(text: str) -> str:
    for line in text.splitlines()[:40]:
        heading = _HEADING.match(line)
        if heading is not None:
            return _cut(_plain(heading[1]))
    return ""


def _first_sentence(text: str, *, markup: bool) -> str:
    """The first sentence of the first paragraph that is prose: no heading, badge, markup or fence."""
    paragraph: list[str] = []
    for line in text.splitlines()[:200]:
        words = line.strip().strip('"').strip()
        prose = (
            bool(words)
            and not _HEADING.match(words)
            and not (markup and words.startswith(("<", "![", "[!", "```", "|", "=", "-")))
        )
        if prose:
            paragraph.append(words)
        elif paragraph:
            break
    joined = _plain(" ".join(paragraph))
    return _cut(re.split(r"(?<=[.!?])\s", joined, maxsplit=1)[0])


def _plain(text: str) -> str:
    """Without the marks of links, code and emphasis."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"[`*]", "", text).strip()


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
