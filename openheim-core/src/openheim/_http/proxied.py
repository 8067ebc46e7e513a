"""Connections through a proxy, as httpx makes them."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

import anyio
import httpcore

from openheim._http.direct import Pieces
from openheim._http.message import Answer
from openheim.errors import ConfigError

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, Callable, Iterator

    from openheim._http.message import Body, Request


@contextmanager
def _without_command_line() -> Iterator[None]:
    # httpx imports its own command line when click and rich are there, which takes a third of the time of its import.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # the documented way to make an import fail
    try:
        yield
    finally:
        if sys.modules["httpx._main"] is None:
            del sys.modules["httpx._main"]


with _without_command_line():
    import httpx

__all__ = ("ProxiedTransport",)


class _Upload(httpx.AsyncByteStream):
    """A body that tells when all of it has been sent: when more is asked for behind its end."""

    def __init__(self, content: bytes, sent: Callable[[], None]) -> None:
        self._content = content
        self._sent = sent

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        async for piece in Pieces(self._content):
            yield piece
        self._sent()


class ProxiedTransport:
    """A :class:`~openheim._http.message.Transport` through a proxy.

    Args:
        proxy: address of the proxy.
        context: for https, to the server or to the proxy.
        keep_secs: age after which an idle connection is not used again.

    Raises:
        ConfigError: the proxy speaks SOCKS, and the package for that is missing.
    """

    def __init__(self, proxy: str, context: ssl.SSLContext | None, keep_secs: float) -> None:
        if proxy.startswith("socks") and find_spec("socksio") is None:
            raise ConfigError("a SOCKS proxy needs the package socksio", hint="pip install socksio")
        self._transport = httpx.AsyncHTTPTransport(
            # Without a context, the library would make one when it needs one, and for plain http it never does.
            verify=cast("ssl.SSLContext", context),
            limits=httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=keep_secs),
            proxy=httpx.Proxy(proxy, ssl_context=context if proxy.startswith("https:") else None),
        )

    async def send(self, request: Request) -> Answer:
        target, timeout = request.target, request.timeout_secs
        # As in a direct connection, the head of the answer has the time of one read, however many reads it takes.
        waiting = anyio.CancelScope()

        def sent() -> None:
            waiting.deadline = anyio.current_time() + timeout

        with waiting:
            response = await self._transport.handle_async_request(
                httpx.Request(
                    request.method,
                    httpx.URL(
                        scheme=target.scheme, host=target.host, port=target.port, raw_path=target.path.encode("ascii")
                    ),
                    headers=request.headers,
                    # What httpx makes a body of by itself gets further headers.
                    stream=_Upload(request.content, sent),
                    extensions={"timeout": {"connect": timeout, "read": timeout, "write": timeout}},
                )
            )
        if waiting.cancelled_caught:
            raise httpcore.ReadTimeout
        return Answer(response.status_code, response.headers.raw, cast("Body", response.stream))

    async def aclose(self) -> None:
        await self._transport.aclose()
