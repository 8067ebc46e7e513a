"""What the index is asked."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from openheim.store.digest import LogDigest
from openheim.store.index.database import storable
from openheim.store.index.update import PLACES
from openheim.store.meta import SessionMeta
from openheim.store.rows import SearchHit, SessionPage, SessionRow, cursor_of, position_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

__all__ = ("digest_of", "page", "search")

#: Words of a search that count.
_MOST_WORDS = 32

#: The largest number that SQLite takes.
_MOST_ROWS = (1 << 63) - 1

#: Characters around a match that are shown.
_EXCERPT_CHARACTERS = 160

#: Scripts that put no spaces between words: the index takes a sentence of theirs for one word.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)

#: What means something in a pattern of LIKE.
_LIKE_SIGNS = re.compile("(?=[%_/])")


def page(
    connection: sqlite3.Connection, *, cwd: str | None, archived: bool | None, limit: int | None, cursor: str | None
) -> SessionPage:
    """A part of the listing; see :meth:`openheim.store.index.SessionIndex.page`."""
    conditions, values = ["1"], dict[str, Any](limit=-1 if limit is None else min(limit + 1, _MOST_ROWS))
    if cwd is not None:
        conditions.append("cwd = :cwd")
        values["cwd"] = storable(cwd)
    if archived is not None:
        conditions.append("archived = :archived")
        values["archived"] = archived
    if cursor is not None:
        values["updated"], values["id"] = position_of(cursor)
        conditions.append("updated <= :updated AND (updated < :updated OR id > :id)")
    found = connection.execute(
        "SELECT meta, digest, updated, id FROM sessions WHERE "
        f"{' AND '.join(conditions)} ORDER BY updated DESC, id LIMIT :limit",
        values,
    ).fetchall()
    more = limit is not None and len(found) > limit
    found = found[:limit]
    return SessionPage(
        [_row(meta, digest) for meta, digest, _updated, _id in found],
        cursor_of(*found[-1][2:]) if more and found else None,
    )


def search(
    connection: sqlite3.Connection, words: Sequence[str], *, archived: bool | None, limit: int
) -> list[SearchHit]:
    """The sessions that hold the words, the best first: all words in one message, else any of them."""
    # Halves of characters have no form in UTF-8, and SQLite's queries end at a NUL.
    words = [word.replace("\0", " ").encode(errors="replace").decode() for word in words]
    words = [word for word in words if any(map(str.isalnum, word))][:_MOST_WORDS]
    if not words:
        return []
    hits = _matches(connection, words, " AND ", archived, limit)
    if not hits and len(words) > 1:
        hits = _matches(connection, words, " OR ", archived, limit)
    return hits


def _matches(
    connection: sqlite3.Connection, words: Sequence[str], operator: str, archived: bool | None, limit: int
) -> list[SearchHit]:
    parts = [word for word in words if _UNSPACED.search(word)]
    # In quotes a word is a word, whatever it looks like in the language of queries.
    quoted = ['"' + word.replace('"', '""') + '"' for word in words if word not in parts]
    values: dict[str, Any] = {"archived": archived, "limit": min(limit, _MOST_ROWS), "query": operator.join(quoted)}
    if parts:
        conditions = ["rowid IN (SELECT rowid FROM texts WHERE texts MATCH :query)"] if quoted else []
        for number, part in enumerate(parts):
            conditions.append(f"text LIKE :part{number} ESCAPE '/'")
            values[f"part{number}"] = f"%{_LIKE_SIGNS.sub(r'/', part)}%"
        matching = f"SELECT rowid AS place, 0 AS score FROM texts WHERE {operator.join(conditions)}"
    else:
        matching = "SELECT rowid AS place, rank AS score FROM texts WHERE texts MATCH :query"
    found = connection.execute(
        # The bare column comes from the row that has the minimum.
        f"SELECT meta, digest, place, matches FROM ("
        f"  SELECT place / {PLACES} AS number, place, min(score) AS score, count(*) AS matches FROM ({matching})"
        "   GROUP BY 1"
        ") JOIN sessions USING (number)"
        " WHERE :archived IS NULL OR archived = :archived"
        " ORDER BY score, updated DESC LIMIT :limit",
        values,
    ).fetchall()
    return [
        SearchHit(_row(meta, digest), _excerpt(connection, words, place), matches)
        for meta, digest, place, matches in found
    ]


def _excerpt(connection: sqlite3.Connection, words: Sequence[str], place: int) -> str:
    """The surroundings of the first word that is found as it stands; the beginning if none is."""
    text = connection.execute("SELECT text FROM texts WHERE rowid = ?", (place,)).fetchone()[0]
    lowered = text.lower()
    # Lowering can change lengths, in a few scripts; then the excerpt is a little off.
    starts = [start for word in words if (start := lowered.find(word.lower())) >= 0]
    start = max(0, min(starts, default=0) - _EXCERPT_CHARACTERS // 3)
    cut = " ".join(text[start : start + _EXCERPT_CHARACTERS].split())
    before, after = "…" if start else "", "…" if start + _EXCERPT_CHARACTERS < len(text) else ""
    return f"{before}{cut}{after}"


def digest_of(connection: sqlite3.Connection, session_id: str) -> LogDigest | None:
    """What the log of a session says, or None if there is no such session."""
    found = connection.execute("SELECT digest FROM sessions WHERE id = ?", (session_id,)).fetchone()
    return LogDigest.from_dict(json.loads(found[0])) if found is not None else None


def _row(meta: str, digest: str) -> SessionRow:
    facts = LogDigest.from_dict(json.loads(digest))
    return SessionRow(
        SessionMeta.from_dict(json.loads(meta)),
        facts.totals.messages,
        facts.first_prompt,
        facts.title is not None,
        facts.totals,
    )
