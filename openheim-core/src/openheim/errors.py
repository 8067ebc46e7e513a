"""Every error that openheim raises on purpose.

::

    OpenheimError                     kind, message, hint, retryable
    ├── UsageError                    a command or call was put wrongly
    ├── ConfigError                   a setting is missing, wrong or unsafe
    │   └── SkillNotFoundError        no skill of that name
    ├── PluginError
    │   ├── PluginNotFoundError       nothing installed offers that name
    │   ├── PluginConflictError       two distributions offer that name
    │   ├── PluginDisabledError       the settings switch it off
    │   ├── PluginIncompatibleError   it asks for another core
    │   └── PluginLoadError           its import or its hook failed
    ├── ProviderError                 the model service did not answer as hoped
    │   ├── AuthError                 key missing, refused or without rights
    │   ├── BillingError              credit used up
    │   ├── RateLimitedError          throttled for now
    │   ├── OverloadedError           the service is too busy for now
    │   ├── ServerError               the service failed
    │   ├── InvalidRequestError       the service refuses this request
    │   ├── ModelNotFoundError        no such model or endpoint
    │   ├── ConflictError             the service asks to try again (HTTP 409)
    │   ├── ContextOverflowError      the request is longer than the model's window
    │   ├── ProviderTimeoutError      no answer in time
    │   ├── ProviderConnectionError   no connection, or it broke
    │   ├── IncompleteStreamError     the stream ended before its end marker
    │   ├── EmptyResponseError        the stream held no answer at all
    │   ├── MalformedToolCallError    the model's tool call could not be read
    │   ├── BlockedError              the service withheld the answer
    │   └── UnknownFinishError        the answer ended for a reason that is not known
    ├── ToolError                     a tool's own failure, shown to the model
    ├── SessionError
    │   ├── SessionBusyError          a turn is running in this process
    │   ├── SessionLockedError        a turn is running in another process
    │   └── SessionNotFoundError
    ├── SchemaMismatchError           the model's answer does not match the schema that was asked for
    └── StorageError                  a file of ours could not be read or written

``kind`` is the word that goes over wires (``--output json``, JSON-RPC ``data.kind``); it never changes once published.
``hint`` is the next thing to try. Neither may hold a secret.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openheim.messages import Block, Usage

__all__ = (
    "AuthError",
    "BillingError",
    "BlockedError",
    "ConfigError",
    "ConflictError",
    "ContextOverflowError",
    "EmptyResponseError",
    "IncompleteStreamError",
    "InvalidRequestError",
    "MalformedToolCallError",
    "ModelNotFoundError",
    "OpenheimError",
    "OverloadedError",
    "PluginConflictError",
    "PluginDisabledError",
    "PluginError",
    "PluginIncompatibleError",
    "PluginLoadError",
    "PluginNotFoundError",
    "ProviderConnectionError",
    "ProviderError",
    "ProviderTimeoutError",
    "RateLimitedError",
    "SchemaMismatchError",
    "ServerError",
    "SessionBusyError",
    "SessionError",
    "SessionLockedError",
    "SessionNotFoundError",
    "SkillNotFoundError",
    "StorageError",
    "ToolError",
    "UnknownFinishError",
    "UsageError",
    "described",
    "interrupt_behind",
    "said",
    "unwrapped",
)


class OpenheimError(Exception):
    """Root of the tree.

    Args:
        message: what happened, one sentence without a full stop.
        hint: what to do next, or ``""``.
    """

    kind: ClassVar[str] = "internal"
    #: Whether the same call may succeed later without any change.
    retryable: bool = False

    def __init__(self, message: str, *, hint: str = "") -> None:
        # Plugins raise these too, and what they say is read as text everywhere.
        message, hint = _as_text(message), _as_text(hint)
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def to_dict(self) -> dict[str, Any]:
        """The ``error`` object of ``--output json``: ``kind``, ``message``, ``hint``, ``retryable``."""
        return {"kind": self.kind, "message": self.message, "hint": self.hint, "retryable": self.retryable}


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def said(err: BaseException) -> str:
    """The message of an exception; ``""`` for one of a stranger's that fails to say anything."""
    try:
        return str(err)
    except (Exception, SystemExit):
        return ""


def described(err: BaseException) -> str:
    """Type and message of an exception, whoever made it."""
    text = said(err)
    return f"{type(err).__name__}: {text}" if text else type(err).__name__


def unwrapped(err: Exception) -> Exception:
    """The error inside groups of one, which task groups make of every error that passes through them."""
    while isinstance(err, ExceptionGroup) and len(err.exceptions) == 1:
        err = err.exceptions[0]
    return err


def interrupt_behind(err: BaseException) -> KeyboardInterrupt | None:
    """The interrupt that an error is, or that led to it.

    Until 3.12, Python wraps whatever is raised while a class is being made, an interrupt too, in a ``RuntimeError``.
    """
    open_errors: list[BaseException | None] = [err]
    seen: set[int] = set()
    while open_errors:
        current = open_errors.pop()
        if isinstance(current, KeyboardInterrupt):
            return current
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        open_errors += (current.__cause__, current.__context__)
        if isinstance(current, BaseExceptionGroup):
            open_errors += current.exceptions
    return None


class UsageError(OpenheimError):
    kind = "usage"


class ConfigError(OpenheimError):
    kind = "config"


class SkillNotFoundError(ConfigError):
    pass


class PluginError(OpenheimError):
    kind = "plugin"


class PluginNotFoundError(PluginError):
    pass


class PluginConflictError(PluginError):
    pass


class PluginDisabledError(PluginError):
    pass


class PluginIncompatibleError(PluginError):
    pass


class PluginLoadError(PluginError):
    pass


class ProviderError(OpenheimError):
    """A model call failed.

    Args:
        status: HTTP status of the answer, if there was one.
        retry_after_secs: seconds that the service asks to wait, if it does.
        retryable: overrides the class's default.
        partial: blocks that had arrived before the failure; the loop stores them.
        usage: what the service said it counted before the failure.

    Attributes:
        unsent: whether it is known that the request did not reach the service.
    """

    kind = "server_error"
    unsent: bool = False

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        status: int | None = None,
        retry_after_secs: float | None = None,
        retryable: bool | None = None,
        partial: Sequence[Block] = (),
        usage: Usage | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.retry_after_secs = retry_after_secs
        if retryable is not None:
            self.retryable = retryable
        self.partial = tuple(partial)
        self.usage = usage


class AuthError(ProviderError):
    kind = "auth"


class BillingError(ProviderError):
    kind = "billing"


class RateLimitedError(ProviderError):
    kind = "rate_limit"
    retryable = True


class OverloadedError(ProviderError):
    kind = "overloaded"
    retryable = True


class ServerError(ProviderError):
    kind = "server_error"
    retryable = True


class InvalidRequestError(ProviderError):
    kind = "invalid_request"


class ModelNotFoundError(ProviderError):
    kind = "not_found"


class ConflictError(ProviderError):
    kind = "conflict"
    retryable = True


class ContextOverflowError(ProviderError):
    kind = "context_overflow"


class ProviderTimeoutError(ProviderError):
    kind = "timeout"
    retryable = True


class ProviderConnectionError(ProviderError):
    kind = "connection"
    retryable = True


class IncompleteStreamError(ProviderError):
    kind = "stream_incomplete"
    retryable = True


class EmptyResponseError(ProviderError):
    kind = "empty_response"
    retryable = True


class MalformedToolCallError(ProviderError):
    kind = "malformed_tool_call"
    retryable = True


class BlockedError(ProviderError):
    kind = "blocked"


class UnknownFinishError(ProviderError):
    kind = "unknown_finish"


class ToolError(OpenheimError):
    """Raised by a tool to answer the model with an error result; its message is what the model reads."""

    kind = "tool"


class SessionError(OpenheimError):
    """``session_id`` names the session concerned."""

    kind = "session"

    def __init__(self, message: str, *, session_id: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.session_id = session_id


class SessionBusyError(SessionError):
    kind = "session_busy"
    retryable = True


class SessionLockedError(SessionError):
    """``pid`` and ``host`` name the process that holds the session."""

    kind = "session_locked"
    retryable = True

    def __init__(
        self, message: str, *, session_id: str = "", pid: int = 0, host: str = "unknown", hint: str = ""
    ) -> None:
        super().__init__(message, session_id=session_id, hint=hint)
        self.pid = pid
        self.host = host


class SessionNotFoundError(SessionError):
    kind = "session_not_found"


class SchemaMismatchError(OpenheimError):
    """The text of the answer is in the history."""

    kind = "schema_mismatch"


class StorageError(OpenheimError):
    kind = "storage"
