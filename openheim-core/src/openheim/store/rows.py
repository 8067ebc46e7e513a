"""What listings and searches of sessions are made of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openheim.errors import UsageError

if TYPE_CHECKING:
    from openheim.store.digest import Totals
    from openheim.store.meta import SessionMeta

__all__ = ("SearchHit", "SessionPage", "SessionRow", "cursor_of", "position_of", "sort_key")


#: A sort key, as far as there are times.
_TIME = re.compile(r"-?[0-9]{1,18}")


@dataclass(slots=True)
class SessionRow:
    """A session in a listing.

    Args:
        messages: how many it has; None where that was not counted.
        totals: what it has used; None where that was not counted.
        first_prompt: beginning of the first message of the user.
        is_named: whether the title was given by hand.
    """

    meta: SessionMeta
    messages: int | None = None
    first_prompt: str | None = None
    is_named: bool = False
    totals: Totals | None = None


@dataclass(slots=True)
class SessionPage:
    """A part of a listing, the newest session first. ``next_cursor`` asks for what follows; None at the end."""

    rows: list[SessionRow]
    next_cursor: str | None = None


@dataclass(slots=True)
class SearchHit:
    """A session that a search found.

    Args:
        excerpt: what surrounds the words, one line.
        matches: messages that have the words.
    """

    row: SessionRow
    excerpt: str
    matches: int


def sort_key(updated_at: str) -> int:
    """The time in microseconds since 1970, by which listings are sorted; 0 if it is none."""
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(updated_at)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return int(moment.timestamp() * 1_000_000)
    except (ValueError, OverflowError):
        return 0


def cursor_of(updated: int, session_id: str) -> str:
    """The cursor of what follows that session."""
    return f"{updated}.{session_id}"


def position_of(cursor: str) -> tuple[int, str]:
    """The sort key and the id of the session that a cursor stands behind.

    Raises:
        UsageError: it is no cursor.
    """
    updated, dot, session_id = cursor.partition(".")
    if not dot or _TIME.fullmatch(updated) is None:
        raise UsageError(f"{cursor!r} is no cursor", hint="use the one that came with the page before")
    return int(updated), session_id
