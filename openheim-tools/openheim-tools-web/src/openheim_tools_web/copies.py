"""Pages that were too long for one result, kept so that their next parts need not be fetched again."""

from __future__ import annotations

import sys
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from openheim_tools_web.settings import Settings

__all__ = ("Copies", "CopyKey")

#: Bounds for all sessions together, since each process has one toolset. Whatever is dropped is fetched again.
MAX_PAGES = 32
MAX_MEMORY_BYTES = 16 * 1024 * 1024
#: What is older is not used. It goes with the next call of any session, since no timer is worth 16 MiB.
MAX_AGE_SECS = 900.0


class CopyKey(NamedTuple):
    """What makes two calls show the same text. A page that one session fetched is never shown to another."""

    session_id: str
    url: str
    raw: bool
    settings: Settings


class _Copy(NamedTuple):
    text: str
    memory_bytes: int
    fetched: float


class Copies:
    """Texts of pages. The one that was used least recently goes first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[CopyKey, _Copy] = OrderedDict()
        self._memory_bytes = 0

    def get(self, key: CopyKey) -> str | None:
        self._drop_old()
        if (found := self._kept.get(key)) is None:
            return None
        self._kept.move_to_end(key)
        return found.text

    def keep(self, key: CopyKey, text: str) -> None:
        """Keeps a text in place of what there was of the page; ``""`` only drops that. Outside of a session, which
        nothing ends, none is kept.
        """
        self.drop(key)
        if not (text and key.session_id):
            return
        kept = self._kept[key] = _Copy(text, sys.getsizeof(text), time.monotonic())
        self._memory_bytes += kept.memory_bytes
        self._drop_old()
        while len(self._kept) > MAX_PAGES or self._memory_bytes > MAX_MEMORY_BYTES:
            self.drop(next(iter(self._kept)))

    def drop(self, key: CopyKey) -> None:
        if (found := self._kept.pop(key, None)) is not None:
            self._memory_bytes -= found.memory_bytes

    def drop_session(self, session_id: str) -> None:
        for key in [key for key in self._kept if key.session_id == session_id]:
            self.drop(key)

    def _drop_old(self) -> None:
        due = time.monotonic() - MAX_AGE_SECS
        for key in [key for key, kept in self._kept.items() if kept.fetched <= due]:
            self.drop(key)
