"""Whether an address can be used at all, told before anything is sent to it."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("address_problem", "is_loopback")

#: What stands between ``scheme://`` and the path. User and password are not looked at.
_AUTHORITY = re.compile(r"(?:.*@)?(?P<host>\[[^\[\]]*\]|[^\[\]:@]*)(?::(?P<port>[0-9]*))?")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?")
_FOUR_NUMBERS = re.compile(r"[0-9]+(?:\.[0-9]+){3}")


def address_problem(address: str, schemes: Sequence[str] = ("http", "https")) -> str | None:
    """What is wrong with the address, as a phrase such as ``names no host``; None if it can be used.

    The phrase does not quote the address, which may hold a password.
    """
    scheme, separator, rest = address.partition("://")
    if not separator or scheme not in schemes:
        return f"must start with {' or '.join(f'{one}://' for one in schemes)}"
    if any(character.isspace() or not character.isprintable() for character in address):
        return "must not hold blanks or control characters"
    parts = _AUTHORITY.fullmatch(re.split(r"[/?#]", rest, maxsplit=1)[0])
    if parts is None:
        return f"is not of the form {schemes[0]}://HOST:PORT"
    host, port = parts["host"], parts["port"]
    if not host:
        return "names no host"
    if not _is_host(host):
        return "names a host that cannot exist"
    if port and (len(port) > 5 or not 0 < int(port) < 65536):
        return "has a port that is not between 1 and 65535"
    return None


def is_loopback(address: str) -> bool:
    """Whether what is sent to the address stays on this machine: 127.0.0.0/8, ``[::1]`` or ``localhost`` by name."""
    authority = re.split(r"[/?#]", address.partition("://")[2], maxsplit=1)[0]
    parts = _AUTHORITY.fullmatch(authority)
    # Where a name and password stand before the host, readers of addresses disagree about what the host is.
    if parts is None or "@" in authority or "\\" in authority:
        return False
    host = parts["host"]
    if host.lower() in ("localhost", "localhost."):
        return True
    try:
        return ipaddress.ip_address(host[1:-1] if host.startswith("[") else host).is_loopback
    except ValueError:
        return False


def _is_host(host: str) -> bool:
    try:
        if host.startswith("["):
            ipaddress.IPv6Address(host[1:-1])
            return True
        if _FOUR_NUMBERS.fullmatch(host):
            ipaddress.IPv4Address(host)
            return True
    except ValueError:
        return False
    if host.isascii():
        return len(host) <= 254 and _NAME.fullmatch(host) is not None
    # Which letters of other scripts may stand in a name is a long table, which another package has.
    from openheim._http.message import parsed_url
    from openheim.errors import ProviderConnectionError

    try:
        parsed_url(f"https://{host}")
    except ProviderConnectionError:
        return False
    return True
