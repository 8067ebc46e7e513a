"""The tool search: lines that match a pattern, in all files below a directory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openheim import TextBlock, ToolError, ToolResult, Turn, tool
from openheim_tools_fs.blocks import BinaryFileError, text_blocks
from openheim_tools_fs.matching import Matcher, open_matcher
from openheim_tools_fs.report import Report, ReportFullError
from openheim_tools_fs.results import counted, optional_path, path_target, printable
from openheim_tools_fs.schemas import SEARCH
from openheim_tools_fs.threads import run_abandonable
from openheim_tools_fs.walking import walk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from openheim.files import Files

__all__ = ("search",)

MAX_FILES = 50_000
#: Bound of the walk, directories and all.
MAX_PATHS = 4 * MAX_FILES
MAX_TEXT_BYTES = 100 * 1024
MAX_CONTEXT = 10
#: Room that the notes at the end may need.
NOTE_BYTES = 1024


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
        max_bytes=max(1024, min(MAX_TEXT_BYTES, turn.result_limit_bytes - NOTE_BYTES)),
    )
    text, locations = await run_abandonable(lambda check: _Search(turn.files, query, check).run())
    return ToolResult((TextBlock(text),), display={"title": f"Search for {pattern!r}", "locations": locations})


class _Search:
    """One search, in a worker thread."""

    def __init__(self, files: Files, query: _Query, check: Callable[[], None]) -> None:
        self._files = files
        self._query = query
        self._check = check
        self._report = Report(query.context, query.max_bytes, self._shown)
        self._visit = self._search_name if query.names else self._search_file
        self._notes: list[str] = []
        self._searched = 0
        self._binary = 0
        self._unreadable = 0

    def run(self) -> tuple[str, list[dict[str, Any]]]:
        top = self._files.root / self._files.resolve(self._query.path)
        found = self._files.info(str(top))
        if found is None:
            raise ToolError(f"{self._query.path!r} does not exist")
        if found.kind == "other":
            raise ToolError(f"{self._query.path!r} is a pipe, socket or device, not a file")
        with open_matcher(self._query.pattern, ignore_case=self._query.ignore_case) as matcher:
            try:
                if found.kind == "directory":
                    self._search_below(top, matcher)
                else:
                    self._visit(str(top), matcher)
            except ReportFullError as full:
                self._notes.append(f"[{full}; narrow the pattern or the path to see the others]")
        if self._unreadable:
            self._notes.append(f"[{counted(self._unreadable, 'file')} could not be read]")
        lines = self._report.lines if self._report.matches else [self._nothing_in(found.path)]
        return "\n".join((*lines, *self._notes)), self._report.locations

    def _search_below(self, top: Path, matcher: Matcher) -> None:
        walked = walk(top, glob=self._query.glob, limit=MAX_PATHS, check=self._check)
        more = walked.more
        for path in walked.paths:
            self._check()
            if self._searched == MAX_FILES:
                more = True
                break
            self._visit(path, matcher)
        if more:
            searched = counted(self._searched, "file")
            self._notes.append(f"[stopped after {searched}; search a smaller directory to see the others]")

    def _search_name(self, path: str, matcher: Matcher) -> None:
        self._searched += 1
        if not any(True for _ in matcher.hits(self._shown(path).encode())):
            return
        try:
            found = self._files.info(path)
        except ToolError:
            return  # A link that leads nowhere, or out.
        if found is not None and found.kind == "file":
            self._report.add_name(path)

    def _search_file(self, path: str, matcher: Matcher) -> None:
        try:
            file = self._files.open_found(path)
        except ToolError:
            self._unreadable += 1
            return
        if file is None:
            return
        self._searched += 1
        line = 1
        with file:
            try:
                for block in text_blocks(file, self._check):
                    self._report.add_hits(path, line, block, matcher.hits(block))
                    line += block.count(b"\n")
            except BinaryFileError:
                self._binary += 1
            except OSError:
                self._unreadable += 1

    def _shown(self, path: str) -> str:
        """The path as the model can hand it to the other tools: relative to the directory they start from."""
        return printable(os.path.relpath(path, self._files.cwd))

    def _nothing_in(self, top: str) -> str:
        searched = counted(self._searched, "name" if self._query.names else "file")
        glob = f" matching {self._query.glob!r}" if self._query.glob else ""
        binary = f", {counted(self._binary, 'binary file')} skipped" if self._binary else ""
        return f"No matches for {self._query.pattern!r} in {printable(top)} ({searched}{glob} searched{binary})"
