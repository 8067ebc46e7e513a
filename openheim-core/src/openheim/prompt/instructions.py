"""``AGENTS.md``: what people want every agent to know, about themselves and about a project.

Taken are the user's own, in ``OPENHEIM_HOME``, and the nearest one from the working directory up to the repository's
root. The project's is read whether the folder is trusted or not: it is a text like any other that the agent reads
there, and changes nothing in what it may do.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from openheim.config.project import repository_root
from openheim.prompt.texts import Text, TextCache, read_own_text, read_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ("FILE_NAME", "Instructions")

FILE_NAME = "AGENTS.md"


class Instructions:
    """The files that apply to one working directory.

    Args:
        home: the user's own folder.
        work_dir: the session's boundary; where there is no repository, nothing above it is looked at.
        cwd: the working directory.
    """

    def __init__(self, home: Path, work_dir: Path, cwd: Path, cache: TextCache) -> None:
        self._own = home / FILE_NAME
        self._top = repository_root(cwd) or (work_dir if cwd.is_relative_to(work_dir) else cwd)
        self._places = _up_to(cwd, self._top)
        self._cache = cache

    def texts(self) -> Iterator[tuple[Path, Text]]:
        """Path and text of each file there is, the user's own first."""
        own = self._cache.text(self._own, read_own_text)
        if own is not None:
            yield self._own, own
        for folder in self._places:
            path = folder / FILE_NAME
            text = self._cache.text(path, self._read, within=self._top)
            if text is None:
                continue
            if not (own is not None and os.path.samefile(path, self._own)):
                yield path, text
            if text.content is not None:
                return

    def _read(self, path: Path) -> Text:
        from openheim.errors import ToolError
        from openheim.files import Files

        try:
            return read_text(Files(self._top, path.parent), FILE_NAME)
        except ToolError as err:
            return Text(None, str(err))


def _up_to(cwd: Path, top: Path) -> list[Path]:
    places = [cwd]
    while places[-1] != top and places[-1] != places[-1].parent:
        places.append(places[-1].parent)
    return places
