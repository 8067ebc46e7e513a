"""The tool search: lines that match a pattern, in all files below a directory."""

from __future__ import annotations

import os
import time
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from openheim import TextBlock, ToolError, ToolResult, Turn, text_room, tool
from openheim_tools_fs.blocks import SAMPLE_BYTES, BinaryFileError, text_blocks
from openheim_tools_fs.matching import Matcher, PatternTooSlowError, TextTooSlowError, open_matcher
from openheim_tools_fs.report import Report, ReportFullError
from openheim_tools_fs.results import counted, optional_path, path_target, printable
from openheim_tools_fs.schemas import SEARCH
from openheim_tools_fs.threads import run_abandonable

if TYPE_CHECKING:
    from collections.abc import Callable

    from openheim.files import Files
    from openheim_tools_fs.walking import FoundFiles, Walk

__all__ = ("search",)

MAX_FILES = 50_000
#: Bound of the walk, directories and all.
MAX_PATHS = 4 * MAX_FILES
#: Time of one search.
MAX_SECS = 60.0
MAX_TEXT_BYTES = 100 * 1024
MAX_CONTEXT = 10
#: Characters of a path that a note shows.
MAX_NAMED = 100
SLOW_HINT = (
    "avoid repetition that fits one text in many ways, such as (a+)+ or .*.*; with openheim-tools-fs[re2] no pattern "
    "takes long"
)


@dataclass(slots=True, frozen=True)
class _Query:
    path: str
    pattern: str
    ignore_case: bool
    glob: str | None
    context: int
    names: bool
    max_bytes: int


@tool(
    description="Search files under a path for lines matching a regex pattern (ripgrep-style). Respects .gitignore and "
    "skips hidden and binary files. Returns matches as 'path:line: content', capped at 200 results.",
    parameters=SEARCH,
    kind="search",
    read_only=True,
    target=path_target,
)
async def search(
    pattern: str,
    turn: Turn,
    path: str | None = None,
    case_insensitive: bool = False,
    glob: str | None = None,
    context: int = 0,
    names: bool = False,
) -> ToolResult:
    if not pattern:
        raise ToolError("the pattern is empty")
    query = _Query(
        path=optional_path(path),
        pattern=pattern,
        ignore_case=case_insensitive,
        glob=glob if glob and glob.strip() else None,
        context=min(context, MAX_CONTEXT),
        names=names,
        max_bytes=text_room(turn, MAX_TEXT_BYTES),
    )
    text, locations = await run_abandonable(lambda check: _Search(turn.files, query, check).run())
    return ToolResult((TextBlock(text),), display={"title": f"Search for {pattern!r}", "locations": locations})


class _OutOfTimeError(Exception):
    """The search has taken long enough."""


class _Search:
    """One search, in a worker thread."""

    def __init__(self, files: Files, query: _Query, check: Callable[[], None]) -> None:
        self._files = files
        self._query = query
        self._ask = check
        self._due = time.monotonic() + MAX_SECS
        self._report = Report(query.context, query.max_bytes, self._shown)
        self._notes: list[str] = []
        self._searched = 0
        self._binary = 0
        self._unreadable = 0
        self._slow: list[str] = []

    def run(self) -> tuple[str, list[dict[str, Any]]]:
        top = self._files.resolve(self._query.path)
        full = str(self._files.root / top)
        found = self._files.info(full)
        if found is None:
            raise ToolError(f"{self._query.path!r} does not exist")
        if found.kind == "other":
            raise ToolError(f"{self._query.path!r} is a pipe, socket or device, not a file")
        query = self._query
        with open_matcher(query.pattern, ignore_case=query.ignore_case, check=self._check) as matcher:
            try:
                if found.kind == "directory":
                    self._search_below(top, matcher)
                elif self._query.names:
                    self._search_name(full, matcher)
                else:
                    with self._files.open_read(full) as file:
                        self._search_text(full, file.read(SAMPLE_BYTES), file, matcher)
            except ReportFullError as stop:
                self._notes.append(f"[{stop}; narrow the pattern or the path to see the others]")
            except _OutOfTimeError:
                stopped = f"stopped after {MAX_SECS:.0f} s and {counted(self._searched, 'file')}"
                hint = "search a smaller directory"
                if matcher.seconds > MAX_SECS / 2:
                    stopped += ": the pattern is slow"
                    hint = "narrow path or glob; with openheim-tools-fs[re2] no pattern is"
                self._notes.append(f"[{stopped}; {hint}]")
            except PatternTooSlowError:
                searched = counted(self._searched, "file")
                self._notes.append(f"[stopped after {searched}: the pattern takes too long; {SLOW_HINT}]")
        if self._slow:
            which = self._slow[0][-MAX_NAMED:] if len(self._slow) == 1 else counted(len(self._slow), "file")
            self._notes.append(f"[not searched to the end: {which}; the pattern takes too long; {SLOW_HINT}]")
        if self._unreadable:
            self._notes.append(f"[{counted(self._unreadable, 'file')} could not be read]")
        lines = self._report.lines if self._report.matches else [self._nothing_in(found.path)]
        return "\n".join((*lines, *self._notes)), self._report.locations

    def _check(self) -> None:
        self._ask()
        if time.monotonic() > self._due:
            raise _OutOfTimeError

    def _search_below(self, top: str, matcher: Matcher) -> None:
        from openheim_tools_fs.walking import walk  # What the first search needs, and no start.

        with walk(self._files, top, glob=self._query.glob, limit=MAX_PATHS, check=self._check) as walked:
            try:
                if self._query.names:
                    self._search_names(walked, matcher)
                else:
                    self._search_files(walked, matcher)
            finally:
                self._note_what_was_left_out(walked)

    def _note_what_was_left_out(self, walked: Walk) -> None:
        if walked.more:
            searched = counted(self._searched, "file")
            self._notes.append(f"[stopped after {searched}; search a smaller directory to see the others]")
        if walked.too_deep:
            self._notes.append(f"[what is more than {walked.max_depth} directories deep was not searched]")
        if walked.unreadable:
            self._notes.append(f"[{counted(walked.unreadable, 'directory')} could not be read]")
        if shortened := walked.ignore_files.shortened:
            which = printable(shortened[0])[-MAX_NAMED:]
            if others := len(shortened) - 1:
                which += f" and {counted(others, 'other ignore file')}"
            self._notes.append(f"[of {which} only a part counts, for too many or too long lines]")

    def _search_names(self, walked: Walk, matcher: Matcher) -> None:
        for found in walked:
            for name in found.names:
                if self._searched == MAX_FILES:
                    walked.more = True
                    return
                self._search_name(found.path + name, matcher)

    def _search_files(self, walked: Walk, matcher: Matcher) -> None:
        from openheim_tools_fs.sifting import sifted

        with closing(sifted(iter(walked), matcher.needed, self._check)) as sifting:
            for found, doubtful in sifting:
                if not doubtful and self._searched + len(found.names) <= MAX_FILES:
                    self._searched += len(found.names)  # As goes for most: texts, and nothing in them.
                elif not self._search_each(found, frozenset(doubtful), matcher):
                    walked.more = True
                    return

    def _search_each(self, found: FoundFiles, doubtful: frozenset[int], matcher: Matcher) -> bool:
        """Whether all of them could be searched."""
        for place, name in enumerate(found.names):
            if self._searched == MAX_FILES:
                return False
            if place in doubtful:
                self._check()
                self._search_file(found, name, matcher)
            else:
                self._searched += 1
        return True

    def _search_name(self, path: str, matcher: Matcher) -> None:
        self._searched += 1
        try:
            matches = any(True for _ in matcher.hits(self._shown(path).encode()))
        except TextTooSlowError:
            self._slow.append(self._shown(path))
            return
        if matches:
            self._report.add_name(path)

    def _search_file(self, found: FoundFiles, name: str, matcher: Matcher) -> None:
        try:
            opened = found.folder.open_file(name, size=SAMPLE_BYTES)
        except ToolError:
            self._unreadable += 1
            return
        if opened is None:
            return
        data, rest = opened
        with rest or nullcontext():
            self._search_text(found.path + name, data, rest, matcher)

    def _search_text(self, path: str, first: bytes, rest: BinaryIO | None, matcher: Matcher) -> None:
        self._searched += 1
        line = 1
        try:
            for block, lines_before in text_blocks(first, rest, self._check):
                line += lines_before
                self._report.add_hits(path, line, block, matcher.hits(block))
        except BinaryFileError:
            self._binary += 1
        except TextTooSlowError:
            self._slow.append(self._shown(path))
        except OSError:
            self._unreadable += 1

    def _shown(self, path: str) -> str:
        """The path as the model can hand it to the other tools: relative to the directory they start from."""
        start = f"{self._files.cwd}{os.sep}"
        return printable(path[len(start) :] if path.startswith(start) else os.path.relpath(path, self._files.cwd))

    def _nothing_in(self, top: str) -> str:
        searched = counted(self._searched, "name" if self._query.names else "file")
        glob = f" matching {self._query.glob!r}" if self._query.glob else ""
        binary = f", {counted(self._binary, 'binary file')} skipped" if self._binary else ""
        return f"No matches for {self._query.pattern!r} in {printable(top)} ({searched}{glob} searched{binary})"
