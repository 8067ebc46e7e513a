"""Answers of servers: what becomes a result, what an error, and what ends the wait."""

from __future__ import annotations

import gzip
import json
import re
import socket
import ssl
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from openheim import ToolError, __version__
from openheim.testing import FakeTurn
from openheim_tools_web import lookup
from openheim_tools_web.web_fetch import WebFetch
from tests.support.replies import Reply, raw
from tests.support.server import ScriptedServer
from tests.tools_web.calls import LOOPBACK, LookUp, call, page_of

pytestmark = pytest.mark.anyio

EMPTY = "[the page is empty: the server sent no content, and its status is {}]"
CERTIFICATES = Path(__file__).parent.parent / "wire/certificates"


def text_page(body: Any = b"hello", **options: Any) -> Reply:
    return raw(body, content_type="text/plain", **options)


async def result_of(reply: Reply, path: str = "/", **options: Any) -> str:
    async with ScriptedServer([reply]) as server:
        return await page_of(f"http://page.test:{server.port}{path}", **options)


async def error_of(reply: Reply, path: str = "/", **options: Any) -> str:
    with pytest.raises(ToolError) as caught:
        await result_of(reply, path, **options)
    return str(caught.value)


async def test_what_is_sent() -> None:
    async with ScriptedServer([text_page()]) as server:
        assert await page_of(f"http://page.test:{server.port}/a%20b?c=d#e") == "hello"
        (request,) = server.requests
        assert (request.method, request.path) == ("GET", "/a%20b?c=d")
        assert request.headers.pop("accept").startswith("text/html")
        assert request.headers == {
            "host": f"page.test:{server.port}",
            "user-agent": f"openheim/{__version__}",
            "accept-encoding": "gzip, deflate",
        }
        server.wait_open(0)


# --- kinds of content ---


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "text/csv", "TEXT/Markdown; charset=utf-8", "application/json", "application/ld+json", "text/xml"],
)
async def test_text_is_kept_as_it_is(content_type: str) -> None:
    body = '{"a":  [1,\n2]}\n<p>é</p>'
    assert await result_of(raw(body, content_type=content_type)) == body


@pytest.mark.parametrize("content_type", ["text/html", "Text/HTML; charset=UTF-8", "application/xhtml+xml"])
async def test_html_is_made_readable(content_type: str) -> None:
    assert await result_of(raw("<title>T</title><p>a<p>b", content_type=content_type)) == "Title: T\n\na\n\nb"
    assert await result_of(raw("<p>a<p>b", content_type=content_type), raw=True) == "<p>a<p>b"


@pytest.mark.parametrize(
    "content_type",
    ["image/png", "application/pdf", "application/octet-stream", "video/mp4", "multipart/form-data", "x"],
)
async def test_other_content_is_refused(content_type: str) -> None:
    reply = raw(b"x", content_type=content_type).ending("stall")
    assert f"the content type is {content_type}; only text" in await error_of(reply)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"<!DOCTYPE html><p>a", "a"),
        (b"\xef\xbb\xbf <!-- x --> <html><p>a", "a"),
        (b"<?xml version='1.0'?><a/>", "<?xml version='1.0'?><a/>"),
        (b"just text", "just text"),
        (b"", EMPTY.format(200)),
    ],
)
async def test_content_of_no_type_is_looked_at(body: bytes, text: str) -> None:
    assert await result_of(Reply((body,) if body else ())) == text


@pytest.mark.parametrize("body", [b"%PDF-1.7", b"\x89PNG\r\n", b"PK\x03\x04", b"a\0b"])
async def test_content_of_no_type_that_is_no_text(body: bytes) -> None:
    assert "looks like no text" in await error_of(Reply((body,)))


async def test_controls_are_left_out() -> None:
    assert await result_of(text_page(b"a\x1b[31mb\0\x07c\r\nd\re\tf")) == "a[31mbc\nd\ne\tf"


# --- statuses ---


@pytest.mark.parametrize("status", [200, 201, 203, 206, 299])
async def test_success(status: int) -> None:
    assert await result_of(text_page(status=status)) == "hello"


@pytest.mark.parametrize("status", [200, 204, 205])
async def test_no_content(status: int) -> None:
    assert await result_of(Reply((), status, framing="length")) == EMPTY.format(status)
    coded = {"content-encoding": "gzip", "content-type": "image/png"}
    assert await result_of(Reply((), status, coded, framing="length")) == EMPTY.format(status)
    if status == 200:
        assert await result_of(text_page(b"")) == EMPTY.format(200)


async def test_no_text() -> None:
    source = "<script>draw()</script>"
    page = raw(source, content_type="text/html")
    assert await result_of(page) == "[the page has no text; a script may make it, and raw=true shows the source]"
    assert await result_of(page, raw=True) == source
    assert await result_of(text_page(b" \n\t")) == "[the page has no text, only blanks]"


@pytest.mark.parametrize("status", [300, 304, 305, 400, 403, 404, 418, 429, 500, 503, 599, 999])
async def test_other_statuses_are_errors(status: int) -> None:
    body = () if status == 304 else (b"<h1>Oh</h1><p>no",)
    error = await error_of(Reply(body, status, {"content-type": "text/html"}, framing="length"))
    assert f"answered with status {status} (" in error
    assert error.endswith(": # Oh no") or status == 304


async def test_errors_quote_little() -> None:
    assert len(await error_of(text_page(b"x" * 100_000, status=500))) < 700
    assert "status 500" in await error_of(raw(b"\0\1", status=500, content_type="image/png").ending("stall"))


# --- sizes ---


async def test_long_pages_are_cut_and_the_download_stops() -> None:
    async with ScriptedServer([text_page([b"x" * 65536] * 64).ending("stall")]) as server:
        text = await page_of(f"http://page.test:{server.port}/", limit=1 << 20)
        await server.requests[0].left()
    assert text == "x" * 262144 + "\n" + (
        "[the page is not whole: it is longer than 262,144 bytes; a larger max_bytes in [tools.web] shows more]"
    )


async def test_the_limits_of_the_settings() -> None:
    assert "longer than 1,024 bytes" in await result_of(text_page(b"x" * 2000), settings={"max_bytes": 1024})
    most = {"max_bytes": 4 << 20}
    text = await result_of(text_page([b"x" * 65536] * 65), settings=most, limit=8 << 20)
    assert text.endswith("[the page is not whole: it is longer than 4,194,304 bytes]")
    slow = text_page([b"x"]).ending("stall")
    assert "within 0.2 s" in await result_of(slow, settings={"timeout_secs": 0.2})


async def test_following_the_notes_shows_every_line_once() -> None:
    lines = [f"line {number} é漢😀" for number in range(3000)]
    start, seen = 0, ""
    for _ in range(100):
        text = await result_of(text_page("\n".join(lines)), limit=9000, start=start)
        shown, separator, note = text.rpartition("\n[characters ")
        if not separator:
            seen += text
            break
        assert len(text.encode()) <= 9000
        start = int(note.partition("start=")[2].rstrip("]"))
        seen += shown + "\n"
    assert seen.splitlines() == lines


async def test_starting_behind_the_end() -> None:
    assert "the text has 5 characters" in await error_of(text_page(), start=5)
    assert await result_of(text_page(), start=3) == "lo"


# --- compression ---


@pytest.mark.parametrize(("coding", "compress"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
async def test_compressed_pages(coding: str, compress: Callable[[bytes], bytes]) -> None:
    assert await result_of(text_page(compress(b"hello"), headers={"content-encoding": coding})) == "hello"


async def test_compression_that_is_a_lie() -> None:
    damaged = text_page(b"no gzip", headers={"content-encoding": "gzip"})
    assert re.fullmatch(
        r"no content came from http://page\.test:\d+: the service sent a compressed body that is damaged",
        await error_of(damaged),
    )
    # Nothing of what it stands for can be shown, so it is not waited for either.
    for coding in ("br", "zstd", "gzip, gzip", "utf-8", "x\x7f"):
        error = await error_of(text_page(b"x", headers={"content-encoding": coding}).ending("stall"))
        shown = coding.replace("\x7f", "\ufffd")
        assert error == (
            f"the content cannot be read: the server sent it in the coding {shown!r}, though only gzip and deflate were"
            " asked for"
        )
        error = await error_of(text_page(b"x", status=500, headers={"content-encoding": coding}).ending("stall"))
        assert error.endswith("answered with status 500 (Internal Server Error)")
    assert await result_of(text_page(b"hello", headers={"content-encoding": "IDENTITY"})) == "hello"
    half = text_page(gzip.compress(b"hello" * 1000)[:-8], headers={"content-encoding": "gzip"})
    text = await result_of(half)
    assert text.startswith("hello" * 1000)
    assert "not complete" in text


# --- trouble on the way ---


async def test_a_connection_that_breaks() -> None:
    assert "the page is not whole: the connection" in await result_of(text_page([b"some", b"more"]).ending("reset"))
    broken = Reply((), headers={"content-type": "text/plain"}).ending("reset")
    assert "no content came from http://page.test:" in await error_of(broken)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ToolError, match=f"no connection to http://page.test:{port}: connection refused"):
        await page_of(f"http://page.test:{port}/")


async def test_huge_headers() -> None:
    error = await error_of(text_page(headers={"x-long": "x" * 200_000}))
    assert "the connection to http://page.test" in error


@pytest.mark.parametrize("where", ["look-up", "connecting", "tls", "head"])
async def test_the_limit_covers_every_step(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedServer([text_page().late()]) as server:
        scheme = "https" if where == "tls" else "http"
        look_up = NeverAnswers() if where == "look-up" else LookUp(["127.0.0.1"])
        if where == "connecting":
            monkeypatch.setattr("httpcore.AnyIOBackend.connect_tcp", sleep_forever)
        with pytest.raises(ToolError, match=r"no answer came from .* within 0\.3 s"), anyio.fail_after(20):
            await call(
                f"{scheme}://page.test:{server.port}/", look_up=look_up, settings={**LOOPBACK, "timeout_secs": 0.3}
            )
        server.wait_open(0)


class NeverAnswers(LookUp):
    def __init__(self) -> None:
        super().__init__([])
        self.begun = anyio.Event()

    async def __call__(self, host: str, port: int) -> Any:
        self.begun.set()
        await anyio.sleep_forever()


async def sleep_forever(*_: Any, **__: Any) -> None:
    await anyio.sleep_forever()


@pytest.mark.parametrize("where", ["tls", "head", "body"])
async def test_cancelling_closes_the_connection(where: str) -> None:
    reply = text_page().ending("stall") if where == "body" else text_page().late()
    async with ScriptedServer([reply]) as server:
        url = f"{'https' if where == 'tls' else 'http'}://page.test:{server.port}/"
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(page_of, url)
                if where == "tls":
                    await anyio.to_thread.run_sync(server.wait_connected, 1)
                else:
                    await server.arrived(1)
                tasks.cancel_scope.cancel()
        await anyio.to_thread.run_sync(server.wait_open, 0)


async def test_cancelling_a_look_up_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, release = threading.Event(), threading.Event()

    def getaddrinfo(*_: Any, **__: Any) -> list[Any]:
        begun.set()
        release.wait(20)
        return []

    monkeypatch.setattr("socket.getaddrinfo", getaddrinfo)
    try:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: WebFetch().run({"url": "http://slow.test/"}, FakeTurn(Path("/nowhere"))))
                await anyio.to_thread.run_sync(begun.wait, 10)
                tasks.cancel_scope.cancel()
    finally:
        release.set()


async def test_look_ups_that_hang_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: release.wait(20) and [])
    monkeypatch.setattr(lookup, "_room", threading.BoundedSemaphore(2))
    try:
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(lookup.look_up, "slow.test", 80)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(ToolError, match="too many look-ups"):
                await lookup.look_up("slow.test", 80)
            tasks.cancel_scope.cancel()
    finally:
        release.set()


async def test_a_name_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    def getaddrinfo(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr("socket.getaddrinfo", getaddrinfo)
    with pytest.raises(ToolError, match=r"cannot find the host nothing\.test: name or service not known"):
        await WebFetch().run({"url": "http://nothing.test/"}, FakeTurn(Path("/nowhere")))


# --- TLS and proxies ---


async def test_certificates_are_checked_against_the_name() -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(CERTIFICATES / "server.pem")
    authority = str(CERTIFICATES / "ca.pem")
    async with ScriptedServer([text_page()], tls=tls) as server:
        assert await page_of(f"{server.url}/", ca_file=authority) == "hello"
        with pytest.raises(ToolError, match="is not trusted: Hostname mismatch"):
            await page_of(f"https://page.test:{server.port}/", ca_file=authority)
        with pytest.raises(ToolError, match="is not trusted"):
            await page_of(f"{server.url}/")


async def test_the_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedServer([text_page()]) as server, ScriptedServer() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert await page_of(f"http://page.test:{server.port}/") == "hello"
        assert proxy.connections == 0


async def test_the_proxy_of_the_settings_looks_names_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "exempt.test")
    async with ScriptedServer([text_page()]) as proxy:
        look_up = LookUp(["10.0.0.5"])
        settings = {"proxy": proxy.url}
        assert await call("http://page.test/", look_up=look_up, settings=settings) == "hello"
        assert look_up.asked == []
        # What names itself as private does not get there, nor does what the proxy is not used for.
        for url in ("http://127.0.0.1/", "http://localhost/", "http://[::ffff:10.0.0.1]/", "http://exempt.test/"):
            with pytest.raises(ToolError, match="only public addresses"):
                await call(url, look_up=look_up, settings=settings)
        assert len(proxy.requests) == 1


async def test_the_title_for_surfaces() -> None:
    async with ScriptedServer([text_page()]) as server:
        tool, turn = WebFetch(look_up=LookUp(["127.0.0.1"])), FakeTurn(Path("/nowhere"), settings=LOOPBACK)
        result = await tool.run({"url": f"http://PAGE.test:{server.port}"}, turn)
    assert json.loads(json.dumps(result.display)) == {"title": f"Fetch http://page.test:{server.port}/"}
