"""Which files below a directory a search looks at."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ("Found", "walk")


@dataclass(slots=True, frozen=True)
class Found:
    """Full paths in a fixed order, directories among them, and whether there were more than could be taken."""

    paths: tuple[str, ...]
    more: bool


def walk(top: Path, *, glob: str | None, limit: int, check: Callable[[], None]) -> Found:
    """The paths below a directory that no ignore file names and that are not hidden.

    ``.gitignore`` counts with and without a repository around, as do ``.ignore`` files and those of the directories
    above. The directory itself counts even if it is hidden or ignored. Links are not followed.

    Args:
        top: an existing directory.
        glob: if given, only files that match it, as a line of an ignore file would: ``*.py``, ``src/**/*.ts``; or with
            ``!`` in front, only the others. One that is not valid matches nothing.
        limit: most paths to take.
        check: called for each path; what it raises ends the walk.
    """
    wanted = None if glob is None else set(itertools.islice(_paths(top, _overrides(glob), check), limit))
    paths = (path for path in _paths(top, None, check) if wanted is None or path in wanted)
    taken = list(itertools.islice(paths, limit))
    return Found(tuple(sorted(taken, key=_components)), more=next(paths, None) is not None)


def _components(path: str) -> list[str]:
    return path.split(os.sep)


def _overrides(glob: str) -> list[str]:
    # rignore drops a glob that is not valid, and alone it would then filter nothing; with another, nothing passes.
    return [glob] if glob.startswith("!") else [glob, "/no/such/\x01name"]


def _paths(top: Path, overrides: list[str] | None, check: Callable[[], None]) -> Iterator[str]:
    # An override beats the ignore files, so walks with and without one are needed to have both.
    import rignore

    walker = iter(rignore.walk(top, require_git=False, follow_links=False, overrides=overrides))
    while True:
        check()
        try:
            path = next(walker)
        except StopIteration:
            return
        except (OSError, ValueError):
            continue  # A directory that may not be read, or a name that is no text.
        if path is not None and path != top:
            yield str(path)
