"""The HTTP client, against servers on the loopback interface."""

from __future__ import annotations

import contextlib
import gzip
import socket
import threading
import traceback
import zlib
from collections.abc import AsyncIterator, Callable
from typing import Literal

import anyio
import pytest

from openheim._http.inflate import MAX_BODY_BYTES
from openheim.errors import ConfigError, ProviderConnectionError, ProviderTimeoutError, ServerError, ToolError
from openheim.http import HttpClient, HttpResponse
from tests.support.replies import Reply, raw
from tests.support.server import ScriptedServer

pytestmark = pytest.mark.anyio

SECRET = "sk-test-5f0c3b9d"


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the environment of the tests says."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    client = HttpClient(proxy="")
    with anyio.fail_after(30):
        yield client
        await client.aclose()


async def fetch(http: HttpClient, url: str, limit: int = 1 << 20, timeout_secs: float = 10.0) -> bytes:
    async with http.stream("GET", url, timeout_secs=timeout_secs) as response:
        return await response.read(limit)


# --- requests and answers ---


async def test_a_request_arrives_as_it_was_made(http: HttpClient) -> None:
    async with ScriptedServer([raw(b"yes", status=201, headers={"X-Two": "b", "X-One": "A"})]) as server:
        headers = {"content-type": "application/json", "authorization": f"Bearer {SECRET}"}
        async with http.stream("POST", f"{server.url}/v1/x?y=1", headers=headers, content=b'{"a":1}') as response:
            assert response.status == 201
            assert response.headers["x-one"] == "A"
            assert await response.read(100) == b"yes"
            assert not response.truncated
        (request,) = server.requests
    assert (request.method, request.path, request.body) == ("POST", "/v1/x?y=1", b'{"a":1}')
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    assert request.headers["host"] == f"127.0.0.1:{server.port}"
    assert request.headers["accept-encoding"] == "identity"
    assert request.headers["user-agent"].startswith("openheim/")


async def test_pieces_come_as_they_are_sent(http: HttpClient) -> None:
    async with (
        ScriptedServer([raw([b"one", b"two"]).hold(after=1)]) as server,
        http.stream("GET", server.url) as response,
    ):
        chunks = response.chunks()
        assert await anext(chunks) == b"one"
        server.release()
        assert await anext(chunks) == b"two"
        with pytest.raises(StopAsyncIteration):
            await anext(chunks)


async def test_large_bodies_arrive_whole(http: HttpClient) -> None:
    body = bytes(range(256)) * 8000
    async with ScriptedServer([raw(b"got it")]) as server:
        async with http.stream("POST", server.url, content=body) as response:
            await response.read(10)
        (request,) = server.requests
    assert request.body == body
    assert request.headers["content-length"] == str(len(body))
    assert "transfer-encoding" not in request.headers


@pytest.mark.parametrize("limit", [0, 4, 5])
async def test_reading_stops_at_a_limit(http: HttpClient, limit: int) -> None:
    async with ScriptedServer([raw([b"abc", b"def"])]) as server, http.stream("GET", server.url) as response:
        assert await response.read(limit) == b"abcdef"[:limit]
        assert response.truncated


async def test_redirects_are_not_followed(http: HttpClient) -> None:
    async with ScriptedServer([raw(b"", status=302, headers={"location": "/elsewhere"})]) as server:
        async with http.stream("GET", server.url) as response:
            assert response.status == 302
        assert len(server.requests) == 1


# --- compressed answers ---


def raw_deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(data) + compressor.flush()


@pytest.mark.parametrize(
    ("coding", "compress"),
    [("gzip", gzip.compress), ("x-gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", raw_deflate)],
)
@pytest.mark.parametrize("split", ["whole", "every-byte"])
async def test_compressed_answers(
    http: HttpClient, coding: str, compress: Callable[[bytes], bytes], split: str
) -> None:
    text = b"hello " * 1000
    reply = raw(compress(text), headers={"content-encoding": coding}).split(
        "every-byte" if split != "whole" else "whole"
    )
    async with ScriptedServer([reply]) as server:
        assert await fetch(http, server.url) == text


@pytest.mark.parametrize("split", ["whole", "every-byte"])
async def test_an_answer_compressed_in_several_members(http: HttpClient, split: Literal["whole", "every-byte"]) -> None:
    """RFC 1952, 2.2: one after the other they are one file; zeros may follow."""
    body = gzip.compress(b"hello ") + gzip.compress(b"") + gzip.compress(b"there") + b"\0\0"
    async with ScriptedServer([raw(body, headers={"content-encoding": "gzip"}).split(split)]) as server:
        assert await fetch(http, server.url) == b"hello there"


def gzip_bomb(size: int) -> Reply:
    return raw(gzip.compress(bytes(size)), headers={"content-encoding": "gzip"})


async def test_a_small_body_cannot_fill_the_memory(http: HttpClient) -> None:
    sizes = []
    async with ScriptedServer([gzip_bomb(MAX_BODY_BYTES), gzip_bomb(MAX_BODY_BYTES + 1)]) as server:
        async with http.stream("GET", server.url) as response:
            sizes += [len(chunk) async for chunk in response.chunks()]
        assert (sum(sizes), max(sizes)) == (MAX_BODY_BYTES, 64 * 1024)
        async with http.stream("GET", server.url) as response:
            with pytest.raises(ServerError, match="more than 64 MiB"):
                sizes += [len(chunk) async for chunk in response.chunks()]
    assert sum(sizes) <= 2 * MAX_BODY_BYTES


async def test_a_body_that_grows_can_be_left_between_two_pieces(http: HttpClient) -> None:
    """All of it comes out of one read, so that there is nothing to wait for on the way."""
    pieces = 0
    async with ScriptedServer([gzip_bomb(1_000_000)]) as server, http.stream("GET", server.url) as response:
        with anyio.CancelScope() as scope:
            async for _ in response.chunks():
                pieces += 1
                scope.cancel()
        assert scope.cancelled_caught
    assert pieces == 1


@pytest.mark.parametrize(
    ("body", "coding", "words"),
    [
        (b"not gzip at all", "gzip", "damaged"),
        (gzip.compress(b"hello", mtime=0)[:-4], "gzip", "not complete"),
        (gzip.compress(b"hello", mtime=0) + b"and more", "gzip", "damaged"),
        (gzip.compress(b"hello", mtime=0) + gzip.compress(b"there", mtime=0)[:-4], "gzip", "not complete"),
        (zlib.compress(b"hello") + b"and more", "deflate", "more than"),
        (raw_deflate(b"hello") + b"and more", "deflate", "more than"),
        (b"x", "br", "'br'"),
    ],
)
async def test_compressed_answers_that_cannot_be_read(http: HttpClient, body: bytes, coding: str, words: str) -> None:
    async with ScriptedServer([raw(body, headers={"content-encoding": coding})]) as server:
        with pytest.raises(ProviderConnectionError, match=words):
            await fetch(http, server.url)


# --- connections ---


async def test_a_connection_whose_answer_was_read_is_used_again(http: HttpClient) -> None:
    async with ScriptedServer([raw(b"a"), raw(b"b").framed("length"), raw(b"c")]) as server:
        assert [await fetch(http, server.url) for _ in range(3)] == [b"a", b"b", b"c"]
        assert server.connections == 1


async def test_a_connection_that_the_server_closed_meanwhile_is_replaced(http: HttpClient) -> None:
    async with ScriptedServer([raw(b"a"), raw(b"b")]) as server:
        assert await fetch(http, server.url) == b"a"
        server.drop_connections()
        assert await fetch(http, server.url) == b"b"
        assert server.connections == 2


async def test_leaving_early_closes_the_connection(http: HttpClient) -> None:
    async with ScriptedServer([raw([b"a", b"b"]).hold(after=1), raw(b"c")]) as server:
        async with http.stream("GET", server.url) as response:
            assert await anext(response.chunks()) == b"a"
        await server.requests[0].left()
        assert await fetch(http, server.url) == b"c"
        assert server.connections == 2


async def test_draining_keeps_the_connection(http: HttpClient) -> None:
    async with ScriptedServer([raw([b"a", b"b"]), raw(b"c")]) as server:
        async with http.stream("GET", server.url) as response:
            async for chunk in response.chunks():
                assert chunk == b"a"
                break
            await response.drain(limit_secs=10)
        assert await fetch(http, server.url) == b"c"
        assert server.connections == 1


async def test_draining_does_not_wait_long(http: HttpClient) -> None:
    async with ScriptedServer([raw(b"a").ending("stall")]) as server:
        async with http.stream("GET", server.url) as response:
            assert await anext(response.chunks()) == b"a"
            await response.drain(limit_secs=0.01)
        await server.requests[0].left()


@pytest.mark.parametrize("reply", [raw(b"a").late(), raw([b"a", b"b"]).hold(after=1)], ids=["headers", "body"])
async def test_cancelling_closes_the_connection(http: HttpClient, reply: Reply) -> None:
    async with ScriptedServer([reply]) as server:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fetch, http, server.url)
            (request,) = await server.arrived(1)
            tasks.cancel_scope.cancel()
        await request.left()


async def test_many_requests_at_a_time_and_few_connections_kept(http: HttpClient) -> None:
    count = 300
    async with ScriptedServer(lambda _: raw(b"a").late()) as server:
        async with anyio.create_task_group() as tasks:
            for _ in range(count):
                tasks.start_soon(fetch, http, server.url)
            await server.arrived(count)
            server.release()
        assert server.connections == count
        await anyio.to_thread.run_sync(server.wait_open, 100)
        await http.aclose()
        await anyio.to_thread.run_sync(server.wait_open, 0)


async def test_a_closed_client_keeps_nothing(http: HttpClient) -> None:
    async with ScriptedServer([raw([b"a", b"b"]).hold(after=1)]) as server:
        async with http.stream("GET", server.url) as response:
            await http.aclose()
            server.release()
            assert await response.read(10) == b"ab"
        await server.requests[0].left()


async def test_a_client_that_is_closed_while_a_connection_is_given_back_keeps_nothing(
    http: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_back = HttpResponse._aclose

    async def closing(response: HttpResponse) -> None:
        await given_back(response)
        await http.aclose()

    monkeypatch.setattr(HttpResponse, "_aclose", closing)
    async with ScriptedServer([raw(b"a")]) as server:
        assert await fetch(http, server.url) == b"a"
        await anyio.to_thread.run_sync(server.wait_open, 0)


async def test_closing_that_is_cancelled_closes_all_the_same(http: HttpClient) -> None:
    async with ScriptedServer(lambda _: raw(b"a").late()) as server:
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(fetch, http, server.url)
            await server.arrived(3)
            server.release()
        with anyio.CancelScope() as scope:
            scope.cancel()
            await http.aclose()
        await anyio.to_thread.run_sync(server.wait_open, 0)


# --- failures ---


async def test_the_limit_is_for_gaps_and_not_for_the_whole(http: HttpClient) -> None:
    drip = raw([b"x"] * 12).slow(0.15)
    async with ScriptedServer([drip]) as server:
        assert await fetch(http, server.url, timeout_secs=1.0) == b"x" * 12


@pytest.mark.parametrize("reply", [raw(b"a").late(), raw(b"a").ending("stall")], ids=["headers", "body"])
async def test_a_gap_that_is_too_long(http: HttpClient, reply: Reply) -> None:
    async with ScriptedServer([reply]) as server:
        with pytest.raises(ProviderTimeoutError, match=r"nothing came from .* for 0.2 s") as caught:
            await fetch(http, server.url, timeout_secs=0.2)
        assert caught.value.retryable
        await server.requests[0].left()


@pytest.mark.parametrize("dripped", [b"HTTP/1.1 103 Early Hints\r\n\r\n", b"H"], ids=["interim answers", "letters"])
@pytest.mark.parametrize("way", ["direct", "by proxy"])
async def test_a_head_without_end_is_no_answer(way: str, dripped: bytes) -> None:
    """Each piece comes soon after the one before, so that no gap is too long."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"

        def answer() -> None:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(1000)
                while not left.wait(0.02):
                    connection.sendall(dripped)

        left = threading.Event()
        client = HttpClient(proxy="" if way == "direct" else address)
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(anyio.to_thread.run_sync, answer)
                try:
                    with pytest.raises(ProviderTimeoutError, match=r"nothing came from .* for 0.3 s"):
                        await fetch(client, address if way == "direct" else "http://models.test/", timeout_secs=0.3)
                finally:
                    left.set()
        await client.aclose()


async def test_an_interim_answer_is_followed_by_the_answer(http: HttpClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 102 Processing\r\n\r\n" * 3)
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nyes")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, answer)
            assert await fetch(http, f"http://127.0.0.1:{port}") == b"yes"


@pytest.mark.parametrize(
    "reply", [raw(b"a").ending("reset"), raw(b"").ending("reset"), raw(b"").late().ending("reset")]
)
async def test_a_connection_that_breaks(http: HttpClient, reply: Reply) -> None:
    async with ScriptedServer([reply]) as server:
        server.release()
        with pytest.raises(ProviderConnectionError, match="broke: connection reset by peer") as caught:
            await fetch(http, server.url)
        assert caught.value.retryable


NO_HTTP = {
    "another protocol": b"SSH-2.0-%s\r\n\r\n",
    "a status line": b"HTTP/1.1 %s\r\n\r\n",
    "a header without a colon": b"HTTP/1.1 200 OK\r\n%s\r\n\r\n",
    "a header's name": b"HTTP/1.1 200 OK\r\nauth %s: x\r\n\r\n",
    "a header's value": b"HTTP/1.1 200 OK\r\na: %s\x00\r\n\r\n",
    "a length": b"HTTP/1.1 200 OK\r\ncontent-length: %s\r\n\r\n",
    "a framing": b"HTTP/1.1 200 OK\r\ntransfer-encoding: %s\r\n\r\n",
    "a chunk's head": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n%s\r\n",
    "a chunk's end": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx%s\r\n",
    "a trailer": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n%s\r\n\r\n",
}


@pytest.mark.parametrize("way", ["direct", "proxied"])
@pytest.mark.parametrize("answer", NO_HTTP.values(), ids=NO_HTTP)
async def test_an_answer_that_is_no_http_is_not_quoted(way: str, answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(answer % SECRET.encode())

        http = HttpClient(proxy=address if way == "proxied" else "")
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(anyio.to_thread.run_sync, serve)
                with pytest.raises(ProviderConnectionError, match=r"broke: [a-z]") as caught:
                    await fetch(http, "http://models.test" if way == "proxied" else address)
            await http.aclose()
    # A traceback shows the causes too.
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("length", ["1", "99", "x"])
async def test_a_length_that_is_not_that_of_the_request(http: HttpClient, length: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(ProviderConnectionError, match="cannot be sent") as caught:
            async with http.stream("POST", address, headers={"content-length": length}, content=b"abc"):
                pass
    assert not caught.value.retryable


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


async def test_nobody_listens_and_no_secret_is_told(http: HttpClient) -> None:
    url = f"http://user:{SECRET}@127.0.0.1:{unused_port()}/path?key={SECRET}"
    with pytest.raises(ProviderConnectionError) as caught:
        async with http.stream("GET", url, headers={"authorization": SECRET}):
            pass
    err = caught.value
    assert "no connection to http://127.0.0.1:" in str(err)
    assert "connection refused" in str(err)
    assert err.retryable and err.unsent
    assert SECRET not in str(err)


async def test_a_host_that_does_not_exist(http: HttpClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(
        ProviderConnectionError, match=r"no connection to http://models\.test: name or service not known"
    ):
        await fetch(http, "http://models.test/")


@pytest.mark.parametrize(
    "url",
    [
        f"ftp://user:{SECRET}@host/",
        "host/path",
        "http://",
        f"http://user:{SECRET}@host:port/",
        "",
        f"http://{'a' * 70}.x",
    ],
)
async def test_addresses_that_are_none(http: HttpClient, url: str) -> None:
    with pytest.raises(ProviderConnectionError) as caught:
        await fetch(http, url)
    assert "api_base" in caught.value.hint
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": f"Bearer {SECRET}\n"},
        {"authorization": f"Bearer {SECRET}\r\nx: y"},
        {"authorization": f"Bearer {SECRET}é"},
        {"authorization": f" {SECRET}"},
        {"bad name": SECRET},
    ],
)
async def test_headers_that_cannot_be_sent(http: HttpClient, headers: dict[str, str]) -> None:
    async with ScriptedServer() as server:
        with pytest.raises(ProviderConnectionError, match="cannot be sent") as caught:
            async with http.stream("GET", server.url, headers=headers):
                pass
        assert server.requests == []
    assert not caught.value.retryable
    seen: BaseException | None = caught.value
    while seen is not None:  # A traceback shows the causes too.
        assert SECRET not in str(seen)
        seen = seen.__cause__ or seen.__context__


# --- proxies ---


async def test_requests_go_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedServer(lambda request: raw(request.path)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://user:{SECRET}@127.0.0.1:{proxy.port}")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        client = HttpClient()
        assert await fetch(client, "http://models.test/v1") == b"http://models.test/v1"
        assert proxy.requests[0].headers["proxy-authorization"].startswith("Basic ")
        # The proxy itself is exempt, so it is asked directly and not by itself.
        assert await fetch(client, f"{proxy.url}/direct") == b"/direct"
        await client.aclose()


@pytest.mark.parametrize("variable", ["ALL_PROXY", "all_proxy", "http_proxy"])
async def test_variables_that_name_a_proxy(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    async with ScriptedServer(lambda request: raw(request.path)) as proxy:
        monkeypatch.setenv(variable, f"127.0.0.1:{proxy.port}")
        client = HttpClient()
        assert await fetch(client, "http://models.test/v1") == b"http://models.test/v1"
        await client.aclose()


async def test_the_configured_proxy_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{unused_port()}")
    async with ScriptedServer(lambda request: raw(request.path)) as proxy:
        client = HttpClient(proxy=proxy.url)
        assert await fetch(client, "http://models.test/v1") == b"http://models.test/v1"
        await client.aclose()
        direct = HttpClient(proxy="")
        assert await fetch(direct, f"{proxy.url}/direct") == b"/direct"
        await direct.aclose()


async def test_https_asks_the_proxy_for_a_tunnel() -> None:
    async with ScriptedServer([raw(b"no", status=502)]) as proxy:
        client = HttpClient(proxy=proxy.url)
        with pytest.raises(ProviderConnectionError, match=r"no connection to https://models\.test"):
            await fetch(client, "https://models.test/v1")
        await client.aclose()
        assert (proxy.requests[0].method, proxy.requests[0].path) == ("CONNECT", "models.test:443")


@pytest.fixture
def names_are_local(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every name stands for 127.0.0.1."""

    def resolve(_: object, port: int, *__: object, **___: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


@pytest.mark.parametrize(
    ("exceptions", "host", "exempt"),
    [
        ("models.test", "models.test", True),
        ("models.test", "eu.models.test", True),
        ("models.test", "MODELS.test", True),
        (".models.test", "eu.models.test", True),
        ("*.models.test", "eu.models.test", True),
        ("models.test", "mymodels.test", False),
        ("other.test, MODELS.test", "models.test", True),
        ("models.test:PORT", "models.test", True),
        ("models.test:1", "models.test", False),
        ("127.0.0.0/8", "127.0.0.1", True),
        ("10.0.0.0/8", "127.0.0.1", False),
        ("10.0.0.0/8", "models.test", False),
        ("127.0.0.1", "127.0.0.1", True),
        ("*", "models.test", True),
        ("", "models.test", False),
    ],
)
@pytest.mark.usefixtures("names_are_local")
async def test_hosts_that_need_no_proxy(
    monkeypatch: pytest.MonkeyPatch, exceptions: str, host: str, exempt: bool
) -> None:
    async with ScriptedServer(default=raw(b"")) as direct, ScriptedServer(default=raw(b"")) as proxy:
        monkeypatch.setenv("NO_PROXY", exceptions.replace("PORT", str(direct.port)))
        client = HttpClient(proxy=proxy.url)
        await fetch(client, f"http://{host}:{direct.port}/")
        await client.aclose()
        assert (len(direct.requests), len(proxy.requests)) == ((1, 0) if exempt else (0, 1))


@pytest.mark.parametrize("exceptions", ["::1", "[::1]"])
async def test_an_ipv6_host_that_needs_no_proxy(monkeypatch: pytest.MonkeyPatch, exceptions: str) -> None:
    monkeypatch.setenv("NO_PROXY", exceptions)
    async with ScriptedServer() as proxy:
        client = HttpClient(proxy=proxy.url)
        with pytest.raises(ProviderConnectionError):
            await fetch(client, f"http://[::1]:{unused_port()}/")
        await client.aclose()
        assert proxy.connections == 0


@pytest.mark.parametrize("proxy", [f"gopher://user:{SECRET}@host", "http://", f"http://{SECRET}@host:port"])
async def test_proxies_that_are_none(proxy: str) -> None:
    client = HttpClient(proxy=proxy)
    with pytest.raises(ConfigError, match=r"\[http\] proxy") as caught:
        await fetch(client, "http://models.test/")
    assert SECRET not in str(caught.value)


# --- connections to chosen addresses ---


class Resolver:
    """Answers with the given addresses, and keeps what it was asked."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses
        self.asked: list[tuple[str, int]] = []

    async def __call__(self, host: str, port: int) -> tuple[str, ...]:
        self.asked.append((host, port))
        return self.addresses


async def test_connections_go_where_the_caller_says(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_lookup(*_: object, **__: object) -> None:
        raise AssertionError("the system was asked")

    monkeypatch.setattr(socket, "getaddrinfo", no_lookup)
    resolver = Resolver("127.0.0.1")
    http = HttpClient(resolve=resolver)
    async with ScriptedServer([raw(b"one"), raw(b"two")]) as server:
        url = f"http://name.test:{server.port}/"
        assert [await fetch(http, url), await fetch(http, url)] == [b"one", b"two"]
        assert server.requests[0].headers["host"] == f"name.test:{server.port}"
        assert resolver.asked == [("name.test", server.port)]
        await http.aclose()


async def test_the_next_address_is_tried() -> None:
    async with ScriptedServer([raw(b"here")]) as server:
        http = HttpClient(resolve=Resolver("127.0.0.2", "::1", "127.0.0.1"))
        assert await fetch(http, f"http://name.test:{server.port}/") == b"here"
        await http.aclose()


@pytest.mark.parametrize("addresses", [("localhost",), ("127.0.0.1", "localhost"), ()])
async def test_what_is_no_address_is_not_looked_up(addresses: tuple[str, ...]) -> None:
    async with ScriptedServer([raw(b"no")]) as server:
        http = HttpClient(resolve=Resolver(*addresses))
        with pytest.raises(ValueError, match="address"):
            await fetch(http, f"http://localhost:{server.port}/")
        assert server.connections == 0


async def test_what_the_caller_raises_reaches_it() -> None:
    async def refuse(host: str, port: int) -> list[str]:
        raise ToolError(f"{host} is refused")

    http = HttpClient(resolve=refuse)
    with pytest.raises(ToolError, match=r"name\.test is refused"):
        await fetch(http, "http://name.test/")


async def test_proxies_of_the_environment_do_not_get_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedServer([raw(b"direct")]) as server, ScriptedServer() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        http = HttpClient(resolve=Resolver("127.0.0.1"))
        assert await fetch(http, f"http://name.test:{server.port}/") == b"direct"
        assert proxy.connections == 0
        await http.aclose()


async def test_what_is_exempt_from_a_proxy_is_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "exempt.test")
    resolver = Resolver("127.0.0.1")
    async with ScriptedServer([raw(b"direct")]) as server, ScriptedServer([raw(b"via")]) as proxy:
        http = HttpClient(proxy=proxy.url, resolve=resolver)
        assert await fetch(http, f"http://exempt.test:{server.port}/") == b"direct"
        assert await fetch(http, "http://other.test/x") == b"via"
        assert resolver.asked == [("exempt.test", server.port)]
        assert proxy.requests[0].path == "http://other.test/x"
        await http.aclose()
