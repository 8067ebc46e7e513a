"""Which files below a directory a search looks at, met one after the other through open directories.

The walk is our own: a library's goes by path, and could be led out of the boundary while it is on its way. And a file
is opened in the directory that is open anyway, which is most of what makes a search quick.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from openheim import ToolError
from openheim_tools_fs.globs import Glob
from openheim_tools_fs.repository import IgnoreFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from openheim.files import Files, Folder
    from openheim_tools_fs.ignoring import Rules

__all__ = ("FoundFiles", "Walk", "walk")

#: A directory is open on each level of the way, so the way has an end.
MAX_DEPTH = 200

#: Files of one directory that are given at a time.
MAX_TOGETHER = 64


class FoundFiles(NamedTuple):
    """Files that a walk met one after the other in a directory.

    Attributes:
        path: the directory's full path, with a slash behind it.
        names: the files', in order.
        folder: the directory, open until the walk goes on.
    """

    path: str
    names: list[str]
    folder: Folder


@dataclass(slots=True)
class _Level:
    """A directory on the way: its path with a slash behind it, what counts in it, and what is still to be met."""

    folder: Folder
    path: str
    rules: Rules
    #: The first one last: the name of a directory, or the names of files that stand together.
    waiting: list[str | list[str]]


@contextmanager
def walk(files: Files, top: str, *, glob: str | None, limit: int, check: Callable[[], None]) -> Iterator[Walk]:
    """A walk over the files below a directory that no ignore file names and that are not hidden.

    ``.gitignore`` counts with and without a repository around, as do ``.ignore`` files and those of the directories
    above. The directory itself counts even if it is hidden or ignored. Links are not followed. Names that are no text
    are passed over, as are directories that cannot be read, which are counted.

    Args:
        top: the canonical path of a directory.
        glob: if given, only files that match it, as a line of an ignore file would: ``*.py``, ``src/**/*.ts``; or with
            ``!`` in front, only the others.
        limit: most paths to meet, directories among them.
        check: called now and then; what it raises ends the walk.

    Raises:
        ToolError: the glob is not valid, or the directory cannot be read.
    """
    walked = Walk(files, None if glob is None else Glob(glob, check), limit, check)
    full = str(files.root / top)
    with files.folder(full) as folder:
        try:
            walked.enter(folder, full.rstrip("/") + "/", walked.ignore_files.rules_above(top))
            yield walked
        finally:
            walked.leave_all()


class Walk:
    """The files, in the order of their paths' components.

    Attributes:
        more: whether there were more paths than could be met.
        too_deep: whether directories were left out for being nested more than ``max_depth`` deep.
        unreadable: how many directories the system refused.
        ignore_files: what read the ignore files on the way.
    """

    max_depth = MAX_DEPTH

    def __init__(self, files: Files, glob: Glob | None, limit: int, check: Callable[[], None]) -> None:
        self.more = False
        self.too_deep = False
        self.unreadable = 0
        self.ignore_files = IgnoreFiles(files, check)
        self._glob = glob
        self._left = limit
        self._check = check
        self._levels: list[_Level] = []
        self._top_length = 0

    def __iter__(self) -> Iterator[FoundFiles]:
        while self._levels:
            level = self._levels[-1]
            if not level.waiting:
                self._levels.pop().folder.close()
                continue
            self._check()
            next_one = level.waiting.pop()
            if isinstance(next_one, str):
                self._enter_below(level, next_one)
            else:
                yield FoundFiles(level.path, next_one, level.folder)

    def enter(self, folder: Folder, path: str, above: Rules) -> None:
        """Begins with a directory.

        Args:
            path: its full path, with a slash behind it.
            above: the rules of the directory above it.
        """
        found = folder.names(limit=self._left + 1)
        if len(found) > self._left:
            self.more = True
            found.pop()
        self._left -= len(found)
        rules = self.ignore_files.own_rules(
            above, folder, frozenset([name for name, _ in found if name[0] == "."]), len(path)
        )
        self._top_length = self._top_length or len(path)
        entries = [
            (name, kind == "directory")
            for name, kind in found
            if name[0] != "." and kind in ("file", "directory") and (name.isprintable() or _is_text(name))
        ]
        # Which of the two is asked first makes no difference; the glob leaves the other less to do.
        if self._glob is not None:
            entries = self._glob.admitted(path[self._top_length :], entries)
        entries = rules.kept(path, entries, self._check)
        entries.sort(reverse=True)
        self._levels.append(_Level(folder, path, rules, _together(entries)))

    def leave_all(self) -> None:
        while self._levels:
            self._levels.pop().folder.close()

    def _enter_below(self, level: _Level, name: str) -> None:
        if len(self._levels) == self.max_depth:
            self.too_deep = True
            return
        try:
            folder = level.folder.folder(name)
        except ToolError:
            self.unreadable += 1
            return
        if folder is None:
            return
        try:
            self.enter(folder, f"{level.path}{name}/", level.rules)
        except ToolError:
            folder.close()
            self.unreadable += 1
        except BaseException:
            folder.close()
            raise


def _together(entries: list[tuple[str, bool]]) -> list[str | list[str]]:
    """Directories, and files that stand together; of what is given and of what is returned, the first one is last."""
    waiting: list[str | list[str]] = []
    for name, is_directory in entries:
        if is_directory:
            waiting.append(name)
        elif waiting and isinstance(group := waiting[-1], list) and len(group) < MAX_TOGETHER:
            group.append(name)
        else:
            waiting.append([name])
    for group in waiting:
        if isinstance(group, list):
            group.reverse()
    return waiting


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
