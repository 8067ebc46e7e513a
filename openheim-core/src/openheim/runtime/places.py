"""What a session's directory means: its boundary, its project, and the files of its prompt."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from openheim.errors import ConfigError
from openheim.files import Files
from openheim.permissions import parse_rule
from openheim.prompt import PromptBuilder
from openheim.prompt.texts import TextCache

if TYPE_CHECKING:
    from openheim.config.load import LoadedConfig
    from openheim.permissions import Rule

__all__ = ("PLACE_SECS", "Place", "Places", "current_directory")

#: How long what was found about a directory counts: sessions that start together look at the disk once.
PLACE_SECS = 0.05

#: Directories that are remembered.
_KEPT = 64


class Place(NamedTuple):
    """A directory for sessions, which they share.

    Args:
        cwd: without links.
        files: what its tools may reach.
        prompt: makes system texts without skills; sessions have one of their own from it.
        moved: what to tell whoever asked for a directory that tools may not reach; "" if this is the one.
        denied: what its project forbids, where that is trusted and another one than the settings are from.
    """

    cwd: Path
    files: Files
    prompt: PromptBuilder
    moved: str = ""
    denied: tuple[Rule, ...] = ()


class Places:
    """Looks at directories, and remembers them for a moment."""

    def __init__(self, loaded: LoadedConfig) -> None:
        self._loaded = loaded
        self._texts = TextCache()
        self._known: dict[str, tuple[float, Place]] = {}

    def at(self, directory: Path) -> Place:
        """The place of sessions in this directory; in the configured ``work_dir`` if that does not hold it.

        Raises:
            ConfigError: it does not exist, or cannot be used.
        """
        key = str(directory)
        now = time.monotonic()
        found = self._known.get(key)
        if found is not None and found[0] > now:
            return found[1]
        place = self._look(directory)
        self._known.pop(key, None)
        if len(self._known) >= _KEPT:
            self._known.pop(next(iter(self._known)))
        if directory.is_absolute():
            self._known[key] = now + PLACE_SECS, place
        return place

    def _look(self, directory: Path) -> Place:
        if not directory.is_dir():
            raise ConfigError(f"the directory {directory} does not exist", hint="name one that does")
        loaded = self._loaded
        boundary, cwd = loaded.work_dir(directory), directory.resolve()
        moved = ""
        if not cwd.is_relative_to(boundary):
            moved = f"the directory {cwd} is outside of the work directory; the session works in {boundary}"
            cwd = boundary
        prompt = PromptBuilder(loaded.data_dir, boundary, cwd, trusted=loaded.trusts(cwd), cache=self._texts)
        denied = tuple(map(parse_rule, loaded.denied_elsewhere(cwd)))
        return Place(cwd, Files(boundary, cwd), prompt, moved, denied)


def current_directory() -> Path:
    """The directory of the process.

    Raises:
        ConfigError: it was deleted.
    """
    try:
        return Path(os.getcwd())
    except OSError as err:
        raise ConfigError("the current directory does not exist any more", hint="change to one that does") from err
