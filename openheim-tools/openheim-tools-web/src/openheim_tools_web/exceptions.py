"""Hosts and networks that are not public and may be fetched from all the same, because the settings say so."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, NamedTuple

from openheim_tools_web.urls import parse_host, parse_url

if TYPE_CHECKING:
    from openheim_tools_web.ranges import Address

__all__ = ("PrivateHost", "parse_private_host")


class PrivateHost(NamedTuple):
    """One entry of ``allow_private``: a name or a network, and the port it is limited to, if any."""

    name: str
    network: ipaddress.IPv4Network | ipaddress.IPv6Network | None
    port: int | None

    def covers(self, host: str, port: int, address: Address) -> bool:
        """Whether a connection to ``address``, found for ``host``, is allowed."""
        if self.port is not None and self.port != port:
            return False
        if self.network is None:
            return host == self.name
        return address.version == self.network.version and address in self.network


def parse_private_host(entry: str) -> PrivateHost:
    """Reads ``localhost``, ``localhost:8080``, ``10.1.2.3``, ``10.0.0.0/8``, ``[::1]:8080`` or ``fd00::/8``.

    Raises:
        ValueError: it is none of these.
        ToolError: the host in it cannot exist.
    """
    try:
        return PrivateHost("", ipaddress.ip_network(entry), None)
    except ValueError:
        if "/" in entry:
            raise ValueError("is no network, such as 10.0.0.0/8 (bits behind the prefix are 0)") from None
    if any(character in entry for character in "?#@ "):
        raise ValueError("is no host, such as localhost:8080")
    url = parse_url(f"http://{entry}")
    port = url.port if entry.rpartition("]")[2].partition(":")[2] else None
    name, literal = parse_host(f"[{url.host}]" if ":" in url.host else url.host)
    if literal is None:
        return PrivateHost(name, None, port)
    return PrivateHost("", ipaddress.ip_network(str(literal)), port)
