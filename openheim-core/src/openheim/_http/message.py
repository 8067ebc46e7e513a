"""One request and its answer, in the terms that connections of every kind share."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from openheim import __version__
from openheim.errors import ProviderConnectionError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

__all__ = ("Answer", "Body", "Request", "Resolve", "Target", "Transport", "make_request", "parsed_url")

#: From host and port to the addresses to connect to.
Resolve: TypeAlias = "Callable[[str, int], Awaitable[Sequence[str]]]"

#: What may stand in a path or a query as it is; everything else is written as ``%XX``.
_PLAIN = "!$&'()*+,;=:@/?%~-._"

_LONE_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"(?:[!-~](?:[ -~]*[!-~])?)?")

_DEFAULT_HEADERS = {
    # Compressed streams come in blocks, and nobody wants to wait for a block of words to fill.
    "accept-encoding": "identity",
    "user-agent": f"openheim/{__version__}",
}

_PORTS = {"http": 80, "https": 443}


class Target(NamedTuple):
    """A parsed address.

    Args:
        host: in lower case and ASCII, an IPv6 address without brackets.
        authority: host and port as the ``host`` header has them: without a port that goes without saying.
        path: path and query as they are sent.
    """

    scheme: str
    host: str
    port: int
    authority: str
    path: str

    @property
    def origin(self) -> str:
        """Scheme, host and port, for messages: neither user nor query."""
        return f"{self.scheme}://{self.authority}"


class Request(NamedTuple):
    """A request whose headers were checked. ``timeout_secs`` bounds connecting and each gap, not the whole."""

    method: str
    target: Target
    headers: list[tuple[bytes, bytes]]
    content: bytes
    timeout_secs: float


class Body(Protocol):
    """The body of an answer: an async iterable of bytes."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None: ...


class Answer(NamedTuple):
    """The head of an answer, and its body to be read."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: Body


class Transport(Protocol):
    """A connection, opened when it is needed, that serves one request at a time.

    Errors are those of httpcore, or of httpx in their place.
    """

    async def send(self, request: Request) -> Answer: ...

    async def aclose(self) -> None: ...


@lru_cache(maxsize=64)
def parsed_url(address: str) -> Target:
    """The parsed address of a request.

    Raises:
        ProviderConnectionError: it is none for http or https. It is not quoted, since it may hold a password.
    """
    from urllib.parse import quote, urlsplit

    try:
        parts = urlsplit(address)
        scheme, port = parts.scheme.lower(), parts.port
        host = _ascii_host(parts.hostname or "")
    except ValueError:
        scheme = host = ""
    if scheme not in _PORTS or not host:
        raise ProviderConnectionError(
            "the address of the request is not usable",
            hint="check api_base: it has the form https://host/path",
            retryable=False,
        )
    authority = f"[{host}]" if ":" in host else host
    if port is not None and port != _PORTS[scheme]:
        authority = f"{authority}:{port}"
    path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    path = quote(_LONE_PERCENT.sub("%25", path), safe=_PLAIN)
    return Target(scheme, host, port or _PORTS[scheme], authority, path)


def _ascii_host(host: str) -> str:
    """The name in the form that name servers know.

    Raises:
        ValueError: it is no name.
    """
    if host.isascii():
        if any(character.isspace() or not character.isprintable() for character in host):
            raise ValueError("a host holds no blanks")
        return host
    import idna

    return idna.encode(host).decode("ascii")


def make_request(
    method: str, target: Target, headers: Mapping[str, str], content: bytes, timeout_secs: float
) -> Request:
    """A request with the headers that every request has.

    Raises:
        ProviderConnectionError: a header cannot be sent.
    """
    completed = {"host": target.authority, **_DEFAULT_HEADERS}
    if content or method not in ("GET", "HEAD"):
        completed["content-length"] = str(len(content))
    completed.update(headers)
    return Request(method, target, [_encoded(*header) for header in completed.items()], content, timeout_secs)


# The same headers come with every request of a provider.
@lru_cache(maxsize=256)
def _encoded(name: str, value: str) -> tuple[bytes, bytes]:
    # Checked here, because the library's own complaint would quote the value, and that may be a key.
    if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
        raise ProviderConnectionError(
            f"the header {name!r} holds characters that cannot be sent",
            hint="check the key and extra_headers for blanks, line breaks and special characters",
            retryable=False,
        )
    return name.encode("ascii"), value.encode("ascii")
