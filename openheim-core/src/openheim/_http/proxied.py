"""Connections through a proxy, as httpx makes them."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

from openheim._http.direct import UPLOAD_BYTES, Pieces
from openheim._http.message import Answer
from openheim.errors import ConfigError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

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
        # What httpx makes a body of by itself gets further headers.
        small = len(request.content) <= UPLOAD_BYTES
        response = await self._transport.handle_async_request(
            httpx.Request(
                request.method,
                httpx.URL(
                    scheme=target.scheme, host=target.host, port=target.port, raw_path=target.path.encode("ascii")
                ),
                headers=request.headers,
                stream=httpx.ByteStream(request.content) if small else None,
                content=None if small else Pieces(request.content),
                extensions={"timeout": {"connect": timeout, "read": timeout, "write": timeout}},
            )
        )
        return Answer(response.status_code, response.headers.raw, cast("Body", response.stream))

    async def aclose(self) -> None:
        await self._transport.aclose()
