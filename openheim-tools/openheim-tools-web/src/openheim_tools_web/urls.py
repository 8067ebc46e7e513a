"""Reading addresses strictly: whatever two parsers could read in two ways is refused."""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urljoin

from openheim import ToolError

if TYPE_CHECKING:
    from openheim_tools_web.ranges import Address

__all__ = ("MAX_URL_LENGTH", "WebUrl", "is_web_address", "joined", "parse_host", "parse_url")

MAX_URL_LENGTH = 8192

_PORTS = {"http": 80, "https": 443}
_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*")
#: What other parsers take for an IPv4 address: a name whose last part is a number (WHATWG URL, "ends in a number").
_ENDS_IN_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")
#: Letters, digits and a few signs mean the same whether they are escaped or not (RFC 3986, 6.2.2.2).
_UNRESERVED = re.compile(r"%(2D|2E|3[0-9]|4[1-9A-F]|5[0-9A]|5F|6[1-9A-F]|7[0-9A]|7E)", re.IGNORECASE)
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_LONE_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
_PLAIN = "!$&'()*+,;=:@/?%~-._"


class WebUrl(NamedTuple):
    """An address in one canonical spelling.

    Args:
        scheme: ``http`` or ``https``.
        host: in lower case and ASCII; an IPv6 address without brackets.
        path: path and query as they are sent.
        literal: the host, if it is an address and no name.
    """

    scheme: str
    host: str
    port: int
    path: str
    literal: Address | None

    @property
    def origin(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port == _PORTS[self.scheme] else f":{self.port}")

    def __str__(self) -> str:
        return self.origin + self.path


def parse_url(text: str) -> WebUrl:
    """Reads an address.

    Raises:
        ToolError: it is none that may be fetched.
    """
    text = text.strip(" \t\r\n")
    if len(text) > MAX_URL_LENGTH:
        raise ToolError(f"the URL is longer than {MAX_URL_LENGTH} characters")
    if any(character.isspace() or not character.isprintable() for character in text):
        raise ToolError("the URL holds blanks or control characters; write them as %20 and the like")
    scheme, separator, rest = text.partition("://")
    scheme = scheme.lower()
    if not separator or scheme not in _PORTS:
        raise ToolError("only URLs that start with http:// or https:// can be fetched")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in authority:
        raise ToolError("the URL has a user part (before @), which is not allowed")
    host, port = _split_port(authority)
    name, literal = parse_host(host)
    path = _canonical_path(rest[len(authority) :].partition("#")[0])
    return WebUrl(scheme, name, _PORTS[scheme] if port is None else port, path, literal)


def _split_port(authority: str) -> tuple[str, int | None]:
    host, port = authority, ""
    bracket = authority.rfind("]")
    if ":" in authority[bracket + 1 :]:
        host, _, port = authority.rpartition(":")
    if not port:
        return host, None
    if not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) < 65536:
        raise ToolError("the URL has a port that is not between 1 and 65535")
    return host, int(port)


def parse_host(host: str) -> tuple[str, Address | None]:
    """The host in its canonical spelling, and the address that it is, if any. IPv6 is given in brackets.

    Raises:
        ToolError: it is no host, or an IPv4 address in another spelling than four decimal numbers.
    """
    if host.startswith("["):
        return _parse_ipv6(host)
    if not host.isascii():
        host = _ascii_name(host)
    name = host.lower().removesuffix(".")
    if not name:
        raise ToolError("the URL names no host")
    if _ENDS_IN_NUMBER.fullmatch(name):
        try:
            address = ipaddress.IPv4Address(name)
        except ValueError:
            raise ToolError("the URL's host is an IPv4 address in an odd spelling; write it as 192.0.2.1") from None
        return str(address), address
    if len(name) > 253 or not _NAME.fullmatch(name):
        raise ToolError("the URL names a host that cannot exist")
    return name, None


def _parse_ipv6(host: str) -> tuple[str, Address]:
    try:
        if not host.endswith("]") or "%" in host:
            raise ValueError("no address, or one with a zone")
        address = ipaddress.IPv6Address(host[1:-1])
    except ValueError:
        raise ToolError("the URL's host in brackets is no IPv6 address") from None
    return str(address), address


def _ascii_name(host: str) -> str:
    """A name in another script, as name servers know it."""
    import idna

    lower = host.lower()
    try:
        # What normalisation would change (full-width digits, digits in circles, other dots) may become an address.
        # Some of it is gone in lower case (the sign of Kelvin is a plain k there), and some comes with it.
        if len(host) > 253 or not (_is_normal(host) and _is_normal(lower) and _only_ascii_dots(lower)):
            raise ValueError("odd characters")
        return idna.encode(lower).decode("ascii")
    except (ValueError, UnicodeError):  # idna's own errors are UnicodeErrors
        raise ToolError("the URL's host holds characters that no name has") from None


def _is_normal(host: str) -> bool:
    return unicodedata.is_normalized("NFKC", host)


def _only_ascii_dots(host: str) -> bool:
    return not any(dot in host for dot in "\u3002\uff0e\uff61")


def _canonical_path(text: str) -> str:
    """Path and query with as few escapes as possible and without ``.`` and ``..``, so that rules can be relied on."""
    escaped = quote(_LONE_PERCENT.sub("%25", text), safe=_PLAIN)
    escaped = _UNRESERVED.sub(lambda match: chr(int(match[1], 16)), escaped)
    escaped = _ESCAPE.sub(lambda match: match[0].upper(), escaped)
    path, separator, query = escaped.partition("?")
    kept: list[str] = []
    parts = path.split("/")[1:]
    for part in parts:
        if part == "..":
            if kept:
                kept.pop()
        elif part != ".":
            kept.append(part)
    if parts and parts[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept) + separator + query


def is_web_address(url: str) -> bool:
    """Whether an address is one of the web, whatever else may be wrong with it."""
    return url.lower().startswith(tuple(f"{scheme}://" for scheme in _PORTS))


def joined(base: str, reference: str) -> str:
    """``reference`` resolved against ``base``; as it is if that cannot be done."""
    try:
        return urljoin(base, reference)
    except ValueError:
        return reference
