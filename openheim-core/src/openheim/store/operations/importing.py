"""Sessions from files: what an export wrote, or a bare conversation of ``meta`` and ``messages``."""

from __future__ import annotations

import contextlib
import os
import uuid
from typing import TYPE_CHECKING, Any

from openheim.errors import UsageError
from openheim.jsontext import MAX_DEPTH, dump_bytes, is_deep
from openheim.messages import message_from_stored
from openheim.store.digest import LogDigest
from openheim.store.history import is_session_id
from openheim.store.meta import SessionMeta, timestamp
from openheim.store.rows import sort_key
from openheim.store.writing import create_whole

if TYPE_CHECKING:
    from openheim.store.history import HistoryStore

__all__ = ("import_session",)

#: Records that come with a session. Others are left out: a file from elsewhere must bring no permissions along, and no
#: summary, which the model would be given in place of the messages that a reader sees.
_RECORDS = ("turn_end", "title", "archived")

#: Modes that allow no more than the default one.
_CAREFUL_MODES = ("default", "plan", "dontAsk")

_HINT = "import what openheim sessions export --format json wrote"


def import_session(store: HistoryStore, document: Any, *, cwd: str | None = None) -> SessionMeta:
    """Adds a session from a JSON document. It keeps its id unless a session has that already.

    The document does not decide what the session may do here: its directory is not taken over, and remembered
    permissions, modes that ask less than the default one, and summaries of compactions are left behind.

    Args:
        document: the JSON value: an object with ``messages`` and, if there are any, ``meta`` and ``records``.
        cwd: the directory that the session is to work in, an absolute path; if None, the one it is resumed in.

    Returns:
        The metadata of the new session.

    Raises:
        UsageError: the document is none, and why; nothing is written.
        StorageError: it cannot be written; what was written is removed.
    """
    if not isinstance(document, dict) or not isinstance(document.get("messages"), list):
        raise UsageError("this is no exported session: it has no list of messages", hint=_HINT)
    messages = [_message(raw, number) for number, raw in enumerate(document["messages"], 1)]
    _drop_repeated_ids(messages)
    records = _records(document.get("records"), len(messages))
    meta = _meta(document.get("meta"), messages, records)
    meta.cwd = cwd
    lines: list[dict[str, Any]] = []
    for number in range(len(messages) + 1):
        lines += (record for after, record in records if after == number)
        lines += messages[number : number + 1]
    data = b"".join(dump_bytes(line) + b"\n" for line in lines)
    store.prepare()
    if not is_session_id(meta.id) or store.exists(meta.id):
        meta.id = str(uuid.uuid4())
    try:
        create_whole(store.log_path(meta.id), data)
    except FileExistsError:
        # Another process was quicker.
        meta.id = str(uuid.uuid4())
        create_whole(store.log_path(meta.id), data)
    try:
        store.write_meta(meta)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(store.log_path(meta.id))
        raise
    return meta


def _message(raw: Any, number: int) -> dict[str, Any]:
    try:
        message_from_stored(raw)
        _require_shallow(raw)
    except ValueError as err:
        raise UsageError(f"this is no exported session: message {number}: {err}", hint=_HINT) from err
    # With that key it would be read as a record.
    return {key: value for key, value in raw.items() if key != "record"}


def _require_shallow(value: Any) -> None:
    if is_deep(value):
        raise ValueError(f"it has more than {MAX_DEPTH} levels")


def _drop_repeated_ids(messages: list[dict[str, Any]]) -> None:
    seen: set[str] = set()
    for message in messages:
        identity = message.get("id")
        if not isinstance(identity, str) or identity in seen:
            message.pop("id", None)
        else:
            seen.add(identity)


def _records(raw: Any, messages: int) -> list[tuple[int, dict[str, Any]]]:
    found = []
    for entry in raw if isinstance(raw, list) else ():
        # An export says where each record stood; without that, it stands at the end.
        record = entry.get("record") if isinstance(entry, dict) else None
        after = entry.get("after") if isinstance(record, dict) else messages
        if isinstance(record, str):
            record = entry
        if isinstance(record, dict) and record.get("record") in _RECORDS:
            try:
                _require_shallow(record)
            except ValueError as err:
                raise UsageError(f"this is no exported session: a record: {err}", hint=_HINT) from err
            found.append((min(max(after, 0), messages) if type(after) is int else messages, record))
    return found


def _meta(raw: Any, messages: list[dict[str, Any]], records: list[tuple[int, dict[str, Any]]]) -> SessionMeta:
    digest = LogDigest()
    for message in messages:
        digest.add_message(message)
    for _after, record in records:
        digest.add_record(record)
    identity = raw.get("id") if isinstance(raw, dict) else None
    identity = identity if isinstance(identity, str) and identity else "unknown"
    given = SessionMeta.from_dict(raw | {"id": identity}) if isinstance(raw, dict) else None
    meta = digest.complete(given, identity)
    now = timestamp()
    meta.extra = {}
    meta.forked_from = _source(meta.forked_from)
    meta.created_at = meta.created_at if sort_key(meta.created_at) else now
    # One from the future would stay the newest session for good.
    meta.updated_at = meta.updated_at if 0 < sort_key(meta.updated_at) <= sort_key(now) else now
    meta.mode = meta.mode if meta.mode in _CAREFUL_MODES else "default"
    return meta


def _source(forked_from: dict[str, Any] | None) -> dict[str, Any] | None:
    named = {key: value for key, value in (forked_from or {}).items() if isinstance(value, str)}
    if "session_id" not in named:
        return None
    return {"session_id": named["session_id"], "message_id": named.get("message_id")}
