"""Which addresses are not public, and who says so.

The special-purpose registries of IANA (RFC 6890 and its successors) are the base; what they leave open and no web
server can have is refused too. An address that carries another one inside is judged by that one as well.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final, TypeAlias

__all__ = ("Address", "refusal")

Address: TypeAlias = IPv4Address | IPv6Address

_V4: Final = tuple(
    (IPv4Network(network), what)
    for network, what in (
        ("0.0.0.0/8", "this host (RFC 1122)"),
        ("10.0.0.0/8", "a private network (RFC 1918)"),
        ("100.64.0.0/10", "shared by carriers (RFC 6598)"),
        ("127.0.0.0/8", "loopback (RFC 1122)"),
        ("169.254.0.0/16", "link-local (RFC 3927), where clouds keep metadata"),
        ("172.16.0.0/12", "a private network (RFC 1918)"),
        ("192.0.0.0/24", "reserved for protocols (RFC 6890)"),
        ("192.0.2.0/24", "for documentation (RFC 5737)"),
        ("192.88.99.0/24", "a former 6to4 relay (RFC 7526)"),
        ("192.168.0.0/16", "a private network (RFC 1918)"),
        ("198.18.0.0/15", "for benchmarks (RFC 2544)"),
        ("198.51.100.0/24", "for documentation (RFC 5737)"),
        ("203.0.113.0/24", "for documentation (RFC 5737)"),
        ("224.0.0.0/4", "multicast (RFC 5771)"),
        ("240.0.0.0/4", "reserved or broadcast (RFC 1112, RFC 919)"),
        # A public address that every virtual machine of Azure reaches its host by (Microsoft's documentation of it).
        ("168.63.129.16/32", "the platform of a cloud"),
    )
)

# Of these, only what is inside counts.
_CARRIERS: Final = (
    (IPv6Network("::ffff:0:0/96"), 0),  # IPv4-mapped (RFC 4291)
    (IPv6Network("::/96"), 0),  # IPv4-compatible (RFC 4291, deprecated)
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64 (RFC 6052)
    (IPv6Network("2002::/16"), 80),  # 6to4 (RFC 3056)
)

_V6: Final = tuple(
    (IPv6Network(network), what)
    for network, what in (
        ("::/128", "unspecified (RFC 4291)"),
        ("::1/128", "loopback (RFC 4291)"),
        ("64:ff9b:1::/48", "for local translation (RFC 8215)"),
        ("100::/64", "a sink (RFC 6666)"),
        ("2001::/32", "Teredo (RFC 4380)"),
        ("2001::/23", "reserved for protocols (RFC 2928)"),
        ("2001:db8::/32", "for documentation (RFC 3849)"),
        ("3ffe::/16", "a test network that was given back (RFC 3701)"),
        ("3fff::/20", "for documentation (RFC 9637)"),
        ("5f00::/16", "for segment routing (RFC 9602)"),
        ("fc00::/7", "a private network (RFC 4193)"),
        ("fe80::/10", "link-local (RFC 4291)"),
        ("fec0::/10", "site-local (RFC 3879)"),
        ("ff00::/8", "multicast (RFC 4291)"),
    )
)

#: What is given out to networks (RFC 4291, IANA's list of IPv6 address space).
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
#: The middle of an ISATAP interface identifier (RFC 5214), without the bits for universal and group.
_ISATAP: Final = 0x0000_5EFE


def refusal(address: Address) -> str | None:
    """What kind of address it is if it is not public, such as ``loopback (RFC 1122)``; None if it may be reached."""
    if isinstance(address, IPv4Address):
        return next((what for network, what in _V4 if address in network), None)
    if address.scope_id is not None:
        return "of one interface only (RFC 4007)"
    for network, what in _V6:
        if address in network:
            return what
    for network, shift in _CARRIERS:
        if address in network:
            return refusal(IPv4Address(int(address) >> shift & 0xFFFF_FFFF))
    if address not in _GLOBAL_UNICAST:
        return "not given out to anybody (RFC 4291)"
    if int(address) >> 32 & 0xFCFF_FFFF == _ISATAP:
        return refusal(IPv4Address(int(address) & 0xFFFF_FFFF))
    return None
