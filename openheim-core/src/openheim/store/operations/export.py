"""Sessions as files for others: Markdown to read, JSON to import again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from openheim._arguments import texts
from openheim.jsontext import is_deep, plain
from openheim.messages import (
    ImageBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    message_from_stored,
)
from openheim.store.summaries import summary_in_force

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from openheim.messages import Block
    from openheim.store.history import HistoryStore, StoredSession
    from openheim.store.meta import SessionMeta

__all__ = ("EXPORT_FORMAT", "export_json", "export_markdown", "markdown")

#: Says what an exported JSON file is.
EXPORT_FORMAT = "openheim.session/1"

_HIDDEN = "[secret]"

#: Shorter values are no secrets, and replacing them would leave holes in words.
_SHORTEST_SECRET = 8

_SPEAKERS = {"user": "User", "assistant": "Assistant", "system": "System"}


def export_json(store: HistoryStore, session_id: str, *, secrets: Sequence[str] = ()) -> dict[str, Any]:
    """A session as one JSON object: ``format``, ``meta``, ``messages`` as they are stored, and ``records``.

    Each record stands with the number of messages before it (``after``), so that nothing is lost. What
    :func:`~openheim.store.operations.importing.import_session` reads.

    Args:
        secrets: keys in use; wherever one stands in the session, it is left out.

    Raises:
        SessionNotFoundError: there is no such session.
        StorageError: it cannot be read.
        TypeError: ``secrets`` is no list of texts.
    """
    hidden = _worth_hiding(secrets)
    meta = store.load(session_id).meta
    messages: list[dict[str, Any]] = []
    records: list[dict[str, Any]] = []
    if store.log_path(session_id).exists():
        lines, _position = store.read_log(session_id)
        for _number, raw in lines:
            if "record" in raw:
                records.append({"after": len(messages), "record": _exportable(raw)})
            elif _is_message(raw):
                messages.append(_exportable(raw))
    document = {
        "format": EXPORT_FORMAT,
        "meta": meta.to_dict(full=True),
        "messages": messages,
        "records": records,
    }
    return _without(document, hidden)  # type: ignore[no-any-return]  # an object stays one


def export_markdown(store: HistoryStore, session_id: str, *, secrets: Sequence[str] = ()) -> str:
    """A session as Markdown, with thinking, tool calls and results folded away. Arguments and errors as above."""
    hidden = _worth_hiding(secrets)
    text: str = _without(markdown(store.load(session_id)), hidden)
    return text


def markdown(stored: StoredSession, *, more_facts: Mapping[str, str] | None = None) -> str:
    """A conversation as Markdown; ``more_facts`` stand in the list at its beginning, behind those of the metadata.

    A summary that the model is given stands behind the messages that it stands for.
    """
    meta = stored.meta
    parts = [f"# {_line(meta.title or 'Untitled session')}", _facts(meta, more_facts or {})]
    summary = summary_in_force(stored.messages, stored.records)
    speaker = ""
    for number, message in enumerate(stored.messages, 1):
        heading = _SPEAKERS.get(message.role, "")
        if heading and heading != speaker:
            parts.append(f"## {heading}")
            speaker = heading
        parts += [part for block in message.content for part in _block(block)]
        if summary is not None and number == summary.messages:
            parts.append(_folded("Summary, which the model is given in place of what stands above", summary.text))
    return "\n\n".join(parts) + "\n"


def _facts(meta: SessionMeta, more: Mapping[str, str]) -> str:
    facts: dict[str, str | None] = {
        "Session": meta.id,
        "Created": meta.created_at,
        "Updated": meta.updated_at,
        "Model": " / ".join(filter(None, (meta.provider, meta.model))),
        "Directory": meta.cwd,
        **more,
    }
    return "\n".join(f"- {name}: {_line(value)}" for name, value in facts.items() if value)


def _block(block: Block) -> Iterator[str]:
    match block:
        case TextBlock():
            if block.text.strip():
                yield block.text.strip("\n")
        case ThinkingBlock():
            if block.thinking.strip():
                yield _folded("Thinking", block.thinking)
        case RedactedThinkingBlock():
            yield _folded("Thinking", "(encrypted)")
        case ToolUseBlock():
            yield _folded(f"Tool call: {block.name}", block.arguments, "json")
        case ToolResultBlock():
            name = "Error" if block.is_error else "Result"
            yield _folded(f"{name} of {block.tool_name}", block.content)
            for image in block.images:
                yield _image(image)
        case ImageBlock():
            yield _image(block)


def _image(image: ImageBlock) -> str:
    return f"*(an image, {_line(image.mime_type)}, {len(image.data) * 3 // 4:,} bytes)*"


def _folded(title: str, text: str, language: str = "") -> str:
    # A fence longer than any in the text, or the text would end it.
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    summary = _line(title).replace("&", "&amp;").replace("<", "&lt;")
    body = text.rstrip("\n")
    return f"<details><summary>{summary}</summary>\n\n{fence}{language}\n{body}\n{fence}\n\n</details>"


def _line(text: str) -> str:
    return " ".join(text.split())


def _is_message(raw: dict[str, Any]) -> bool:
    try:
        message_from_stored(raw)
    except ValueError:
        return False
    return True


def _exportable(raw: dict[str, Any]) -> dict[str, Any]:
    """A stored object, without what is nested more deeply than an import takes (around it are two levels more)."""
    return plain(raw) if is_deep(raw) else raw


def _worth_hiding(secrets: Sequence[str]) -> list[str]:
    # Longest first: one may be part of another.
    return sorted(
        {secret for secret in texts("secrets", secrets) if len(secret) >= _SHORTEST_SECRET}, key=len, reverse=True
    )


def _without(value: Any, secrets: Sequence[str]) -> Any:
    """The value with every secret in its texts replaced."""
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, _HIDDEN)
        return value
    if isinstance(value, dict):
        return {_without(key, secrets): _without(inner, secrets) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without(inner, secrets) for inner in value]
    return value
