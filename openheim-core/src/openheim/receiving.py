"""Receives a model's reply: reads the answer to a request, as a stream of events or a document.

What all wires have in common. A wire adds an :class:`~openheim.assembling.EventAssembler` that knows its events.
"""

from __future__ import annotations

import json
import logging
import math
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from openheim.assembling import MISSHAPEN
from openheim.errors import ProviderConnectionError, ProviderError, ProviderTimeoutError, ServerError
from openheim.sse import SSEDecoder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from openheim.assembling import EventAssembler
    from openheim.http import HttpResponse
    from openheim.providers import ModelReply

__all__ = ("read_document", "read_error", "read_reply")

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
    except MISSHAPEN as err:
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
    except MISSHAPEN:
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
