"""What a turn tells its watchers.

Every event carries ``seq``, which grows within its session (also across restarts) and is stamped by the session's
stream. Order inside one iteration: :class:`IterationStart`, :class:`ContextTrimmed` (if anything was left out),
deltas as they arrive, :class:`MessageAppended` (assistant), :class:`UsageReported`, every :class:`ToolCallRequested`,
then :class:`ToolUpdate` and :class:`ToolResultReady` as the calls go on (in any order among calls), and
:class:`MessageAppended` (tool) in call order. :class:`TurnFinished` is the last.

Deltas are made by the thousand, so these are plain slotted classes, built without validation. They are treated as
immutable by everyone but the stream.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

if TYPE_CHECKING:
    from openheim.messages import Message, StopReason, Usage

__all__ = (
    "ContextTrimmed",
    "Delta",
    "Event",
    "IterationStart",
    "MessageAppended",
    "ModelFallback",
    "Notice",
    "PermissionAsked",
    "PermissionResolved",
    "PrefixChanged",
    "RetryScheduled",
    "TextDelta",
    "ThinkingDelta",
    "ToolCallDelta",
    "ToolCallRequested",
    "ToolResultReady",
    "ToolUpdate",
    "TurnFinished",
    "UsageReported",
    "WatcherDropped",
)


@dataclass(slots=True)
class IterationStart:
    """A model call is about to start; ``iteration`` counts from 1 within the turn."""

    iteration: int
    seq: int = 0
    type: ClassVar[str] = "iteration_start"


@dataclass(slots=True)
class TextDelta:
    text: str
    seq: int = 0
    type: ClassVar[str] = "text_delta"


@dataclass(slots=True)
class ThinkingDelta:
    text: str
    seq: int = 0
    type: ClassVar[str] = "thinking_delta"


@dataclass(slots=True)
class ToolCallDelta:
    """A piece of a call that the model is still writing. ``index`` tells the calls of one reply apart."""

    index: int
    name: str
    arguments: str
    seq: int = 0
    type: ClassVar[str] = "tool_call_delta"


@dataclass(slots=True)
class MessageAppended:
    """``message`` is in the history file now: this is the acknowledgement."""

    message: Message
    seq: int = 0
    type: ClassVar[str] = "message"


@dataclass(slots=True)
class UsageReported:
    usage: Usage
    seq: int = 0
    type: ClassVar[str] = "usage"


@dataclass(slots=True)
class ToolCallRequested:
    """``arguments`` is an object, or the raw text when the model wrote something else."""

    id: str
    name: str
    arguments: dict[str, Any] | str
    seq: int = 0
    type: ClassVar[str] = "tool_call"


@dataclass(slots=True)
class ToolUpdate:
    """A call started (``status``) or said something of its progress (``progress``)."""

    id: str
    status: Literal["in_progress"] | None = None
    progress: str | None = None
    seq: int = 0
    type: ClassVar[str] = "tool_update"


@dataclass(slots=True)
class ToolResultReady:
    """A call has its result. ``display`` is for surfaces (``diff``, ``locations``, ``title``) and is not stored."""

    id: str
    name: str
    content: str
    is_error: bool = False
    display: dict[str, Any] | None = None
    seq: int = 0
    type: ClassVar[str] = "tool_result"


@dataclass(slots=True)
class PermissionAsked:
    ask_id: str
    tool: str
    tool_call_id: str
    arguments: dict[str, Any]
    reason: str = ""
    suggestions: tuple[str, ...] = ()
    seq: int = 0
    type: ClassVar[str] = "permission_asked"


@dataclass(slots=True)
class PermissionResolved:
    """``by`` names who answered first: a watcher, ``cancel`` or ``shutdown``."""

    ask_id: str
    decision: Literal["allow", "deny"]
    by: str
    seq: int = 0
    type: ClassVar[str] = "permission_resolved"


@dataclass(slots=True)
class ContextTrimmed:
    """``dropped`` messages were left out of the request to fit the model's window."""

    dropped: int
    seq: int = 0
    type: ClassVar[str] = "context_trimmed"


@dataclass(slots=True)
class RetryScheduled:
    """A model call failed in a way that a retry may mend; attempt ``attempt`` starts in ``delay_secs``."""

    attempt: int
    delay_secs: float
    error: str
    seq: int = 0
    type: ClassVar[str] = "retry"


@dataclass(slots=True)
class ModelFallback:
    """A model cannot answer; for the rest of the turn, the next of its entry's ``fallback`` does.

    Args:
        provider, model: who answers from now on.
        failed_provider, failed_model: who cannot.
        error: why.
    """

    provider: str
    model: str
    failed_provider: str
    failed_model: str
    error: str
    seq: int = 0
    type: ClassVar[str] = "model_fallback"


@dataclass(slots=True)
class PrefixChanged:
    """A request differs from the one before it earlier than at its end, so the service's cache ends there.

    Only while debug messages are logged: finding it takes time. It tells nothing of what stands there.

    Args:
        provider: who is asked.
        offset, size: the first byte of the earlier body that changed, and how many that body has.
        path: the value that it belongs to, such as ``messages[3].content[0].text``; ``""`` for the body as a whole.
    """

    provider: str
    offset: int
    size: int
    path: str
    seq: int = 0
    type: ClassVar[str] = "prefix_changed"


@dataclass(slots=True)
class Notice:
    """Something a person should know. ``severity`` is ``info``, ``warning`` or ``error``."""

    severity: Literal["info", "warning", "error"]
    text: str
    seq: int = 0
    type: ClassVar[str] = "notice"


@dataclass(slots=True)
class TurnFinished:
    """The turn is over.

    Args:
        error: the ``to_dict()`` of what ended it, or None.
        value: of an answer that had to match a schema; None if it does not.
        cost: what its model calls cost, by the prices of the settings; None where that is not known.
    """

    stop_reason: StopReason | None
    text: str
    iterations: int
    usage: Usage
    error: dict[str, Any] | None = None
    denied: tuple[dict[str, str], ...] = field(default=())
    cost: float | None = None
    value: Any = None
    seq: int = 0
    type: ClassVar[str] = "turn_finished"


@dataclass(slots=True)
class WatcherDropped:
    """The last event of a watcher that fell too far behind: it has to join again for a fresh snapshot."""

    missed: int
    seq: int = 0
    type: ClassVar[str] = "watcher_dropped"


Delta: TypeAlias = TextDelta | ThinkingDelta | ToolCallDelta

Event: TypeAlias = (
    IterationStart
    | TextDelta
    | ThinkingDelta
    | ToolCallDelta
    | MessageAppended
    | UsageReported
    | ToolCallRequested
    | ToolUpdate
    | ToolResultReady
    | PermissionAsked
    | PermissionResolved
    | ContextTrimmed
    | RetryScheduled
    | ModelFallback
    | PrefixChanged
    | Notice
    | TurnFinished
    | WatcherDropped
)
