"""Requests over HTTP.

The HTTP library is httpx, which only the package ``openheim._http`` knows, and which is imported at the first request.
What leaves this module are its own types, and as errors of requests
:class:`~openheim.errors.ProviderConnectionError` and :class:`~openheim.errors.ProviderTimeoutError`.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

from openheim._watching import body_watcher

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
    from types import TracebackType

    from openheim._http.failures import RequestErrors
    from openheim._http.message import Answer, Target, Transport

__all__ = ("HttpClient", "HttpExchange", "HttpResponse")

#: Connections of one origin that are kept for later requests, and for how long.
_MAX_IDLE = 100
_IDLE_SECS = 60.0
#: How long closing a connection may hold up whoever leaves it.
_CLOSE_SECS = 2.0


class HttpClient:
    """Makes requests, and keeps connections for the next ones. It belongs to one event loop.

    There is no limit on requests at a time: each caller has a connection of its own. Redirects are not followed.

    Args:
        proxy: address of a proxy for all requests, ``""`` for none; if left out, ``HTTP_PROXY``, ``HTTPS_PROXY`` and
            ``ALL_PROXY`` say. ``NO_PROXY`` counts in either case.
        ca_file: certificate authorities to trust, in place of ``SSL_CERT_FILE``, ``SSL_CERT_DIR`` and the usual ones.
        resolve: chooses where connections go. It is given host and port (the host may be an address already) and
            returns IP addresses, which are tried one after the other. Nothing is looked up beside it, so that an
            address that was checked is the one that is used; a certificate is still checked against the name. An error
            of openheim's that it raises reaches the caller as it is. Of proxies, only one that ``proxy`` names is used
            then, since a proxy looks names up itself; what ``NO_PROXY`` exempts from that one is resolved here.
    """

    def __init__(
        self,
        *,
        proxy: str | None = None,
        ca_file: str | None = None,
        resolve: Callable[[str, int], Awaitable[Sequence[str]]] | None = None,
    ) -> None:
        self._proxy = proxy or "" if resolve is not None else proxy
        self._ca_file = ca_file
        self._resolve = resolve
        self._origins: dict[tuple[str, str, int], _Origin] = {}
        self._closed = False

    def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes = b"",
        timeout_secs: float = 120.0,
    ) -> HttpExchange:
        """Makes a request. ``async with`` gives the :class:`HttpResponse` as soon as its headers are there.

        A connection whose body was read to its end is kept. Any other is closed at once when the block is left, for
        whatever reason.

        Args:
            headers: names in lower case. ``host``, ``content-length``, ``user-agent`` and ``accept-encoding`` need not
                be among them.
            timeout_secs: bounds connecting, the wait for the answer's headers once the request is sent, and each gap
                between two reads or two writes; not the whole.

        Raises:
            ProviderConnectionError: no connection, or it broke (also while the body is read).
            ProviderTimeoutError: nothing came within ``timeout_secs`` (also while the body is read).
            ConfigError: the proxy or the certificate authorities cannot be used.
        """
        if content and (told := body_watcher.get()) is not None:
            told(content)
        return HttpExchange(self, method, url, headers or {}, content, timeout_secs)

    async def aclose(self) -> None:
        """Closes the connections that are not in use; the others are closed when their requests end."""
        self._closed = True
        for origin in list(self._origins.values()):  # A request may add one meanwhile.
            await origin.close_idle(keep=0)

    def _origin(self, target: Target) -> _Origin:
        key = (target.scheme, target.host, target.port)
        origin = self._origins.get(key)
        if origin is None:
            from openheim._http.transports import transport_factory

            make = transport_factory(
                target, proxy=self._proxy, ca_file=self._ca_file, resolve=self._resolve, keep_secs=_IDLE_SECS
            )
            origin = self._origins[key] = _Origin(make)
        return origin


class HttpExchange:
    """A request and its answer, as an async context manager; see :meth:`HttpClient.stream`."""

    __slots__ = ("_arguments", "_client", "_origin", "_response", "_transport")

    def __init__(
        self, client: HttpClient, method: str, url: str, headers: Mapping[str, str], content: bytes, timeout: float
    ) -> None:
        self._client = client
        self._arguments = (method, url, headers, content, timeout)

    async def __aenter__(self) -> HttpResponse:
        from openheim._http.failures import RequestErrors
        from openheim._http.message import make_request, parsed_url

        method, address, headers, content, timeout = self._arguments
        target = parsed_url(address)
        request = make_request(method, target, headers, content, timeout)
        errors = RequestErrors(target, timeout)
        self._origin = self._client._origin(target)
        self._transport = self._origin.take()
        try:
            answer = await self._transport.send(request)
        except BaseException as err:
            with anyio.move_on_after(_CLOSE_SECS, shield=True):
                await self._transport.aclose()
            translated = errors.translate(err)
            if translated is None:
                raise
            raise translated from errors.shown_cause(err)
        self._response = HttpResponse(answer, errors, timeout)
        return self._response

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        response, origin = self._response, self._origin
        if response._ended and not self._client._closed:
            await response._aclose()  # The library itself shields this part from cancelling.
            origin.give_back(self._transport)
            # The client may have been closed meanwhile, and nobody would close this one any more.
            keep = 0 if self._client._closed else _MAX_IDLE
            await origin.close_idle(keep=keep, unused_since=time.monotonic() - _IDLE_SECS)
        else:
            with anyio.move_on_after(_CLOSE_SECS, shield=True):
                await response._aclose()
                await self._transport.aclose()


class HttpResponse:
    """The answer to a request.

    Attributes:
        status: HTTP status.
        headers: names in lower case; the values of a repeated name joined by commas.
        timeout_secs: that of the request.
        truncated: whether :meth:`read` left something out.
    """

    __slots__ = (
        "_body",
        "_ended",
        "_errors",
        "_iterator",
        "_reading",
        "headers",
        "status",
        "timeout_secs",
        "truncated",
    )

    def __init__(self, answer: Answer, errors: RequestErrors, timeout_secs: float) -> None:
        self.status = answer.status
        self.timeout_secs = timeout_secs
        self.headers: dict[str, str] = {}
        for raw_name, raw_value in answer.headers:
            name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
            self.headers[name] = f"{self.headers[name]}, {value}" if name in self.headers else value
        self.truncated = False
        self._body = answer.body
        self._iterator = answer.body.__aiter__()
        self._reading: AsyncGenerator[bytes, None] | None = None
        self._errors = errors
        self._ended = False

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes, decompressed if need be, in pieces of any size. Whoever leaves early need not close it.

        Raises:
            ProviderConnectionError, ProviderTimeoutError: see :meth:`HttpClient.stream`.
            ServerError: what it decompresses to is no answer any more, by its length.
        """
        self._reading = self._chunks()
        return self._reading

    async def _chunks(self) -> AsyncGenerator[bytes, None]:
        coding = self.headers.get("content-encoding", "").strip().lower()
        try:
            if coding in ("", "identity"):
                async for chunk in self._iterator:
                    yield chunk
            else:
                from openheim._http.inflate import Inflater

                inflater = Inflater(coding)
                async for chunk in self._iterator:
                    for piece in inflater.feed(chunk):
                        # A chunk may hold a thousand times its size, all of it without anything to wait for.
                        await anyio.lowlevel.checkpoint()
                        yield piece
                inflater.finish()
        except Exception as err:
            translated = self._errors.translate(err)
            if translated is None or translated is err:
                raise
            raise translated from self._errors.shown_cause(err)
        self._ended = True

    async def read(self, limit_bytes: int, *, within_secs: float | None = None) -> bytes:
        """The body, or its first ``limit_bytes``, or what came ``within_secs``; :attr:`truncated` tells which.

        Raises:
            ProviderConnectionError, ProviderTimeoutError: see :meth:`HttpClient.stream`.
        """
        body = bytearray()
        with anyio.move_on_after(within_secs) as waiting:
            async for chunk in self.chunks():
                body += chunk
                if len(body) > limit_bytes:
                    self.truncated = True
                    break
        if waiting.cancelled_caught:
            self.truncated = True
        return bytes(body[:limit_bytes])

    async def drain(self, limit_secs: float = 0.1) -> None:
        """Waits a short time for the end of the body, so that the connection can be kept.

        For streams that say themselves when they are complete. What comes is thrown away, and so are errors.
        """
        await self._stop_reading()
        with anyio.move_on_after(limit_secs):
            try:
                async for _ in self._iterator:
                    pass
            except Exception as err:
                if self._errors.translate(err) is None:
                    raise
            else:
                self._ended = True

    async def _aclose(self) -> None:
        await self._stop_reading()
        await self._body.aclose()

    async def _stop_reading(self) -> None:
        # A generator that is left to itself is closed by the event loop, in a task of its own.
        if self._reading is not None:
            await self._reading.aclose()


class _Origin:
    """The connections to one scheme, host and port.

    Each is a transport of its own that serves one request at a time, so that a request takes the same time however many
    others there are.
    """

    def __init__(self, make: Callable[[], Transport]) -> None:
        self._make = make
        self._idle: deque[tuple[float, Transport]] = deque()

    def take(self) -> Transport:
        """The connection used last, or a new one. One that the server closed meanwhile is opened again by itself."""
        return self._idle.pop()[1] if self._idle else self._make()

    def give_back(self, transport: Transport) -> None:
        self._idle.append((time.monotonic(), transport))

    async def close_idle(self, *, keep: int, unused_since: float = 0.0) -> None:
        """Closes the connections not used since then, and the oldest until at most ``keep`` are left.

        Whoever is cancelled meanwhile closes them all the same. Together they have :data:`_CLOSE_SECS`; then they are
        closed without a farewell.
        """
        deadline = 0.0
        while self._idle and (len(self._idle) > keep or self._idle[0][0] < unused_since):
            _, transport = self._idle.popleft()
            deadline = deadline or anyio.current_time() + _CLOSE_SECS
            with anyio.CancelScope(deadline=deadline, shield=True):
                await transport.aclose()
