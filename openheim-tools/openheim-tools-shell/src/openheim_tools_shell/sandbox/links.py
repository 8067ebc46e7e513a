"""Where a path leads, and the links on its way."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ("Followed", "follow", "is_within")

#: As the kernel has it: a path that passes more leads nowhere.
_MOST_LINKS = 40


class Followed(NamedTuple):
    """Where a path leads.

    Args:
        name: the path as it was written.
        target: the same place without links.
        links: the links on the way, each by the folder that it really lies in.
    """

    name: str
    target: str
    links: tuple[str, ...]

    @property
    def exists(self) -> bool:
        return os.path.exists(self.target)

    def link_in(self, folders: Sequence[str]) -> str:
        """The first link on the way that lies in one of the folders, ``""`` if none does: who can write there decides
        where the path leads."""
        return next((link for link in self.links if is_within(os.path.dirname(link), folders)), "")


def follow(path: str | os.PathLike[str]) -> Followed:
    """Resolves a path, which need not exist, as ``os.path.realpath`` does."""
    name = os.path.join(os.getcwd(), path)
    current, links = "/", list[str]()
    ahead = name.split("/")[::-1]
    while ahead:
        part = ahead.pop()
        if part in ("", "."):
            continue
        if part == "..":
            current = os.path.dirname(current)
            continue
        place = os.path.join(current, part)
        try:
            target = os.readlink(place) if len(links) < _MOST_LINKS else ""
        except OSError:
            target = ""
        if not target:
            current = place
            continue
        links.append(place)
        if target.startswith("/"):
            current = "/"
        ahead += target.split("/")[::-1]
    return Followed(name, current, tuple(links))


def is_within(path: str, folders: Iterable[str]) -> bool:
    """Whether the path is one of the folders or lies in one. None of them has links."""
    return any(path == folder or path.startswith(os.path.join(folder, "")) for folder in folders)
