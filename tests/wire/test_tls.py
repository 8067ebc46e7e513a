"""Encrypted connections: whom they trust, and that nothing is set up for them before they are needed."""

from __future__ import annotations

import ssl
import subprocess
import sys
from pathlib import Path

import anyio
import anyio.abc
import pytest

from openheim.errors import ConfigError, ProviderConnectionError
from openheim.http import HttpClient
from tests.support.replies import raw
from tests.support.server import ScriptedServer

pytestmark = pytest.mark.anyio

CERTIFICATES = Path(__file__).parent / "certificates"
AUTHORITY = str(CERTIFICATES / "ca.pem")


@pytest.fixture
def server_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "server.pem")
    return context


async def fetch(url: str, **options: str) -> bytes:
    client = HttpClient(proxy="", **options)
    try:
        async with client.stream("GET", url, timeout_secs=10) as response:
            return await response.read(1000)
    finally:
        await client.aclose()


async def test_the_configured_authority_is_trusted(server_tls: ssl.SSLContext) -> None:
    async with ScriptedServer([raw(b"safe")], tls=server_tls) as server:
        assert await fetch(server.url, ca_file=AUTHORITY) == b"safe"


async def test_the_authority_of_the_environment_is_trusted(
    server_tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", AUTHORITY)
    async with ScriptedServer([raw(b"safe")], tls=server_tls) as server:
        assert await fetch(server.url) == b"safe"


async def test_others_are_not_trusted(server_tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    async with ScriptedServer([raw(b"safe")], tls=server_tls) as server:
        with pytest.raises(
            ProviderConnectionError, match=r"certificate of https://127\.0\.0\.1:.* is not trusted"
        ) as caught:
            await fetch(server.url)
    assert not caught.value.retryable
    assert "ca_file" in caught.value.hint


@pytest.mark.parametrize("content", [None, "this is no certificate"])
async def test_an_authority_that_cannot_be_read(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "authority.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError, match=f"cannot read certificate authorities from {file}"):
        await fetch("https://127.0.0.1:9/", ca_file=str(file))


async def test_cancelling_a_handshake_closes_the_connection() -> None:
    # A server that knows nothing of TLS waits for the rest of what it takes for a request.
    async with ScriptedServer() as server:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: fetch(server.url.replace("http:", "https:"), ca_file=AUTHORITY))
            await anyio.to_thread.run_sync(server.wait_connected, 1)
            tasks.cancel_scope.cancel()
        await anyio.to_thread.run_sync(server.wait_open, 0)


CHILD = """
import ssl, sys
made = []
make = ssl.SSLContext.__new__
def counting(cls, *arguments, **options):
    made.append(cls)
    return make(cls, *arguments, **options)
ssl.SSLContext.__new__ = counting

import anyio
import openheim, openheim.http, openheim_provider_openai.plugin
early = [name for name in ("httpx", "httpcore", "pydantic", "email.utils") if name in sys.modules]
assert not early, f"imported before any request: {early}"

async def main(urls):
    clients = [openheim.http.HttpClient(proxy="", ca_file=sys.argv[1]) for _ in range(2)]
    for url in urls:
        for client in clients:
            async with client.stream("GET", url) as response:
                assert await response.read(10) == b"hello"
    for client in clients:
        await client.aclose()

anyio.run(main, sys.argv[2:])
assert "httpcore" in sys.modules
late = [name for name in ("httpx", "idna", "urllib.request") if name in sys.modules]
assert not late, f"imported without need: {late}"
print(len(made))
"""


def contexts_made(*urls: str) -> int:
    command = [sys.executable, "-c", CHILD, AUTHORITY, *urls]
    child = subprocess.run(command, capture_output=True, text=True, timeout=50)
    assert child.returncode == 0, child.stderr
    return int(child.stdout)


def test_plain_http_makes_no_context() -> None:
    with ScriptedServer(default=raw(b"hello")) as server:
        assert contexts_made(server.url) == 0


def test_clients_share_one_context(server_tls: ssl.SSLContext) -> None:
    with ScriptedServer(default=raw(b"hello"), tls=server_tls) as first:
        with ScriptedServer(default=raw(b"hello"), tls=server_tls) as second:
            assert contexts_made(first.url, second.url) == 1


async def test_the_certificate_is_checked_against_the_name_and_not_the_address(server_tls: ssl.SSLContext) -> None:
    names: list[str | None] = []
    server_tls.sni_callback = lambda _socket, name, _context: names.append(name)

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    async with ScriptedServer([raw(b"safe")], tls=server_tls) as server:
        client = HttpClient(ca_file=AUTHORITY, resolve=resolve)
        async with client.stream("GET", server.url, timeout_secs=10) as response:
            assert await response.read(10) == b"safe"
        with pytest.raises(ProviderConnectionError, match="is not trusted: Hostname mismatch"):
            async with client.stream("GET", f"https://name.test:{server.port}/", timeout_secs=10):
                pass
        await client.aclose()
    assert names[-1] == "name.test"


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"<html>", b"220 mail ready\r\n"])
async def test_a_server_without_tls_is_told_and_not_asked_again(answer: bytes) -> None:
    async def answer_in_clear(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(answer)

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, answer_in_clear)
        origin = f"https://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}"
        with pytest.raises(ProviderConnectionError, match=f"{origin} does not speak TLS") as caught:
            await fetch(f"{origin}/v1", ca_file=AUTHORITY)
        tasks.cancel_scope.cancel()
    assert not caught.value.retryable
    assert "http://" in caught.value.hint
