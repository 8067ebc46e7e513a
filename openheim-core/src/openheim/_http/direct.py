"""Connections without a proxy: those of httpcore, the part of httpx that speaks HTTP, without what is around it."""

from __future__ import annotations

import ipaddress
import select
import time
from typing import TYPE_CHECKING, Any, cast

import anyio
import httpcore

from openheim._http.message import Answer

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import AsyncGenerator, Sequence

    from openheim._http.message import Body, Request, Resolve, Target

__all__ = ("UPLOAD_BYTES", "DirectTransport", "Pieces")

#: Larger bodies are sent in pieces of this size: the time limit is for each piece, not for the whole upload.
UPLOAD_BYTES = 256 * 1024

#: Most that is held back to be sent together.
_JOINED_BYTES = 64 * 1024

#: How long one of several addresses may take to answer before the next one is tried.
_NEXT_ADDRESS_SECS = 3.0

#: How long closing a connection whose handshake failed may take.
_CLOSE_SECS = 2.0


class DirectTransport:
    """A :class:`~openheim._http.message.Transport` to one origin.

    A pool of connections looks through all of them whenever a request begins or ends: for one connection that is a
    quarter of the time of a request, and for a thousand requests at a time it takes a minute.

    Args:
        context: for https.
        keep_secs: age after which an idle connection is not used again.
        resolve: says which addresses lead to the origin; without it, the system does.
    """

    def __init__(
        self, target: Target, context: ssl.SSLContext | None, keep_secs: float, resolve: Resolve | None = None
    ) -> None:
        self._target = target
        self._origin = httpcore.Origin(target.scheme.encode(), target.host.encode(), target.port)
        self._context = context
        self._keep_secs = keep_secs
        self._resolve = resolve
        self._connection: httpcore.AsyncHTTP11Connection | None = None
        self._stream: _JoiningStream | None = None

    async def send(self, request: Request) -> Answer:
        connection = self._connection
        if connection is None or connection.is_closed() or connection.has_expired():
            await self.aclose()
            self._stream = await self._connect(request.timeout_secs)
            connection = self._connection = httpcore.AsyncHTTP11Connection(self._origin, self._stream, self._keep_secs)
        assert self._stream is not None
        self._stream.expect_head()
        target, timeout = request.target, request.timeout_secs
        response = await connection.handle_async_request(
            httpcore.Request(
                request.method,
                httpcore.URL(
                    scheme=self._origin.scheme,
                    host=self._origin.host,
                    port=self._origin.port,
                    target=target.path.encode("ascii"),
                ),
                headers=request.headers,
                content=request.content if len(request.content) <= UPLOAD_BYTES else Pieces(request.content),
                extensions={"timeout": {"connect": timeout, "read": timeout, "write": timeout}},
            )
        )
        self._stream.head_is_there()
        return Answer(response.status, response.headers, cast("Body", response.stream))

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.aclose()

    async def _connect(self, timeout_secs: float) -> _JoiningStream:
        target = self._target
        if self._resolve is None:
            stream = await httpcore.AnyIOBackend().connect_tcp(target.host, target.port, timeout=timeout_secs)
        else:
            addresses = await self._resolve(target.host, target.port)
            stream = await _connect_to_one(addresses, target.port, timeout_secs)
        if target.scheme == "http":
            return _JoiningStream(stream)
        assert self._context is not None
        try:
            return _JoiningStream(await stream.start_tls(self._context, target.host, timeout_secs))
        except BaseException:
            with anyio.move_on_after(_CLOSE_SECS, shield=True):
                await stream.aclose()
            raise


async def _connect_to_one(addresses: Sequence[str], port: int, timeout_secs: float) -> httpcore.AsyncNetworkStream:
    """A connection to the first of the addresses that answers.

    Raises:
        ValueError: one of them is no IP address, or there are none.
    """
    # What is no address would be looked up.
    checked = [str(ipaddress.ip_address(address)) for address in addresses]
    if not checked:
        raise ValueError("resolve returned no address")
    backend, deadline = httpcore.AnyIOBackend(), time.monotonic() + timeout_secs
    for address in checked[:-1]:
        left = deadline - time.monotonic()
        try:
            return await backend.connect_tcp(address, port, timeout=max(0.0, min(left, _NEXT_ADDRESS_SECS)))
        except (httpcore.ConnectError, httpcore.ConnectTimeout):
            continue
    return await backend.connect_tcp(checked[-1], port, timeout=max(0.0, deadline - time.monotonic()))


class _JoiningStream(httpcore.AsyncNetworkStream):
    """Sends the head of a request together with its body: one system call and one packet in place of two.

    What is written is held until the end of the request, which httpcore tells by writing nothing, or until it is much.

    While the head of an answer is expected, its reads have the time of one read together. Else a service that sends
    interim answers (1xx), or its head letter by letter, would never have been silent for too long.
    """

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self._held = b""
        #: Asked for before each request, and slow to be had.
        self._socket = stream.get_extra_info("socket")
        self._expects_head = False
        self._head_due: float | None = None

    def expect_head(self) -> None:
        """To be called before a request is sent."""
        self._expects_head, self._head_due = True, None

    def head_is_there(self) -> None:
        """To be called when status and headers of the answer have come."""
        self._expects_head = False

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - httpcore calls it so
        if self._held:
            await self.write(b"", timeout)
        if self._expects_head and timeout is not None:
            now = time.monotonic()
            if self._head_due is None:
                self._head_due = now + timeout
            timeout = max(0.0, min(timeout, self._head_due - now))
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - httpcore calls it so
        if buffer and len(self._held) + len(buffer) <= _JOINED_BYTES:
            self._held += buffer
            return
        held, self._held = self._held, b""
        if held:
            await self._stream.write(held, timeout)
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable" and self._socket is not None:
            return _is_readable(self._socket)
        return self._stream.get_extra_info(info)


def _is_readable(connection: socket.socket) -> bool:
    """Whether something has come, which on an idle connection is its end."""
    descriptor = connection.fileno()
    if descriptor < 0:
        return True
    if not hasattr(select, "poll"):
        return bool(select.select([descriptor], [], [], 0)[0])
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


class Pieces:
    """A body as an async iterable of pieces."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        view = memoryview(self._content)
        for start in range(0, len(view), UPLOAD_BYTES):
            yield bytes(view[start : start + UPLOAD_BYTES])
