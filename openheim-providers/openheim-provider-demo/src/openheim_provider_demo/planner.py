"""Plans: which tools a request takes, one step after the other, and the answer in the end.

A plan is a generator. It yields the calls of a step and is sent what came of each; what it returns is the answer.
Nothing is kept between two model calls: the plan runs from its beginning each time, fed with the results that the
conversation holds, up to the first step whose calls have not been made.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from openheim_provider_demo import answers
from openheim_provider_demo.requests import (
    Describe,
    Hello,
    Help,
    ListFiles,
    ReadFile,
    Recall,
    Remember,
    ReplaceText,
    Search,
    SummariseFile,
    SummariseText,
    WriteFile,
)
from openheim_provider_demo.turns import Call
from openheim_provider_demo.understanding import understand

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Sequence

    from openheim_provider_demo.requests import Request
    from openheim_provider_demo.turns import CurrentTurn

__all__ = ("next_step",)

#: Files that say what a directory is about: the first of each row that is there is read.
_TELLING_FILES = (
    ("README.md", "README.rst", "README.txt", "README", "readme.md"),
    ("pyproject.toml", "package.json", "Cargo.toml", "go.mod", "setup.cfg"),
)

#: The memory tool wants words to look for; these are in nearly every note.
_COMMON_WORDS = "a an and are be for has i in is it my not of on our that the this to use we with you"


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What came of a call: its text, or the sentence that says why there is none."""

    text: str = ""
    problem: str = ""


_Plan: TypeAlias = "Generator[tuple[Call, ...], list[_Outcome], str]"


def next_step(turn: CurrentTurn, tools: Collection[str]) -> tuple[Call, ...] | str:
    """The calls to ask for now, or the answer."""
    plan = _plan_all(understand(turn.prompt), tools)
    try:
        calls = next(plan)
        while True:
            outcomes = [_outcome(call, turn, tools) for call in calls]
            waiting = tuple(call for call, outcome in zip(calls, outcomes, strict=True) if outcome is None)
            if waiting:
                return waiting
            calls = plan.send([outcome for outcome in outcomes if outcome is not None])
    except StopIteration as end:
        return str(end.value)


def _outcome(call: Call, turn: CurrentTurn, tools: Collection[str]) -> _Outcome | None:
    if call.tool not in tools:
        return _Outcome(problem=answers.missing_tool(call.tool))
    result = turn.take_result(call)
    if result is None:
        return None
    return _Outcome(problem=answers.failed(call.tool, result.text)) if result.is_error else _Outcome(result.text)


def _plan_all(requests: Sequence[Request], tools: Collection[str]) -> _Plan:
    if not requests:
        return answers.not_understood(tools)
    parts: dict[str, None] = {}
    for request in requests:
        part = yield from _plan(request, tools)
        parts[part] = None  # What would be said twice, such as a missing tool, is said once.
    return "\n\n".join(parts)


def _plan(request: Request, tools: Collection[str]) -> _Plan:
    match request:
        case ListFiles():
            (listing,) = yield (Call("list_dir", _at(request.path)),)
            return listing.problem or answers.listing(request.path, listing.text)
        case Describe():
            return (yield from _describe(request, tools))
        case ReadFile():
            (file,) = yield (Call("read_file", {"path": request.path}),)
            return file.problem or answers.file_text(request.path, file.text)
        case SummariseFile():
            (file,) = yield (Call("read_file", {"path": request.path}),)
            return file.problem or answers.file_summary(request.path, file.text)
        case SummariseText():
            return answers.file_summary("Standard input", request.text)
        case Search():
            (found,) = yield (Call("search", {"pattern": _literal(request.words), **_at(request.path)}),)
            return found.problem or answers.matches(request.words, request.path, found.text)
        case WriteFile():
            (written,) = yield (Call("write_file", {"path": request.path, "content": request.text}),)
            return written.problem or answers.wrote(request.path, request.text)
        case ReplaceText():
            change = {"path": request.path, "old_string": request.old, "new_string": request.new}
            everywhere = {"replace_all": True} if request.everywhere else {}
            (edited,) = yield (Call("edit_file", {**change, **everywhere}),)
            return edited.problem or answers.replaced(request.path, request.old, request.new)
        case Remember():
            (kept,) = yield (Call("remember", {"content": request.note}),)
            return kept.problem or answers.remembered(request.note)
        case Recall():
            (found,) = yield (Call("search_memory", {"query": request.topic or _COMMON_WORDS}),)
            return found.problem or answers.recalled(request.topic, found.text)
        case Help():
            return answers.help_text(tools)
        case Hello():
            return answers.hello(tools)


def _describe(request: Describe, tools: Collection[str]) -> _Plan:
    (listing,) = yield (Call("list_dir", _at(request.path)),)
    if listing.problem:
        return listing.problem
    names = answers.entries(listing.text)
    telling = [next((name for name in row if name in names), None) for row in _TELLING_FILES]
    reading = [name for name in telling if name is not None and "read_file" in tools]
    gists = {}
    if reading:
        prefix = f"{request.path.rstrip('/')}/" if request.path else ""
        files = yield tuple(Call("read_file", {"path": prefix + name}) for name in reading)
        gists = {name: file.problem or answers.gist(name, file.text) for name, file in zip(reading, files, strict=True)}
    return answers.directory(request.path, names, gists, guessed=request.guessed)


def _at(path: str | None) -> dict[str, str]:
    return {} if path is None else {"path": path}


def _literal(words: str) -> str:
    """A regular expression that finds exactly these words."""
    return re.sub(r"([.^$*+?{}\[\]\\|()])", r"\\\1", words)
