"""What commands may reach, whatever keeps them to it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openheim import ToolError
from openheim_tools_shell.sandbox.program import own_program

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ("Layout",)


@dataclass(frozen=True, slots=True)
class Layout:
    """Folders and files, and what commands may do with them. What is not named can be read and run.

    Args:
        work_dir: where commands may write. It goes before whatever else says something of the same folder.
        private_dir: a folder of the session's own, with room for temporary files and caches of commands.
        writable: more folders and files that commands may write to. What does not exist is left out.
        hidden: folders and files whose contents commands cannot read. What does not exist is left out.
        network: whether there is one.
    """

    work_dir: Path
    private_dir: Path
    writable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    network: bool = True

    @property
    def temporary_dir(self) -> Path:
        return self.private_dir / "tmp"

    @property
    def cache_dir(self) -> Path:
        return self.private_dir / "cache"

    def prepare(self) -> None:
        """Makes the private folders.

        Raises:
            ToolError: that is not possible, or there is no work directory.
        """
        try:
            for folder in (self.private_dir, self.temporary_dir, self.cache_dir):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as err:
            raise ToolError(f"the private folder for commands cannot be made: {err.strerror}: {err.filename}") from err
        if not self.work_dir.is_dir():
            raise ToolError(f"the work directory {self.work_dir} does not exist")

    def writable_places(self) -> list[str]:
        """Folders and files to write to, beside the private ones: no links, each once, the work directory first."""
        return _existing((self.work_dir, *self.writable))

    def hidden_places(self) -> list[str]:
        """Likewise what is hidden, but for what is to be written to."""
        writable = self.writable_places()
        return [path for path in _existing(self.hidden) if path not in writable]

    def in_writable(self, paths: Iterable[Path | str]) -> list[str]:
        """Those of the paths that lie in a folder to write to, and are not named as such themselves: no links, and only
        what exists."""
        writable = self.writable_places()
        return [path for path in _existing(paths) if path not in writable and any(_is_in(path, it) for it in writable)]

    def protected_places(self) -> list[str]:
        """What openheim is run from, where that lies in a folder to write to: outer folders first. Commands that could
        change it would be outside of the sandbox with the next one."""
        if "/" in self.writable_places():
            return []
        return sorted(self.in_writable(own_program()), key=lambda path: path.count("/"))


def _is_in(path: str, folder: str) -> bool:
    return path.startswith(os.path.join(folder, ""))


def _existing(paths: Iterable[Path | str]) -> list[str]:
    resolved = (os.path.realpath(path) for path in paths)
    return list(dict.fromkeys(path for path in resolved if os.path.exists(path)))
