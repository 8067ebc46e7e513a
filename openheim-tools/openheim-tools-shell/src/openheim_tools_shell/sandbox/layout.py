"""What commands may reach, whatever keeps them to it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openheim import ToolError
from openheim_tools_shell.sandbox.links import Followed, follow, is_within
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
        writable: more folders and files that commands may write to. What does not exist is left out, and what commands
            could make lead elsewhere: see :meth:`check_writable`.
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
            ToolError: that is not possible, there is no work directory, or :meth:`check_writable` fails.
        """
        self.check_writable()
        try:
            for folder in (self.private_dir, self.temporary_dir, self.cache_dir):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as err:
            raise ToolError(f"the private folder for commands cannot be made: {err.strerror}: {err.filename}") from err
        if not self.work_dir.is_dir():
            raise ToolError(f"the work directory {self.work_dir} does not exist")

    def writable_places(self) -> list[str]:
        """Folders and files to write to, beside the private ones: no links, each once, the work directory first."""
        return list(dict.fromkeys(place.target for place in self._writable()[0]))

    def check_writable(self) -> None:
        """Refuses a place to write to that a link in another one leads out of all of them: a command may have made it.

        Raises:
            ToolError: there is one.
        """
        settled, unsettled = self._writable()
        inside = [place.target for place in settled]
        # First what is at fault: a link to a folder far up makes those in there doubtful, too.
        for place in sorted(unsettled, key=lambda place: not place.link_in(inside)):
            if not is_within(place.target, inside):
                link = place.link_in(inside) or place.links[0]
                raise ToolError(
                    f"commands may write to {place.name}, which the link {link} leads to {place.target}; but they can "
                    "change what that link lies in, so that it may be theirs",
                    hint="remove the link, or name the place that it leads to in [tools.shell] writable",
                )

    def hidden_places(self) -> list[str]:
        """Likewise what is hidden, but for what is to be written to."""
        writable = self.writable_places()
        return [path for path in _existing(self.hidden) if path not in writable]

    def in_writable(self, paths: Iterable[Path | str]) -> list[str]:
        """Those of the paths that lie in a folder to write to, and are not named as such themselves: no links, and only
        what exists."""
        writable = self.writable_places()
        return [path for path in _existing(paths) if path not in writable and is_within(path, writable)]

    def protected_places(self) -> list[str]:
        """What openheim is run from, where that lies in a folder to write to: outer folders first. Commands that could
        change it would be outside of the sandbox with the next one."""
        if "/" in self.writable_places():
            return []
        return sorted(self.in_writable(own_program()), key=lambda path: path.count("/"))

    def _writable(self) -> tuple[list[Followed], list[Followed]]:
        """The places to write to; those that commands cannot make lead elsewhere, and the others."""
        places = [place for place in map(follow, (self.work_dir, *self.writable)) if place.exists]
        folders = [place.target for place in places]
        settled = [place for place in places if not place.link_in(folders)]
        return settled, [place for place in places if place.link_in(folders)]


def _existing(paths: Iterable[Path | str]) -> list[str]:
    resolved = (os.path.realpath(path) for path in paths)
    return list(dict.fromkeys(path for path in resolved if os.path.exists(path)))
