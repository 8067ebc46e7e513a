"""Which files of a walk have to be looked at closely; the others are read here and passed over.

In a large tree other processes help with that: threads would not, since what is between two system calls is Python.
"""

from __future__ import annotations

from collections import deque
from contextlib import ExitStack
from itertools import islice
from typing import TYPE_CHECKING

from openheim_tools_fs.sieve import MAX_DIRECTORIES, Sieve
from openheim_tools_fs.sieve_process import Batch, Helper, helpers

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from openheim_tools_fs.walking import FoundFiles

__all__ = ("sifted",)

#: Files up to which it does not pay to start a process.
MAX_ALONE = 128

#: Files in a batch, about.
BATCH_FILES = 64

#: Batches that wait for one in front of them; each holds some directories open.
MAX_WAITING = 12

WAIT_SECS = 0.05


def sifted(
    found: Iterator[FoundFiles], needed: bytes, check: Callable[[], None]
) -> Generator[tuple[FoundFiles, Sequence[int]], None, None]:
    """The files, in the order of the walk, each time with the places of those that may hold a match.

    Args:
        found: a walk.
        needed: text that every match holds; without it, any file may hold one.
        check: called now and then; what it raises ends this.
    """
    sieve = Sieve(needed) if needed else None
    alone = 0
    for files in found:
        directory = files.folder.fileno()
        if sieve is None or directory is None:
            yield files, range(len(files.names))
            continue
        yield files, sieve.doubtful(directory, files.names)
        alone += len(files.names)
        if alone >= MAX_ALONE:
            with helpers(needed) as team:
                yield from _shared(found, sieve, team, check)


def _shared(
    found: Iterator[FoundFiles], sieve: Sieve, team: list[Helper], check: Callable[[], None]
) -> Iterator[tuple[FoundFiles, Sequence[int]]]:
    waiting: deque[Batch] = deque()
    with ExitStack() as held:

        def next_batch() -> Batch | None:
            batch = _batch(found)
            if batch is not None:
                waiting.append(batch)
            return batch

        @held.callback
        def close_all() -> None:
            for batch in waiting:
                batch.close()

        while True:
            for helper in team:
                helper.listen(0)
                while helper.has_time and (batch := next_batch()) is not None:
                    helper.ask(batch)
            while waiting and (doubtful := waiting[0].doubtful) is not None:
                yield from zip(waiting[0].found, doubtful, strict=True)
                waiting.popleft().close()
            if len(waiting) < MAX_WAITING and (batch := next_batch()) is not None:
                batch.sift(sieve)
            elif not waiting:
                return
            elif (at_it := next((helper for helper in team if helper.is_at(waiting[0])), None)) is None:
                waiting[0].sift(sieve)
            else:
                check()
                at_it.listen(WAIT_SECS)


def _batch(found: Iterator[FoundFiles]) -> Batch | None:
    """The next files of the walk; None if there are none."""
    parts: list[FoundFiles] = []
    try:
        for files in islice(found, MAX_DIRECTORIES):
            parts.append(files._replace(folder=files.folder.duplicate()))
            if sum(len(part.names) for part in parts) >= BATCH_FILES:
                break
    except BaseException:
        Batch(parts).close()
        raise
    return Batch(parts) if parts else None
