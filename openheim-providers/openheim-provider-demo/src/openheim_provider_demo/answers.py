"""The sentences of the answers, from what the tools said."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from openheim_provider_demo.outlines import gist, outline

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

__all__ = (
    "directory",
    "entries",
    "failed",
    "file_summary",
    "file_text",
    "gist",
    "hello",
    "help_text",
    "listing",
    "matches",
    "missing_tool",
    "not_understood",
    "recalled",
    "remembered",
    "replaced",
    "wrote",
)

WHAT_I_AM = "I am openheim's demo provider: a small set of rules, not a language model."
HOW_TO_GET_A_MODEL = (
    "For a real model, set the key of a provider that is installed (openheim doctor says which), or configure one "
    "with openheim init."
)

#: Which package brings a tool.
_PACKAGES = {
    "list_dir": "openheim-tools-fs",
    "read_file": "openheim-tools-fs",
    "search": "openheim-tools-fs",
    "write_file": "openheim-tools-fs",
    "edit_file": "openheim-tools-fs",
    "remember": "openheim-memory",
    "search_memory": "openheim-memory",
}

#: What can be asked for, with the tool that it takes.
_EXAMPLES = (
    ("What is in this directory?", "list_dir"),
    ("List the files in docs", "list_dir"),
    ("Read README.md", "read_file"),
    ("Summarise README.md", "read_file"),
    ("Search for Linux", "search"),
    ('Write "some text" to notes.txt', "write_file"),
    ('Replace "some" with "more" in notes.txt', "edit_file"),
    ("Remember that the build runs on Linux", "remember"),
    ("What do you remember about the build?", "search_memory"),
)

_MOST_NAMES = 60
_MOST_MATCHES = 20
_MOST_LINES = 60
_LONGEST_LINE = 240


def hello(tools: Collection[str]) -> str:
    return f"Hello. {help_text(tools)}"


def help_text(tools: Collection[str]) -> str:
    return f"{WHAT_I_AM} I understand requests like these:\n\n{_examples(tools)}\n\n{HOW_TO_GET_A_MODEL}"


def not_understood(tools: Collection[str]) -> str:
    return (
        f"I did not understand that. {WHAT_I_AM} I understand requests like these:\n\n"
        f"{_examples(tools)}\n\n{HOW_TO_GET_A_MODEL}"
    )


def _examples(tools: Collection[str]) -> str:
    return "\n".join(
        f"- {example}" if tool in tools else f"- {example} (needs {_PACKAGES[tool]})" for example, tool in _EXAMPLES
    )


def missing_tool(tool: str) -> str:
    return (
        f"That takes the tool {tool}, which this session does not offer. It comes with {_PACKAGES[tool]} "
        f"(pip install {_PACKAGES[tool]}); plan mode and the settings may leave it out."
    )


def failed(tool: str, said: str) -> str:
    """What a failed or denied call answered, in its own words."""
    words = " ".join(said.split()).removeprefix("Error: ")
    return f"{tool} did not succeed: {_short(words, 600) or 'it gave no reason'}"


def entries(listing_text: str) -> list[str]:
    """The names in what ``list_dir`` answered: folders end in ``/``, links go on with `` -> target``."""
    lines = (line.strip() for line in listing_text.splitlines())
    # A remark of the tool, such as that there is more, stands in brackets.
    return [line for line in lines if line and not (line[0] in "[(" and line[-1] in "])")]


def listing(path: str | None, text: str) -> str:
    names = entries(text)
    if not names:
        return f"{_place(path)} is empty."
    shown = "\n".join(f"- {name}" for name in names[:_MOST_NAMES])
    return f"{_place(path)} holds {_counts(names)}:\n\n{shown}{_more(len(names) - _MOST_NAMES, 'entries')}"


def directory(path: str | None, names: Sequence[str], gists: Mapping[str, str], *, guessed: bool) -> str:
    paragraphs = []
    if guessed:
        paragraphs.append(f"I did not quite understand that. {WHAT_I_AM} This is what I can say about the files:")
    if not names:
        return "\n\n".join((*paragraphs, f"{_place(path)} is empty."))
    folders = [name.rstrip("/") for name in names if name.endswith("/")]
    files = [name for name in names if not name.endswith("/")]
    paragraphs.append(f"{_place(path)} holds {_counts(names)}.")
    rows = [f"{label}: {_row(some)}" for label, some in (("Folders", folders), ("Files", files)) if some]
    paragraphs.append("\n".join(rows))
    if gists:
        paragraphs.append("\n".join(f"{name}: {what}" for name, what in gists.items()))
    return "\n\n".join(paragraphs)


def file_text(path: str, text: str) -> str:
    lines = text.splitlines()
    if not lines:
        return f"{path} is empty."
    shown = "\n".join(_short(line, _LONGEST_LINE) for line in lines[:_MOST_LINES])
    fence = "`" * max(3, 1 + max((len(ticks) for ticks in re.findall(r"`+", shown)), default=0))
    return f"{path}:\n\n{fence}\n{shown}\n{fence}{_more(len(lines) - _MOST_LINES, 'lines')}"


def file_summary(path: str, text: str) -> str:
    if not text.strip():
        return f"{path} is empty."
    lines, words = _count(len(text.splitlines()), "line", "lines"), _count(len(text.split()), "word", "words")
    parts = [f"{path} has {lines} and {words}.", f"In short: {gist(path, text)}"]
    headings = outline(path, text)
    if headings:
        parts.append(f"Its parts: {_row(headings)}")
    return "\n".join(parts)


def matches(words: str, path: str | None, text: str) -> str:
    found = [line for line in text.splitlines() if re.match(r".+?:\d+:", line)]
    where = f"in {path}" if path else "here"
    if not found:
        return f'Nothing {where} contains "{words}".'
    files = dict.fromkeys(re.split(r":\d+:", line, maxsplit=1)[0] for line in found)
    shown = "\n".join(f"- {_short(line, _LONGEST_LINE)}" for line in found[:_MOST_MATCHES])
    lines, verb = _count(len(found), "line", "lines"), "contains" if len(found) == 1 else "contain"
    return (
        f'{lines} in {_count(len(files), "file", "files")} {where} {verb} "{words}":\n\n'
        f"{shown}{_more(len(found) - _MOST_MATCHES, 'lines')}"
    )


def wrote(path: str, text: str) -> str:
    return f"Done: {path} holds {_count(len(text.encode('utf-8', 'replace')), 'byte', 'bytes')} now."


def replaced(path: str, old: str, new: str) -> str:
    return f'Done: "{_short(old, 80)}" is "{_short(new, 80)}" in {path} now.'


def remembered(note: str) -> str:
    return f"Noted: {note}"


def recalled(topic: str | None, text: str) -> str:
    about = f" about {topic}" if topic else ""
    return f"This is what I find in memory{about}:\n\n{text.strip()}"


def _place(path: str | None) -> str:
    return "This directory" if path is None else path


def _counts(names: Sequence[str]) -> str:
    folders = sum(name.endswith("/") for name in names)
    files = len(names) - folders
    parts = []
    if folders:
        parts.append(_count(folders, "folder", "folders"))
    if files:
        parts.append(_count(files, "file", "files"))
    return " and ".join(parts)


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _row(names: Sequence[str]) -> str:
    row = ", ".join(names[:_MOST_NAMES])
    return row if len(names) <= _MOST_NAMES else f"{row} and {len(names) - _MOST_NAMES:,} more"


def _more(number: int, what: str) -> str:
    return f"\n\n({number:,} more {what} are not shown.)" if number > 0 else ""


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
