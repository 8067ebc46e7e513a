"""Which files of a walk have to be looked at closely; the others are read here and passed over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openheim_tools_fs.sieve import Sieve

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from openheim_tools_fs.walking import FoundFiles

__all__ = ("sifted",)


def sifted(found: Iterable[FoundFiles], needed: bytes) -> Iterator[tuple[FoundFiles, Sequence[int]]]:
    """The files, in the order of the walk, each time with the places of those that may hold a match.

    Args:
        found: a walk.
        needed: text that every match holds; without it, any file may hold one.
    """
    sieve = Sieve(needed) if needed else None
    for files in found:
        directory = files.folder.fileno()
        if sieve is None or directory is None:
            yield files, range(len(files.names))
        else:
            yield files, sieve.doubtful(directory, files.names)
