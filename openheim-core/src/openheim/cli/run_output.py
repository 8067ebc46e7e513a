"""The three output formats of ``openheim run``, as watchers of the session's stream."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Protocol

from openheim.cli.printing import harmless, one_line
from openheim.events import (
    ContextTrimmed,
    IterationStart,
    MessageAppended,
    ModelFallback,
    Notice,
    PermissionAsked,
    PermissionResolved,
    PrefixChanged,
    RetryScheduled,
    TextDelta,
    ThinkingDelta,
    ToolCallRequested,
    ToolResultReady,
    ToolUpdate,
    UsageReported,
)
from openheim.jsontext import dump_text
from openheim.messages import message_to_stored

if TYPE_CHECKING:
    from collections.abc import Callable

    from openheim.cli.output import StdoutWriter
    from openheim.cli.run_result import RunResult
    from openheim.events import Event
    from openheim.runtime import Session

__all__ = (
    "EndOutput",
    "Output",
    "StreamJsonOutput",
    "TerminalOutput",
    "event_record",
    "output_for",
    "show_aside",
)


class Output(Protocol):
    """Shows one turn."""

    def start(self, session: Session) -> None: ...

    def show(self, event: Event) -> None: ...

    def end(self, result: RunResult) -> None: ...


def output_for(form: str, writer: StdoutWriter) -> Output:
    """The output of a format: ``text``, ``json`` or ``stream-json``."""
    if form == "json":
        return EndOutput(writer, _as_json)
    if form == "stream-json":
        return StreamJsonOutput(writer)
    return TerminalOutput(writer) if sys.stdout.isatty() else EndOutput(writer, _as_text)


def _say(text: str) -> None:
    print(one_line(text), file=sys.stderr)


def show_aside(event: Event) -> None:
    """What a person should know beside the answer, on stderr."""
    match event:
        case Notice():
            _say(f"{'note' if event.severity == 'info' else event.severity}: {event.text}")
        case RetryScheduled():
            _say(f"note: {event.error}; trying again in {event.delay_secs:.1f} s")
        case ModelFallback():
            _say(f"warning: {event.error}; {event.provider}/{event.model} answers for the rest of this turn")
        case ContextTrimmed():
            _say(f"note: {event.dropped} older messages were left out to fit the model's window")


class EndOutput:
    """What is left once the turn is over; everything else on stderr.

    Args:
        form: makes a result's text.
    """

    def __init__(self, writer: StdoutWriter, form: Callable[[RunResult], str]) -> None:
        self._writer = writer
        self._form = form

    def start(self, session: Session) -> None:
        pass

    def show(self, event: Event) -> None:
        show_aside(event)

    def end(self, result: RunResult) -> None:
        self._writer.write(self._form(result))
        _end_aside(result)


def _as_text(result: RunResult) -> str:
    return f"{result.record['text']}\n" if result.has_reply else ""


def _as_json(result: RunResult) -> str:
    return dump_text(result.record) + "\n"


class TerminalOutput:
    """Text as it comes, and a line on stderr for each tool call."""

    def __init__(self, writer: StdoutWriter) -> None:
        self._writer = writer
        self._at_line_start = True
        self._shown = False

    def start(self, session: Session) -> None:
        pass

    def show(self, event: Event) -> None:
        match event:
            case TextDelta():
                text = harmless(event.text)
                if text:
                    self._writer.write(text)
                    self._at_line_start = text.endswith("\n")
                    self._shown = True
            case IterationStart() if self._shown:
                self._writer.write("\n" if self._at_line_start else "\n\n")
                self._at_line_start, self._shown = True, False
            case ToolCallRequested():
                self._end_line()
                _say(f"· {event.name} {_shortened(event.arguments)}")
            case ToolResultReady() if event.is_error:
                _say(f"  {event.content[:200]}")
            case _:
                show_aside(event)

    def end(self, result: RunResult) -> None:
        self._end_line()
        _end_aside(result)

    def _end_line(self) -> None:
        if not self._at_line_start:
            self._writer.write("\n")
            self._at_line_start = True


def _shortened(arguments: dict[str, Any] | str) -> str:
    text = arguments if isinstance(arguments, str) else ", ".join(f"{key}={arguments[key]}" for key in arguments)
    line = " ".join(text[:400].split())
    return line if len(line) <= 100 else f"{line[:99]}…"


def _end_aside(result: RunResult) -> None:
    error = result.record["error"]
    if error is not None:
        _say(f"error: {error['message']}" + (f" ({error['hint']})" if error["hint"] else ""))
    elif result.note:
        _say(f"note: {result.note}")


class StreamJsonOutput:
    """One object a line while it happens."""

    def __init__(self, writer: StdoutWriter) -> None:
        self._writer = writer
        self._session_id: str | None = None
        self._seq = 0

    def start(self, session: Session) -> None:
        self._session_id = session.id
        self._seq = session.stream.seq
        self._line(
            "session",
            self._seq,
            {
                "cwd": session.meta.cwd,
                "provider": session.binding.provider_name,
                "model": session.binding.model,
                "mode": session.meta.mode,
                "resumed": bool(session.messages),
            },
        )

    def show(self, event: Event) -> None:
        # The end of the turn is told by the last line, which takes its number.
        self._seq = max(self._seq + 1, event.seq)
        record = event_record(event)
        if record is not None:
            self._line(event.type, event.seq, record)

    def end(self, result: RunResult) -> None:
        self._line("result", self._seq, result.record)
        _end_aside(result)

    def _line(self, kind: str, seq: int, record: dict[str, Any]) -> None:
        self._writer.write(dump_text({"type": kind, "session_id": self._session_id, "seq": seq} | record) + "\n")


def event_record(event: Event) -> dict[str, Any] | None:
    """The fields of an event's line, without ``type``, ``session_id`` and ``seq``; None for one that has no line."""
    make = _RECORDS.get(type(event))
    return make(event) if make is not None else None


def _fields(*names: str) -> Callable[[Any], dict[str, Any]]:
    return lambda event: {name: getattr(event, name) for name in names}


_RECORDS: dict[type, Callable[[Any], dict[str, Any]]] = {
    IterationStart: _fields("iteration"),
    TextDelta: _fields("text"),
    ThinkingDelta: _fields("text"),
    MessageAppended: lambda event: {"message": message_to_stored(event.message)},
    ToolCallRequested: _fields("id", "name", "arguments"),
    ToolUpdate: lambda event: (
        {"id": event.id}
        | ({"status": event.status} if event.status is not None else {})
        | ({"progress": event.progress} if event.progress is not None else {})
    ),
    ToolResultReady: _fields("id", "name", "content", "is_error"),
    PermissionAsked: _fields("ask_id", "tool", "reason"),
    PermissionResolved: _fields("ask_id", "decision", "by"),
    UsageReported: lambda event: event.usage.to_dict(),
    ContextTrimmed: _fields("dropped"),
    RetryScheduled: _fields("attempt", "delay_secs", "error"),
    ModelFallback: _fields("provider", "model", "failed_provider", "failed_model", "error"),
    PrefixChanged: _fields("provider", "offset", "size", "path"),
    Notice: _fields("severity", "text"),
}
