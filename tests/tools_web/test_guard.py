"""Which addresses may be reached: every range, in every spelling and wrapping, refused before any connection."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openheim import ToolError
from openheim_tools_web.guard import Guard
from openheim_tools_web.ranges import refusal
from openheim_tools_web.urls import parse_url
from tests.support.replies import raw
from tests.support.server import ScriptedServer
from tests.tools_web.calls import LOOPBACK, LookUp, call, is_refused, page_of

pytestmark = pytest.mark.anyio

#: First and last address of each range that is refused, and its neighbours that are not.
RANGES_V4 = {
    "0.0.0.0/8": ["1.0.0.0"],
    "10.0.0.0/8": ["9.255.255.255", "11.0.0.0"],
    "100.64.0.0/10": ["100.63.255.255", "100.128.0.0"],
    "127.0.0.0/8": ["126.255.255.255", "128.0.0.0"],
    "169.254.0.0/16": ["169.253.255.255", "169.255.0.0"],
    "172.16.0.0/12": ["172.15.255.255", "172.32.0.0"],
    "192.0.0.0/24": ["191.255.255.255", "192.0.1.0"],
    "192.0.2.0/24": ["192.0.1.255", "192.0.3.0"],
    "192.88.99.0/24": ["192.88.98.255", "192.88.100.0"],
    "192.168.0.0/16": ["192.167.255.255", "192.169.0.0"],
    "198.18.0.0/15": ["198.17.255.255", "198.20.0.0"],
    "198.51.100.0/24": ["198.51.99.255", "198.51.101.0"],
    "203.0.113.0/24": ["203.0.112.255", "203.0.114.0"],
    "224.0.0.0/4": ["223.255.255.255"],
    "240.0.0.0/4": [],
    "168.63.129.16/32": ["168.63.129.15", "168.63.129.17"],
}
RANGES_V6 = {
    "::/128": [],
    "::1/128": [],
    "64:ff9b:1::/48": [],
    "100::/64": [],
    "2001::/32": [],
    "2001::/23": ["2001:200::"],
    "2001:db8::/32": ["2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db9::"],
    "3ffe::/16": ["3ffd:ffff::"],
    "3fff::/20": ["3fff:1000::"],
    "5f00::/16": [],
    "fc00::/7": [],
    "fe80::/10": [],
    "fec0::/10": [],
    "ff00::/8": [],
    "4000::/3": ["3ffd:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
}
METADATA = ["169.254.169.254", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "168.63.129.16"]


def ends(network: str) -> list[str]:
    parsed = ipaddress.ip_network(network)
    return [str(parsed[0]), str(parsed[-1])]


REFUSED_V4 = [address for network in RANGES_V4 for address in ends(network)]
REFUSED_V6 = [address for network in RANGES_V6 for address in ends(network)]
ALLOWED = [address for table in (RANGES_V4, RANGES_V6) for neighbours in table.values() for address in neighbours]


def in_url(address: str) -> str:
    return f"http://[{address}]/" if ":" in address else f"http://{address}/"


def carriers(address: str) -> list[str]:
    """IPv6 addresses that lead to an IPv4 address, or carry it."""
    number = int(ipaddress.IPv4Address(address))
    high, low = number >> 16, number & 0xFFFF
    return [
        f"::ffff:{address}",
        f"::ffff:{high:x}:{low:x}",
        f"0:0:0:0:0:ffff:{high:x}:{low:x}",
        f"64:ff9b::{high:x}:{low:x}",
        f"2002:{high:x}:{low:x}::1",
        f"2a00:1450::5efe:{high:x}:{low:x}",
        f"2a00:1450::200:5efe:{high:x}:{low:x}",
        f"2a00:1450::300:5efe:{high:x}:{low:x}",
        *([f"::{high:x}:{low:x}"] if number > 1 else []),
    ]


@pytest.mark.parametrize("address", [*REFUSED_V4, *REFUSED_V6, *METADATA])
async def test_addresses_that_are_refused(connects: list[tuple[str, int]], address: str) -> None:
    assert await is_refused(in_url(address))
    assert await is_refused("http://name.test/", look_up=LookUp([address]))
    assert await is_refused("http://name.test/", look_up=LookUp(["93.184.215.14", address]))
    assert await is_refused("http://name.test/", look_up=LookUp([address, "93.184.215.14"]))
    assert connects == []


@pytest.mark.parametrize("address", [*ALLOWED, "93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"])
async def test_their_neighbours_are_not(connects: list[tuple[str, int]], address: str) -> None:
    assert not await is_refused(in_url(address))
    assert not await is_refused("http://name.test/", look_up=LookUp([address]))
    assert connects == [(address, 80)] * 2


@pytest.mark.parametrize("address", [*REFUSED_V4, "169.254.169.254"])
async def test_inside_of_ipv6_it_is_the_same(connects: list[tuple[str, int]], address: str) -> None:
    for carrier in carriers(address):
        assert await is_refused(f"http://[{carrier}]/"), carrier
        assert await is_refused("http://name.test/", look_up=LookUp([carrier])), carrier
    assert connects == []


async def test_what_carries_a_public_address_is_judged_by_that(connects: list[tuple[str, int]]) -> None:
    for carrier in carriers("93.184.215.14"):
        assert not await is_refused(f"http://[{carrier}]/"), carrier
    assert len(connects) == len(carriers("93.184.215.14"))


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "0x7f000001",
        "0X7F000001",
        "017700000001",
        "0177.0.0.1",
        "00000177.0.0.01",
        "0x7f.0.0.1",
        "0x7f.0x0.0x0.0x1",
        "127.0.1",
        "127.1",
        "0177.1",
        "127.0x1",
        "127.0.0.01",
        "127.0.0.1.",
        "0",
        "0x",
        "1.2.3.4.5",
        "256.256.256.256",
        "4294967295",
        "a.1",
        "10.0x5",
        "3232235777",
        "0300.0250.1.1",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "a.localhost",
        "a.LocalHost.",
        "[::1%25lo]",
        "[fe80::1%25eth0]",
        "[fe80::1%eth0]",
        "[2606:2800::1%eth0]",
        "[::1",
        "::1",
        "[127.0.0.1]",
        "[::ffff:0177.0.0.1]",
        "[::ffff:127.1]",
        "[v1.x]",
        "127。0。0。1",
        "127\uff0e0\uff0e0\uff0e1",
        "\uff11\uff12\uff17.0.0.1",
        "①②⑦.⓪.⓪.①",
        "ⓛocalhost",
        "localhost\u00ad",
        "\u212a.test",  # the sign of Kelvin
        "\u017fub.test",  # a long s
        "localho\u017ft",
        "\uff4cocalhost",
        "e\u0301.test",  # in two parts, where there is one
        "a\u200bb.test",
        "a\u3002test",
        "loc\u200dalhost",
        "%31%32%37.0.0.1",
        "127.0.0.1%00.example.test",
        "127.0.0.1\\@example.test",
        "example.test\\@127.0.0.1",
        "a@127.0.0.1",
        "@127.0.0.1",
        "example.test:80@127.0.0.1",
        "127.0.0.1:80:80",
        "example..test",
        ".example.test",
        "example.test..",
        "-example.test",
        "exa_mple-.test",
        "a" * 64 + ".test",
        ".".join(["a" * 60] * 5),
        "example.test:0",
        "example.test:65536",
        "example.test:+80",
        "example.test:\uff18\uff10",
        "example.test: 80",
        "ex*ample.test",
        "example.test;127.0.0.1",
    ],
)
async def test_odd_spellings(connects: list[tuple[str, int]], host: str) -> None:
    assert await is_refused(f"http://{host}/")
    assert connects == []


async def test_names_in_other_scripts(connects: list[tuple[str, int]]) -> None:
    look_up = LookUp(["93.184.215.14"])
    for host in ("bücher.test", "BÜCHER.test", "xn--bcher-kva.test", "xn--bcher-kva.test."):
        assert not await is_refused(f"http://{host}:8080/", look_up=look_up)
    assert set(look_up.asked) == {"xn--bcher-kva.test"}
    assert connects == [("93.184.215.14", 8080)] * 4


@pytest.mark.parametrize("answer", [["not an address"], ["fe80::1%eth0"], ["93.184.215.14", "localhost"], []])
async def test_a_look_up_that_answers_nonsense(connects: list[tuple[str, int]], answer: list[str]) -> None:
    assert await is_refused("http://name.test/", look_up=LookUp(answer))
    assert connects == []


async def test_a_name_with_very_many_addresses(connects: list[tuple[str, int]]) -> None:
    """All are checked, and a few tried."""
    public = [f"93.184.{number // 256}.{number % 256}" for number in range(2000)]
    assert await is_refused("http://name.test/", look_up=LookUp([*public, "10.0.0.1"]))
    assert connects == []
    assert not await is_refused("http://name.test/", look_up=LookUp(public))
    assert [host for host, _ in connects] == public[:8]


async def test_the_real_look_up_is_guarded(connects: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """The hosts file, a search domain or a name server may lead inside."""
    from openheim_tools_web.lookup import look_up

    def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        return [(2, 1, 6, "", ("93.184.215.14", port)), (10, 1, 6, "", ("::1", port, 0, 0))]

    monkeypatch.setattr("socket.getaddrinfo", getaddrinfo)
    assert await look_up("intranet", 80) == ["93.184.215.14", "::1"]
    with pytest.raises(ToolError, match=r"an address of intranet is loopback \(RFC 4291\); only public"):
        await Guard(look_up).resolve("intranet", 80)


@pytest.mark.parametrize(
    "location",
    ["http://127.0.0.1:1/x", "http://169.254.169.254/latest/", "http://[::1]/", "//10.0.0.1/", "file:///etc/passwd"],
)
async def test_redirects_are_reported_and_not_followed(location: str) -> None:
    look_up = LookUp(["127.0.0.1"])
    async with ScriptedServer([raw(b"", status=302, headers={"location": location})]) as server:
        with pytest.raises(ToolError) as caught:
            await call(f"http://page.test:{server.port}/a/b", look_up=look_up, settings=LOOPBACK)
        assert server.connections == 1
    assert location.removeprefix("//") in str(caught.value)
    assert look_up.asked == ["page.test"]


# --- exceptions ---


@pytest.mark.parametrize(
    ("entry", "url", "look_up"),
    [
        ("localhost", "http://localhost:81/", ["127.0.0.1"]),
        ("localhost:81", "http://localhost:81/", ["127.0.0.1", "::1"]),
        ("wiki.corp", "http://WIKI.corp./", ["10.0.0.5"]),
        ("10.0.0.0/8", "http://wiki.corp/", ["10.0.0.5"]),
        ("10.0.0.5", "http://10.0.0.5/", []),
        ("10.0.0.5:8080", "http://10.0.0.5:8080/", []),
        ("[::1]:8080", "http://[::1]:8080/", []),
        ("fd00::/8", "http://[fd12::1]/", []),
    ],
)
async def test_exceptions(connects: list[tuple[str, int]], entry: str, url: str, look_up: list[str]) -> None:
    assert not await is_refused(url, look_up=LookUp(look_up), settings={"allow_private": [entry]})
    assert connects


@pytest.mark.parametrize(
    ("entry", "url", "look_up"),
    [
        ("localhost:81", "http://localhost/", ["127.0.0.1"]),
        ("localhost:81", "http://127.0.0.1:81/", []),
        ("wiki.corp", "http://other.corp/", ["10.0.0.5"]),
        ("10.0.0.0/8", "http://wiki.corp/", ["10.0.0.5", "192.168.0.1"]),
        ("10.0.0.5:8080", "http://10.0.0.5/", []),
        ("10.0.0.5", "http://10.0.0.6/", []),
        ("127.0.0.0/8", "http://2130706433/", []),
    ],
)
async def test_exceptions_reach_no_further(
    connects: list[tuple[str, int]], entry: str, url: str, look_up: list[str]
) -> None:
    assert await is_refused(url, look_up=LookUp(look_up), settings={"allow_private": [entry]})
    assert connects == []


async def test_an_exception_is_reached() -> None:
    async with ScriptedServer([raw(b"inside", content_type="text/plain")]) as server:
        assert await page_of(f"http://page.test:{server.port}/") == "inside"


# --- whatever the address ---


HOSTS = st.one_of(
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map(lambda address: f"[{address}]"),
    st.sampled_from(REFUSED_V4),
    st.sampled_from(REFUSED_V4).flatmap(lambda address: st.sampled_from(carriers(address))).map(lambda one: f"[{one}]"),
    st.integers(0, 2**32).map(str),
    st.integers(0, 2**32).map(hex),
    st.lists(st.integers(0, 256).flatmap(lambda n: st.sampled_from([str(n), hex(n), f"0{n:o}"])), max_size=5).map(
        ".".join
    ),
    st.text(max_size=30),
    st.text("abc.-_@:%[]\\/?#0123456789\uff11。①", max_size=30),
)
URLS = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["http://", "https://", "HTTP://", "http:/", "http:\\\\", "//", " http://", "ftp://", ""]),
        st.sampled_from(["", "", "", "a@", "a:b@", "127.0.0.1#@", "example.test\\@"]),
        HOSTS,
        st.sampled_from(["", ":80", ":0", ":65535", ":99999", ":", ":8:9"]),
        st.sampled_from(["", "/", "/x?y#z", "?q", "#@10.0.0.1", "\\..", "/%2e%2e/"]),
    ),
)


@given(URLS, st.lists(st.one_of(st.ip_addresses().map(str), st.sampled_from(REFUSED_V4)), max_size=3))
async def test_no_address_leads_inside(url: str, answers: list[str]) -> None:
    """A URL is refused, or all that it would connect to is public."""
    guard = Guard(LookUp(answers))
    try:
        parsed = parse_url(url)
        guard.check(parsed)
        addresses = await guard.resolve(parsed.host, parsed.port)
    except ToolError:
        return
    assert parse_url(str(parsed)) == parsed  # one spelling, read the same by whoever reads it next
    for address in map(ipaddress.ip_address, addresses):
        assert refusal(address) is None
        mapped = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None) or address
        assert mapped.is_global or mapped in ipaddress.ip_network("64:ff9b::/96") or int(mapped) < 2**32, address
