"""The guard: which hosts may be reached, decided on addresses and not on names.

The connection is made to an address that was checked here, so that a name that means something else a moment later
makes no difference.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, TypeAlias

from openheim import ToolError
from openheim_tools_web.ranges import refusal
from openheim_tools_web.urls import parse_host

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from openheim_tools_web.exceptions import PrivateHost
    from openheim_tools_web.ranges import Address
    from openheim_tools_web.urls import WebUrl

__all__ = ("Guard", "LookUp")

#: From name and port to its addresses.
LookUp: TypeAlias = "Callable[[str, int], Awaitable[Sequence[str]]]"

_LOOPBACK = (ipaddress.IPv4Address("127.0.0.1"), ipaddress.IPv6Address("::1"))

#: Of the addresses of a name, all are checked and so many are tried.
MAX_TRIED = 8


class Guard:
    """Decides where connections may go.

    Args:
        look_up: finds the addresses of a name; asked once for each connection.
        exceptions: what may be reached though it is not public.
    """

    def __init__(self, look_up: LookUp, exceptions: Sequence[PrivateHost] = ()) -> None:
        self._look_up = look_up
        self._exceptions = exceptions

    def check(self, url: WebUrl) -> None:
        """Refuses what can be told from the URL alone.

        Raises:
            ToolError: it is not public.
        """
        if url.literal is not None:
            self._check_address(url.literal, url.host, url.port, url.host)
        elif (url.host == "localhost" or url.host.endswith(".localhost")) and not any(
            self._is_excepted(url.host, url.port, address) for address in _LOOPBACK
        ):
            raise _refused(f"{url.host} is this machine (RFC 6761)")

    async def resolve(self, host: str, port: int) -> list[str]:
        """The addresses to connect to, for :class:`~openheim.http.HttpClient`.

        Raises:
            ToolError: one of the host's addresses is not public, or it has none.
        """
        name, literal = parse_host(f"[{host}]" if ":" in host else host)
        if literal is not None:
            self._check_address(literal, name, port, name)
            return [str(literal)]
        addresses = [self._parsed(address) for address in await self._look_up(name, port)]
        for address in addresses:
            # The address itself would tell about a network that the model has no business in.
            self._check_address(address, name, port, f"an address of {name}")
        if not addresses:
            raise ToolError(f"cannot find the host {name}: it has no address")
        return [str(address) for address in addresses[:MAX_TRIED]]

    def _parsed(self, address: str) -> Address:
        try:
            return ipaddress.ip_address(address)
        except ValueError:
            raise ToolError("the name server gave something that is no address") from None

    def _check_address(self, address: Address, host: str, port: int, shown: str) -> None:
        what = refusal(address)
        if what is not None and not self._is_excepted(host, port, address):
            raise _refused(f"{shown} is {what}")

    def _is_excepted(self, host: str, port: int, address: Address) -> bool:
        return any(exception.covers(host, port, address) for exception in self._exceptions)


def _refused(what: str) -> ToolError:
    return ToolError(f"{what}; only public addresses can be fetched")
