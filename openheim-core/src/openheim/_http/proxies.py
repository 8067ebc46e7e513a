"""Which proxy a request goes through.

The configured one, else what ``HTTP_PROXY`` and its like say, unless ``NO_PROXY`` names the host.
"""

from __future__ import annotations

import ipaddress
import os
import sys

from openheim._http.addresses import address_problem
from openheim.errors import ConfigError

__all__ = ("checked_proxy", "proxy_for")

_SCHEMES = ("http", "https", "socks5", "socks5h")


def proxy_for(scheme: str, host: str, port: int, configured: str | None = None) -> str | None:
    """The address of the proxy to use, or None.

    Args:
        scheme: ``http`` or ``https``.
        host: in lower case, an IPv6 address without brackets.
        configured: used in place of the environment's proxies; ``""`` for none at all.

    Raises:
        ConfigError: the proxy's address cannot be used.
    """
    found = _proxies_found()
    address = configured if configured is not None else found.get(scheme) or found.get("all") or ""
    if not address or _is_exempt(host, port, found.get("no") or os.environ.get("NO_PROXY", "")):
        return None
    return checked_proxy(address, "[http] proxy" if configured is not None else f"{scheme.upper()}_PROXY or ALL_PROXY")


def _proxies_found() -> dict[str, str]:
    """What environment and system settings say, by scheme, and ``no`` for the exceptions."""
    if sys.platform in ("darwin", "win32"):
        from urllib.request import getproxies

        return getproxies()
    found = {}
    # Names in lower case win over those in capitals, even to say that there is none.
    for name in sorted(os.environ):
        scheme, separator, rest = name.lower().partition("_proxy")
        if separator and not rest:
            found[scheme] = os.environ[name]
    if "REQUEST_METHOD" in os.environ and "http_proxy" not in os.environ:
        # In a CGI program, HTTP_PROXY is what a client wrote into the header "Proxy".
        found.pop("http", None)
    return {scheme: address for scheme, address in found.items() if address}


def checked_proxy(address: str, where: str) -> str:
    """``address`` with a scheme.

    Raises:
        ConfigError: it is no address of a proxy. The message does not quote it, since it may hold a password.
    """
    scheme, separator, rest = address.partition("://")
    address = f"{scheme.lower()}://{rest}" if separator else f"http://{address}"
    if problem := address_problem(address, _SCHEMES):
        raise ConfigError(
            f"{where} is no usable address of a proxy: it {problem}",
            hint=f"write SCHEME://HOST:PORT, SCHEME one of {', '.join(_SCHEMES)}",
        )
    return address


def _is_exempt(host: str, port: int, exceptions: str) -> bool:
    return any(_matches(host, port, entry) for entry in exceptions.lower().replace(",", " ").split())


def _matches(host: str, port: int, entry: str) -> bool:
    if entry == "*":
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        pass
    name, separator, digits = entry.rpartition(":")
    if separator and digits.isdigit():
        if int(digits) != port:
            return False
        entry = name
    entry = entry.strip("[]").removeprefix("*").removeprefix(".")
    return bool(entry) and (host == entry or host.endswith(f".{entry}"))
