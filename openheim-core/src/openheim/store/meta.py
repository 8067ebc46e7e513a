"""A session's metadata: ``{uuid}.json``, one JSON object with the single key ``meta``, rewritten as a whole."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from openheim._reading import read_regular
from openheim.jsontext import is_deep, parse
from openheim.messages import Usage
from openheim.store.writing import replace_whole

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = (
    "FORMAT",
    "SessionMeta",
    "drop_damaged",
    "meta_text",
    "read_meta",
    "state_in",
    "timestamp",
    "title_of",
    "write_meta",
)

FORMAT = 1

#: A larger file is no metadata.
_MAX_BYTES = 64 * 1024 * 1024

#: Characters of the first message that make the title.
TITLE_CHARACTERS = 80


@dataclass(slots=True)
class SessionMeta:
    """What is known of a session beside its messages.

    Args:
        created_at, updated_at: RFC 3339 in UTC.
        context_usage: what the latest model call reported.
        archived: left out of listings, for good.
        forked_from: ``session_id`` and ``message_id``, the last message that both have.
        extra: further keys, which are kept.
    """

    id: str
    created_at: str
    updated_at: str
    title: str | None = None
    model: str | None = None
    provider: str | None = None
    skills: list[str] = field(default_factory=list)
    cwd: str | None = None
    mode: str = "default"
    context_usage: Usage | None = None
    archived: bool = False
    forked_from: dict[str, Any] | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def to_dict(self, *, full: bool = False) -> dict[str, Any]:
        """The fields that every reader knows; with ``full`` also those of this format."""
        shown: dict[str, Any] = {
            "id": self.id,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "title": self.title,
            "model": self.model,
            "provider": self.provider,
            "skills": self.skills,
            "cwd": self.cwd,
        }
        if self.context_usage is not None:
            shown["context_usage"] = self.context_usage.to_dict()
        if full:
            shown |= {"format": FORMAT, "mode": self.mode}
            if self.archived:
                shown["archived"] = True
            if self.forked_from is not None:
                shown["forked_from"] = self.forked_from
            shown |= self.extra
        return shown

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> SessionMeta:
        """Reads what :meth:`to_dict` wrote, and what older versions did; unknown keys are kept.

        Raises:
            ValueError: there is no id.
        """
        identity = raw.get("id")
        if not isinstance(identity, str) or not identity:
            raise ValueError("the metadata has no id")

        def text(key: str) -> str | None:
            value = raw.get(key)
            return value if isinstance(value, str) else None

        skills = raw.get("skills")
        usage = raw.get("context_usage")
        forked_from = raw.get("forked_from")
        known = {*cls.__slots__, "format"} - {"extra"}
        return cls(
            id=identity,
            created_at=text("created_at") or "",
            updated_at=text("updated_at") or "",
            title=text("title"),
            model=text("model"),
            provider=text("provider"),
            skills=[skill for skill in skills if isinstance(skill, str)] if isinstance(skills, list) else [],
            cwd=text("cwd"),
            mode=text("mode") or "default",
            context_usage=Usage.from_dict(usage) if isinstance(usage, dict) else None,
            archived=raw.get("archived") is True,
            forked_from=forked_from if isinstance(forked_from, dict) else None,
            extra={key: value for key, value in raw.items() if key not in known},
        )


def state_in(record: Mapping[str, Any]) -> dict[str, Any]:
    """What a record of the log says that the session has from there on, by the names of the metadata's fields."""
    kind = record.get("record")
    names = _STATE_OF.get(kind, ()) if isinstance(kind, str) else ()
    found = {name: record[name] for name in names if isinstance(record.get(name), str)}
    if kind == "session":
        skills = record.get("skills")
        if isinstance(skills, list) and all(isinstance(skill, str) for skill in skills):
            found["skills"] = skills
    return found


_STATE_OF = {"session": ("mode", "provider", "model", "cwd"), "mode": ("mode",), "model": ("provider", "model")}


def drop_damaged(meta: SessionMeta) -> list[str]:
    """Takes out further keys of this format that hold what they cannot; what was taken out, one line each."""
    dropped = []
    if not isinstance(meta.extra.get("context", {}), dict):
        del meta.extra["context"]
        dropped.append("context")
    decisions = meta.extra.get("decisions", {})
    usable = (
        {key: decision for key, decision in decisions.items() if decision in ("allow", "deny")}
        if isinstance(decisions, dict)
        else {}
    )
    if usable != decisions:
        meta.extra["decisions"] = usable
        dropped.append("decisions")
    return [f"{name} in the metadata is damaged; what cannot be read of it is left out" for name in dropped]


def title_of(text: str) -> str | None:
    """The title that a first message gives: its first characters; None if it has no text."""
    return text.strip()[:TITLE_CHARACTERS] or None


def timestamp() -> str:
    """Now, in RFC 3339 with milliseconds, in UTC."""
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_meta(path: Path) -> SessionMeta | None:
    """The metadata in ``path``, or None if there is none that can be read."""
    try:
        raw = parse(read_regular(path, limit=_MAX_BYTES), lenient=True)
        if is_deep(raw):
            return None
        return SessionMeta.from_dict(raw["meta"]) if isinstance(raw["meta"], dict) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False).encode


def meta_text(meta: SessionMeta) -> str:
    """What the file holds: JSON with a line for each field. (``indent`` would take ten times as long.)"""
    fields = [f"    {_encode(name)}: {_encode(value)}" for name, value in meta.to_dict(full=True).items()]
    return '{\n  "meta": {\n' + ",\n".join(fields) + "\n  }\n}\n"


def write_meta(path: Path, text: str, *, durable: bool = False) -> None:
    """Replaces the file in one step: readers see the old or the new, never a part.

    Args:
        durable: wait until it is on the disk, which takes milliseconds.

    Raises:
        StorageError: it cannot be written; the old file is untouched.
    """
    replace_whole(path, text.encode("ascii"), durable=durable)
