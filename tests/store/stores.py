"""Stores and messages for the tests of this folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from openheim.messages import Message, TextBlock, ToolResultBlock, ToolUseBlock, Usage
from openheim.store import HistoryStore, SessionMeta

ID = "550e8400-e29b-41d4-a716-446655440000"
OTHER_ID = "661f9511-f3ac-42e5-b827-557766551111"
NOW = "2026-01-01T00:00:00.000Z"


def session_id(number: int) -> str:
    return f"550e8400-e29b-41d4-a716-{number:012}"


def made_store(folder: Path) -> HistoryStore:
    store = HistoryStore(folder / "history")
    store.prepare()
    return store


def user(text: str, turn: int = 1, *, message_id: str | None = None) -> Message:
    return Message("user", (TextBlock(text),), id=message_id or text, created_at=NOW, turn=turn, step=1)


def assistant(text: str, turn: int = 1, **details: Any) -> Message:
    details = {"provider": "p", "model": "m", "usage": Usage(10, 5, 0, 0)} | details
    return Message("assistant", (TextBlock(text),), id=f"a-{text}", created_at=NOW, turn=turn, step=2, **details)


def call(call_id: str, turn: int = 1) -> Message:
    blocks = (ToolUseBlock(call_id, "read_file", '{"path":"a"}'),)
    return Message("assistant", blocks, id=f"m-{call_id}", created_at=NOW, turn=turn, step=2)


def result(call_id: str, content: str = "text", turn: int = 1) -> Message:
    blocks = (ToolResultBlock(call_id, "read_file", content),)
    return Message("tool", blocks, id=f"r-{call_id}", created_at=NOW, turn=turn, step=3)


def turn_end(turn: int = 1) -> dict[str, Any]:
    return {"record": "turn_end", "at": NOW, "turn": turn, "stop_reason": "end_turn"}


def write_session(
    store: HistoryStore,
    identity: str,
    *lines: Message | dict[str, Any],
    title: str | None = "a title",
    updated: str = NOW,
    **meta: Any,
) -> SessionMeta:
    log = store.log(identity)
    for line in lines:
        if isinstance(line, Message):
            log.append(line)
        else:
            log.append_record(line)
    log.close()
    made = SessionMeta(identity, NOW, updated, title=title, **meta)
    store.write_meta(made)
    return made


def texts(store: HistoryStore, identity: str = ID) -> list[str]:
    return [message.text for message in store.load(identity).messages]
