"""Copies of sessions, to go on from in another direction."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from openheim.errors import UsageError
from openheim.jsontext import dump_bytes
from openheim.messages import Usage
from openheim.store.meta import SessionMeta, timestamp
from openheim.store.operations.marks import TITLE_LIMIT
from openheim.store.writing import create_whole

if TYPE_CHECKING:
    from openheim.store.history import HistoryStore

__all__ = ("fork_session",)

#: Records that are about the source alone: what was allowed there was not allowed for the copy.
_LEFT_BEHIND = ("archived", "approval")


def fork_session(store: HistoryStore, session_id: str, *, title: str | None = None) -> SessionMeta:
    """Copies a session up to the end of its last completed turn. The source is not touched, and may be in use.

    A turn that was cancelled, or that an error ended, is not completed. Remembered permissions are left behind.
    Messages keep their ids. ``forked_from`` in the copy's metadata names the source and the last message that both
    have.

    Args:
        title: of the copy; the source's own if None.

    Returns:
        The copy's metadata.

    Raises:
        UsageError: no turn of the session is completed.
        SessionNotFoundError: there is no such session.
        StorageError: it cannot be read, or the copy cannot be written.
    """
    meta = store.load(session_id).meta
    lines, _position = store.read_log(session_id)
    objects = [raw for _number, raw in lines]
    kept = [raw for raw in objects[: _end_of_completed_turns(objects)] if raw.get("record") not in _LEFT_BEHIND]
    messages = [raw for raw in kept if "record" not in raw]
    if not messages:
        raise UsageError(f"session {session_id} has no completed turn to fork from", hint="let a turn end first")
    now = timestamp()
    last_id = messages[-1].get("id")
    copy = SessionMeta.from_dict(meta.to_dict(full=True))
    copy.id = str(uuid.uuid4())
    copy.created_at = copy.updated_at = now
    copy.archived = False
    copy.extra.pop("decisions", None)
    copy.context_usage = next(
        (Usage.from_dict(raw["usage"]) for raw in reversed(messages) if isinstance(raw.get("usage"), dict)), None
    )
    copy.forked_from = {"session_id": session_id, "message_id": last_id if isinstance(last_id, str) else None}
    title = " ".join((title or "").split())[:TITLE_LIMIT]
    if title:
        copy.title = title
        kept.append({"record": "title", "at": now, "title": title})
    create_whole(store.log_path(copy.id), b"".join(dump_bytes(raw) + b"\n" for raw in kept))
    store.write_meta(copy)
    return copy


def _end_of_completed_turns(objects: list[dict[str, Any]]) -> int:
    """Where the last completed turn ends, with what was noted behind it."""
    end = 0
    for number, raw in enumerate(objects, 1):
        if _completes_a_turn(raw) or _ends_an_old_turn(raw):
            end = number
    while end and end < len(objects) and "record" in objects[end]:
        end += 1
    return end


def _completes_a_turn(raw: dict[str, Any]) -> bool:
    return raw.get("record") == "turn_end" and raw.get("stop_reason") not in (None, "cancelled")


def _ends_an_old_turn(raw: dict[str, Any]) -> bool:
    """Whether this is a last reply by a program that writes no record at a turn's end: one that asks for no tool."""
    if raw.get("role") != "assistant" or raw.get("turn"):
        return False
    content = raw.get("content")
    return isinstance(content, list) and not any(
        isinstance(block, dict) and block.get("type") == "tool_use" for block in content
    )
