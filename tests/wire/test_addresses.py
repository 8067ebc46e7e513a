"""Addresses of proxies that cannot be used are told before anything is sent, and not quoted."""

from __future__ import annotations

import pytest

from openheim import HttpClient
from openheim.errors import ConfigError
from tests.support.replies import raw
from tests.support.server import ScriptedServer

pytestmark = pytest.mark.anyio

BAD = [
    "ftp://h",
    "http://:80",
    "http://user:canary@:80",
    "http://[::1",
    "http://exa mple:80",
    "http://user:ca/nary@h:80",
    "http://h:99999",
    "http://h:0",
    "h:80 ",
]


async def fetch(client: HttpClient, url: str) -> None:
    try:
        async with client.stream("GET", url, timeout_secs=10) as response:
            await response.read(10)
    finally:
        await client.aclose()


@pytest.mark.parametrize("address", BAD)
async def test_bad_addresses(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"\[http\] proxy is no usable address") as caught:
        await fetch(HttpClient(proxy=address), "http://models.test/")
    assert "nary" not in str(caught.value)
    monkeypatch.delenv("http_proxy", raising=False)
    monkeypatch.setenv("HTTP_PROXY", address)
    with pytest.raises(ConfigError, match="HTTP_PROXY or ALL_PROXY is no usable address"):
        await fetch(HttpClient(), "http://models.test/")


async def test_good_ones() -> None:
    async with ScriptedServer(default=raw(b"")) as proxy:
        for address in (f"HTTP://127.0.0.1:{proxy.port}", f"u:p@127.0.0.1:{proxy.port}", f"{proxy.url}/"):
            await fetch(HttpClient(proxy=address), "http://models.test/")
        assert len(proxy.requests) == 3
