"""What :mod:`openheim.http` needs of the HTTP library: the one module that imports it, itself imported when needed."""

from __future__ import annotations

import errno
import os
import re
import ssl
import sys
from contextlib import contextmanager
from functools import lru_cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from openheim import __version__
from openheim._proxies import proxy_for
from openheim.errors import ConfigError, ProviderConnectionError, ProviderError, ProviderTimeoutError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterator, Mapping


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
    import httpcore  # the part of httpx that speaks HTTP; see DirectTransport
    import httpx

__all__ = ("RequestErrors", "make_request", "parsed_url", "transport_factory")

#: Larger bodies are sent in pieces of this size: the time limit is for each piece, not for the whole upload.
_UPLOAD_BYTES = 256 * 1024

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"(?:[!-~](?:[ -~]*[!-~])?)?")

_DEFAULT_HEADERS = {
    # Compressed streams come in blocks, and nobody wants to wait for a block of words to fill.
    "accept-encoding": "identity",
    "user-agent": f"openheim/{__version__}",
}


# --- requests ---


@lru_cache(maxsize=64)
def parsed_url(address: str) -> httpx.URL:
    """The parsed address of a request.

    Raises:
        ProviderConnectionError: it is none for http or https. It is not quoted, since it may hold a password.
    """
    try:
        url = httpx.URL(address)
    except (httpx.InvalidURL, UnicodeError):
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise ProviderConnectionError(
            "the address of the request is not usable",
            hint="check api_base: it has the form https://host/path",
            retryable=False,
        )
    return url


def make_request(
    method: str,
    url: httpx.URL,
    headers: Mapping[str, str],
    content: bytes,
    timeout_secs: float,
    sent: Callable[[], None],
) -> httpx.Request:
    """A request with the headers that every request has.

    Args:
        sent: called when the body has been sent.

    Raises:
        ProviderConnectionError: a header cannot be sent.
    """
    completed = {"host": url.netloc.decode("ascii"), **_DEFAULT_HEADERS}
    if content or method not in ("GET", "HEAD"):
        completed["content-length"] = str(len(content))
    completed.update(headers)
    return httpx.Request(
        method,
        url,
        headers=_encoded(completed),
        stream=_Body(content, sent),
        extensions={"timeout": {"connect": timeout_secs, "read": timeout_secs, "write": timeout_secs}},
    )


class _Body(httpx.AsyncByteStream):
    """A body in pieces. Whoever asks for more behind the last one has sent all of it."""

    def __init__(self, content: bytes, sent: Callable[[], None]) -> None:
        self._content = content
        self._sent = sent

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        if len(self._content) <= _UPLOAD_BYTES:
            yield self._content
        else:
            view = memoryview(self._content)
            for start in range(0, len(view), _UPLOAD_BYTES):
                yield bytes(view[start : start + _UPLOAD_BYTES])
        self._sent()


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    # Checked here, because the library's own complaint would quote the value, and that may be a key.
    encoded = []
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise ProviderConnectionError(
                f"the header {name!r} holds characters that cannot be sent",
                hint="check the key and extra_headers for blanks, line breaks and special characters",
                retryable=False,
            )
        encoded.append((name.encode("ascii"), value.encode("ascii")))
    return encoded


# --- connections ---


class _Backend(httpcore.AnyIOBackend):
    """Remembers its connection: httpcore forgets one whose TLS handshake is cancelled, and leaves it open."""

    stream: httpcore.AsyncNetworkStream | None = None

    async def connect_tcp(self, *arguments: Any, **options: Any) -> httpcore.AsyncNetworkStream:
        self.stream = await super().connect_tcp(*arguments, **options)
        return self.stream


class DirectTransport(httpx.AsyncBaseTransport):
    """A transport for one connection, one request at a time, without a pool around it.

    A pool looks through all its connections whenever a request begins or ends: for one connection that is a quarter of
    the time of a request, and for a thousand requests at a time it takes a minute. Errors are those of httpcore.
    """

    def __init__(self, url: httpx.URL, context: ssl.SSLContext | None, keep_secs: float) -> None:
        self._backend = _Backend()
        self._make = partial(
            httpcore.AsyncHTTPConnection,
            origin=httpcore.Origin(url.raw_scheme, url.raw_host, url.port or (443 if url.scheme == "https" else 80)),
            ssl_context=context,
            keepalive_expiry=keep_secs,
            network_backend=self._backend,
        )
        self._connection = self._make()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        connection = self._connection
        if connection.is_closed() or connection.has_expired():
            await self.aclose()
            connection = self._connection = self._make()
        url = request.url
        response = await connection.handle_async_request(
            httpcore.Request(
                request.method,
                httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(
            response.status, headers=response.headers, stream=_ResponseStream(response), extensions=response.extensions
        )

    async def aclose(self) -> None:
        await self._connection.aclose()
        if self._backend.stream is not None:
            await self._backend.stream.aclose()


class _ResponseStream(httpx.AsyncByteStream):
    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    def __aiter__(self) -> AsyncIterator[bytes]:
        return cast("AsyncIterable[bytes]", self._response.stream).__aiter__()

    async def aclose(self) -> None:
        await self._response.aclose()


def transport_factory(
    url: httpx.URL, *, proxy: str | None, ca_file: str | None, keep_secs: float
) -> Callable[[], httpx.AsyncBaseTransport]:
    """What makes transports to the origin of ``url``, each for one connection that is kept for ``keep_secs``.

    Raises:
        ConfigError: the proxy or the certificate authorities cannot be used.
    """
    via = proxy_for(url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80), proxy)
    if via is not None and via.startswith("socks") and find_spec("socksio") is None:
        raise ConfigError("a SOCKS proxy needs the package socksio", hint="pip install socksio")
    via_tls = via is not None and via.startswith("https:")
    context = _tls_context(ca_file) if url.scheme == "https" or via_tls else None
    if via is None:
        return partial(DirectTransport, url, context, keep_secs)
    return partial(
        httpx.AsyncHTTPTransport,
        # Without a context, the library would make one when it needs one, and for plain http it never does.
        verify=cast("ssl.SSLContext", context),
        limits=httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=keep_secs),
        proxy=httpx.Proxy(via, ssl_context=context if via_tls else None),
    )


def _tls_context(ca_file: str | None) -> ssl.SSLContext:
    return _make_tls_context(ca_file or os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@lru_cache(maxsize=8)
def _make_tls_context(ca_file: str | None, ca_dir: str | None) -> ssl.SSLContext:
    # One for the whole process: making it takes 30 ms and most of a megabyte.
    try:
        if ca_file:
            return ssl.create_default_context(cafile=os.path.expanduser(ca_file))
        if ca_dir:
            return ssl.create_default_context(capath=ca_dir)
        return httpx.create_ssl_context(trust_env=False)
    except OSError as err:
        raise ConfigError(
            f"cannot read certificate authorities from {ca_file or ca_dir}: {_reason(err)}",
            hint="check ca_file in [http] and SSL_CERT_FILE; it is a file in PEM form",
        ) from err


# --- errors ---


class RequestErrors:
    """Turns the library's errors about one request into ours. Neither user, query nor headers get into a message."""

    __slots__ = ("_timeout_secs", "_where")

    def __init__(self, url: httpx.URL, timeout_secs: float) -> None:
        self._where = f"{url.scheme}://{url.netloc.decode('ascii')}"
        self._timeout_secs = timeout_secs

    def translate(self, err: BaseException) -> ProviderError | None:
        """Our error, or None for one that is no fault of the connection."""
        match err:
            case ProviderError():
                return err
            case httpx.ConnectTimeout() | httpcore.ConnectTimeout():
                return ProviderTimeoutError(
                    f"no connection to {self._where} within {self._timeout_secs:g} s",
                    hint="check network, proxy and api_base",
                )
            case httpx.TimeoutException() | httpcore.TimeoutException():
                return ProviderTimeoutError(
                    f"nothing came from {self._where} for {self._timeout_secs:g} s",
                    hint="timeout_secs of the provider sets this limit",
                )
            case httpx.ConnectError() | httpx.ProxyError() | httpcore.ConnectError() | UnicodeError():
                return self._unconnected(err)
            case httpx.HTTPError() | httpcore.NetworkError() | httpcore.ProtocolError() | OSError():
                return ProviderConnectionError(f"the connection to {self._where} broke: {_reason(err)}")
        return None

    def unanswered(self) -> ProviderError:
        """The error of a service that sent what is no answer yet, for too long."""
        return ProviderTimeoutError(
            f"no answer came from {self._where} within {self._timeout_secs:g} s",
            hint="timeout_secs of the provider sets this limit",
        )

    def _unconnected(self, err: BaseException) -> ProviderError:
        for cause in _causes(err):
            if isinstance(cause, ssl.SSLCertVerificationError):
                return ProviderConnectionError(
                    f"the certificate of {self._where} is not trusted: {cause.verify_message}",
                    hint="if a proxy opens TLS here, set ca_file in [http], or SSL_CERT_FILE, to its authority",
                    retryable=False,
                )
        return ProviderConnectionError(
            f"no connection to {self._where}: {_reason(err)}", hint="check network, proxy and api_base"
        )


def _causes(err: BaseException) -> Iterator[BaseException]:
    """``err`` and what led to it, outermost first."""
    current: BaseException | None = err
    while current is not None:
        yield current
        if isinstance(current, BaseExceptionGroup):
            current = current.exceptions[0]
        else:
            current = current.__cause__ or current.__context__


def _reason(err: BaseException) -> str:
    """The system's words for what happened where there are some, else the library's."""
    reason = str(err) or type(err).__name__
    for cause in _causes(err):
        if isinstance(cause, OSError) and cause.strerror:
            # asyncio puts words of its own, with the address, in place of the system's.
            replaced = cause.errno in errno.errorcode and cause.strerror.startswith("Connect call failed")
            reason = os.strerror(cause.errno) if replaced and cause.errno else cause.strerror
    return reason.rstrip(".").lower()
