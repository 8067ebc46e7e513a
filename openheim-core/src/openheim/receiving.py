"""Receives a model's reply: reads the answer to a request, as a stream of events or a document.

What all wires have in common. A wire adds an :class:`EventAssembler` that knows its events.
"""

from __future__ import annotations

import json
import logging
import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from openheim.errors import (
    EmptyResponseError,
    IncompleteStreamError,
    ProviderConnectionError,
    ProviderError,
    ProviderTimeoutError,
    ServerError,
)
from openheim.provider_errors import classify_payload
from openheim.providers import ModelReply
from openheim.reply_parts import ReplyParts
from openheim.sse import SSEDecoder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping

    from openheim.http import HttpResponse
    from openheim.messages import Block, Finish, Usage
    from openheim.providers import EmitDelta, ProviderSettings
    from openheim.sse import SSEEvent

__all__ = ("EventAssembler", "any_count", "read_document", "read_error", "read_reply", "token_count")

T = TypeVar("T")

_log = logging.getLogger(__name__)

#: Bytes read of an answer that reports an error, and of one that is a document where a stream was asked for.
_ERROR_BYTES = 64 * 1024
_DOCUMENT_BYTES = 16 * 1024 * 1024

#: How long the body of an error is waited for, whose status says most; and that of a document, in limits of one wait.
_ERROR_SECS = 10.0
_DOCUMENT_PATIENCE = 5

#: What a stream of events begins with; the last begins a comment.
_STREAM_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")

#: How long an answer that is complete waits for its usage and its end marker, if nothing more is said.
_LAST_SECS = 1.0

#: How long a stream may go on without a piece of the reply, whatever keeps its connection alive. Models that think
#: unseen take long, and their services send comments or pings meanwhile; a proxy that lost its service sends them too.
_QUIET_SECS = 3600.0

#: Characters of events that are not shown, such as signatures and pings; what is shown is bounded by whoever shows it.
_MAX_SILENT = 64 * 1024 * 1024

#: Of an event that shows something, what is around it, and the most that JSON takes for one of its characters.
_ENVELOPE = 512
_ESCAPED = 6

#: What reading something of another shape than expected raises.
_MISSHAPEN = (AttributeError, KeyError, TypeError, IndexError)

#: A larger count is no count of tokens.
_MAX_COUNT = 2**53


class EventAssembler(ABC):
    """Puts a reply together from the events of a stream: the base of each wire's own.

    A wire gives :meth:`take`, sets :attr:`finish` when the reason for the end has come and :attr:`done` when the end
    marker has, and may override the rest.

    Args:
        emit: told each piece.
        settings: the entry that was asked, for errors.

    Attributes:
        parts: what has come.
        done: whether the end marker has come.
        finish: how the reply ended, once that is known.
        usage: what the service has counted so far.
        model: the model that answers, as the service names it.
        opaque: see :class:`~openheim.providers.ModelReply`.
    """

    def __init__(self, emit: EmitDelta, settings: ProviderSettings | None = None) -> None:
        self.parts = ReplyParts(emit)
        self.done = False
        self.finish: Finish | None = None
        self.usage: Usage | None = None
        self.model: str | None = None
        self.opaque: Mapping[str, Any] | None = None
        self._settings = settings
        self._started = False
        self._skipped = False
        self._silent = 0

    # --- what a wire adds ---

    @abstractmethod
    def take(self, payload: dict[str, Any], event: str) -> None:
        """Takes one decoded event. What is not of the expected shape may raise as a wrong key or type does.

        Args:
            event: the event's name, or ``""``.
        """

    def take_document(self, payload: Any) -> bool:
        """Takes a whole reply that came as one document, not as a stream. False if it is none."""
        return False

    def normal_finish(self) -> Finish:
        """How the reply ended, in view of what came. Services say that calls ended it, and that they did not."""
        finish = self.finish or "end_turn"
        if finish in ("end_turn", "tool_use", "other"):
            return "tool_use" if self.parts.calls else ("end_turn" if finish == "tool_use" else finish)
        return finish

    # --- what is asked of it ---

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing: the end marker or the reason for the end has come."""
        return self.done or self.finish is not None

    @property
    def is_started(self) -> bool:
        """Whether anything was understood."""
        return self._started or self.done

    def feed(self, event: SSEEvent) -> None:
        """Takes one event.

        Raises:
            ProviderError: the event reports an error.
            ServerError: more has come than a reply can have that is not shown.
        """
        data = event.data
        parts = self.parts
        pieces, shown = parts.pieces, parts.size
        if data == "[DONE]":
            self.done = True
            return
        try:
            payload = json.loads(data)
        except (ValueError, RecursionError):
            if event.event == "error":  # Gateways put plain text there.
                raise self.failure(data) from None
            self._unreadable(data)
            return
        if event.event == "error":
            raise self.failure(payload, data)
        try:
            if payload.get("error"):
                raise self.failure(payload, data)
            self.take(payload, event.event)
            self._started = True
        except _MISSHAPEN as err:
            # As often a fault of the plugin as of the service; the exception's own text may quote what was sent.
            if _log.isEnabledFor(logging.DEBUG):
                _log.debug("taking a part of the stream raised %s at %s", type(err).__name__, _place_of(err))
            self.skip("is not of the expected shape")
        if parts.pieces == pieces:
            silent = len(data)
        elif len(data) > _ENVELOPE:
            silent = len(data) - _ENVELOPE - _ESCAPED * (parts.size - shown)
        else:
            return
        if silent > 0:
            self._silent += silent
            if self._silent > _MAX_SILENT:
                raise ServerError(
                    f"the service sent more than {_MAX_SILENT // 2**20} MiB that are no part of the text of a reply",
                    hint="that is no answer of a model; check api_base",
                    retryable=False,
                )

    def failure(self, payload: Any, text: str = "") -> ProviderError:
        """The error that a decoded event reports; ``text`` is what it was decoded from."""
        return classify_payload(payload, body=text, settings=self._settings)

    def skip(self, why: str) -> None:
        """Notes that a part of the stream was left out."""
        # What was sent may hold a key that a proxy repeats, and there may be any number of such parts.
        if not self._skipped:
            self._skipped = True
            _log.warning("skipped a part of the stream, and skips all others like it: it %s", why)

    def partial(self) -> tuple[Block, ...]:
        """Text and thinking that have arrived."""
        return self.parts.partial()

    def reply(self) -> ModelReply:
        """The whole reply, once the stream has ended.

        Raises:
            IncompleteStreamError: it ended before its end.
            EmptyResponseError: there was nothing in it.
            MalformedToolCallError: it asks for a tool without saying which.
        """
        self.parts.end_prose()
        if self.finish is None and not self.parts and (self.done or not self._started):
            raise EmptyResponseError("the service ended its answer without saying anything")
        if not self.is_complete:
            raise IncompleteStreamError("the answer broke off before its end")
        finish = self.normal_finish()
        return ModelReply(self.parts.content(cut=finish == "max_tokens"), finish, self.usage, self.model, self.opaque)

    def _unreadable(self, data: str) -> None:
        stripped = data.strip()
        if stripped == "[DONE]":
            self.done = True
        elif stripped and not stripped.startswith(":"):  # A comment that was put into a data line keeps alive as well.
            self.skip("is not JSON")


def _place_of(err: BaseException) -> str:
    """``FILE:LINE`` of the innermost frame."""
    trace = err.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "nowhere" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"


async def read_reply(
    response: HttpResponse, assembler: EventAssembler, classified: Callable[[HttpResponse, bytes], ProviderError]
) -> ModelReply:
    """Reads the answer to a request, which may be a stream or a document.

    Args:
        classified: the error that an answer stands for, given its beginning.

    Raises:
        ProviderError: with what had arrived, and what it cost as far as the service said.
    """
    try:
        try:
            await _read(response, assembler, classified)
        except (ProviderConnectionError, ProviderTimeoutError) as err:
            if not assembler.is_complete:
                raise
            _log.debug("the connection failed after the end of the answer: %s", err)
        return assembler.reply()
    except ProviderError as err:
        err.partial = assembler.partial()
        err.usage = assembler.usage
        raise
    except _MISSHAPEN as err:
        raise ServerError(
            "the service's answer is not of the expected shape",
            hint="check api_base, and that the service speaks this wire; --debug --log-level debug shows more",
            retryable=False,
            partial=assembler.partial(),
            usage=assembler.usage,
        ) from err


async def _read(
    response: HttpResponse, assembler: EventAssembler, classified: Callable[[HttpResponse, bytes], ProviderError]
) -> None:
    if response.status != 200:
        raise classified(response, await read_error(response))
    chunks = response.chunks()
    beginning = b""
    content_type = response.headers.get("content-type", "")
    if "json" in content_type or "html" in content_type:
        with anyio.move_on_after(response.timeout_secs * _DOCUMENT_PATIENCE) as waiting:
            # Some servers call a stream what it is not, and keep the connection open behind it: bytes tell, not labels.
            beginning = await _beginning(chunks)
            if not _is_stream(beginning):
                await _read_document(chunks, beginning, response, assembler, classified)
        if waiting.cancelled_caught:
            raise _too_slow(response)
        if not _is_stream(beginning):
            return
    await _read_stream(chunks, beginning, response, assembler, classified)


async def read_error(response: HttpResponse) -> bytes:
    """The beginning of an answer that reports an error. One that comes too slowly is left where it is."""
    return await response.read(_ERROR_BYTES, within_secs=min(_ERROR_SECS, response.timeout_secs))


async def _beginning(chunks: AsyncGenerator[bytes, None]) -> bytes:
    """The first bytes of a body, as many as it takes to tell a stream of events from a document."""
    beginning = b""
    async for chunk in chunks:
        beginning += chunk
        start = _without_blanks(beginning)
        if (start and not any(field.startswith(start) for field in _STREAM_STARTS)) or len(beginning) > _ERROR_BYTES:
            break
    return beginning


def _is_stream(beginning: bytes) -> bool:
    return _without_blanks(beginning).startswith(_STREAM_STARTS)


def _without_blanks(beginning: bytes) -> bytes:
    return beginning.removeprefix(b"\xef\xbb\xbf").lstrip()


async def _read_stream(
    chunks: AsyncGenerator[bytes, None],
    beginning: bytes,
    response: HttpResponse,
    assembler: EventAssembler,
    classified: Callable[[HttpResponse, bytes], ProviderError],
) -> None:
    """Reads an answer that is a stream: ``beginning``, and then ``chunks``."""
    decoder = SSEDecoder()
    start = bytearray()
    with anyio.CancelScope() as waiting:
        stream = _Stream(decoder, assembler, waiting, max(_QUIET_SECS, response.timeout_secs))
        if beginning:
            stream.take(beginning)
        if not assembler.done:
            async for chunk in chunks:
                stream.take(chunk)
                if assembler.done:
                    break
                if not assembler.is_started and len(start) < _DOCUMENT_BYTES:
                    start += chunk
    if assembler.done:
        await response.drain()
        return
    for event in decoder.flush():
        assembler.feed(event)
    if not assembler.is_started and start.lstrip().startswith((b"{", b"[", b"<")):
        _take_document(start, response, assembler, classified)  # Here too bytes tell, not labels.


class _Stream:
    """Feeds the events of a stream to an assembler, and sees to it that nobody waits behind its end."""

    __slots__ = (
        "_assembler",
        "_decode",
        "_ended_after",
        "_feed",
        "_parts",
        "_patience",
        "_pieces",
        "_quiet_since",
        "_waiting",
    )

    def __init__(
        self, decoder: SSEDecoder, assembler: EventAssembler, waiting: anyio.CancelScope, quiet_secs: float
    ) -> None:
        self._assembler = assembler
        self._decode = decoder.feed
        self._feed = assembler.feed
        self._parts = assembler.parts
        self._waiting = waiting
        self._patience = quiet_secs
        #: Pieces that have come, and the time of the first chunk since that added none.
        self._pieces = 0
        self._quiet_since: float | None = None
        #: Pieces that had come when the reason for the end was named.
        self._ended_after = -1

    def take(self, chunk: bytes) -> None:
        assembler = self._assembler
        for event in self._decode(chunk):
            self._feed(event)
            if assembler.done:
                return  # What follows may have come in the same chunk or not, so none of it counts.
            if self._ended_after < 0 and assembler.finish is not None:
                self._ended_after = self._parts.pieces
        if self._parts.pieces == self._pieces:
            self._note_quiet()
        else:
            self._pieces = self._parts.pieces
            self._quiet_since = None
        if assembler.finish is not None:
            # Nothing but the usage and the end marker is missing. Some servers send neither and keep the connection
            # open; others name a reason for the end with every piece and go on, after pauses too.
            if self._parts.pieces != self._ended_after:
                self._waiting.deadline = math.inf
            elif self._waiting.deadline == math.inf:
                self._waiting.deadline = anyio.current_time() + _LAST_SECS

    def _note_quiet(self) -> None:
        # A look at each chunk is enough, for the time between two chunks has a limit of its own.
        now = anyio.current_time()
        if self._quiet_since is None:
            self._quiet_since = now
        elif now - self._quiet_since > self._patience:
            raise ProviderTimeoutError(
                f"for {self._patience:g} s the service kept the connection alive without going on with its answer",
                hint="ask again, or another model; a proxy between may have lost the service",
                retryable=False,
            )


async def _read_document(
    chunks: AsyncGenerator[bytes, None],
    beginning: bytes,
    response: HttpResponse,
    assembler: EventAssembler,
    classified: Callable[[HttpResponse, bytes], ProviderError],
) -> None:
    """Reads an answer that is no stream: an error, a page, or a reply in one piece."""
    body = bytearray(beginning)
    async for chunk in chunks:
        body += chunk
        if len(body) > _DOCUMENT_BYTES:
            raise ServerError(f"the service answered with more than {_DOCUMENT_BYTES} bytes", retryable=False)
    _take_document(body, response, assembler, classified)


def _take_document(
    body: bytearray,
    response: HttpResponse,
    assembler: EventAssembler,
    classified: Callable[[HttpResponse, bytes], ProviderError],
) -> None:
    """Takes a whole answer that is no stream, or raises the error that it stands for."""
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError):
        payload = None
    try:
        if payload is not None and assembler.take_document(payload):
            return
    except _MISSHAPEN:
        pass
    raise classified(response, bytes(body))


def _too_slow(response: HttpResponse) -> ProviderTimeoutError:
    return ProviderTimeoutError(
        f"the answer did not come to its end within {response.timeout_secs * _DOCUMENT_PATIENCE:g} s",
        hint="timeout_secs of the provider sets this limit",
    )


async def read_document(
    response: HttpResponse,
    read: Callable[[Any], T | None],
    classified: Callable[[HttpResponse, bytes], ProviderError],
    *,
    entry: str,
) -> T:
    """What an answer in one document says, such as a list of models.

    Args:
        read: takes the decoded body; returns None if it is not what was asked for.
        classified: as for :func:`read_reply`.
        entry: name of the provider entry that was asked.

    Raises:
        ProviderError: the service refused, or answered with something else.
    """
    if response.status != 200:
        raise classified(response, await read_error(response))
    body = b""
    with anyio.move_on_after(response.timeout_secs * _DOCUMENT_PATIENCE) as waiting:
        body = await response.read(_DOCUMENT_BYTES)
    if waiting.cancelled_caught:
        raise _too_slow(response)
    if response.truncated:
        raise ServerError(
            f"{entry} answered with more than {_DOCUMENT_BYTES // 2**20} MiB",
            hint=f"check api_base in [providers.{entry}]",
            retryable=False,
        )
    try:
        found = read(json.loads(body))
    except (ValueError, RecursionError):
        found = None
    if found is None:
        raise classified(response, body)
    return found


def token_count(value: Any) -> int:
    """A count that a service sent; 0 for what is none."""
    return int(value) if _is_count(value) else 0


def any_count(values: Iterable[Any]) -> bool:
    """Whether one of the values is a count. If none is, the service has not said what a reply costs."""
    return any(map(_is_count, values))


def _is_count(value: Any) -> bool:
    # Some servers count in floats. A bool is no number here.
    return (type(value) is int or (type(value) is float and value.is_integer())) and 0 <= value < _MAX_COUNT
