"""Answers that no server should give: each has one clear end, in bounded time."""

from __future__ import annotations

import gzip
import random

import anyio
import pytest

from openheim import ToolError
from tests.support.replies import raw
from tests.support.server import ScriptedServer
from tests.tools_web.calls import page_of
from tests.tools_web.playing import played

pytestmark = pytest.mark.anyio

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
GZIP = HEAD + b"content-encoding: gzip\r\n\r\n"


def packed(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)  # The same bytes in each process that collects these tests.


async def outcome_of(answer: bytes, then: str = "close", *, again: bytes = b"", timeout_secs: float = 10) -> str:
    """The result, or ``Error: `` and the error, without the server's address."""
    with played(answer, then, again=again) as port, anyio.fail_after(15):
        url = f"http://page.test:{port}"
        try:
            text = await page_of(f"{url}/", settings={"timeout_secs": timeout_secs})
        except ToolError as err:
            text = f"Error: {err}"
    return text.replace(url, "URL")


#: What a server sends, and what comes of it; or its beginning, if that ends in a blank.
ANSWERS = [
    (HEAD.replace(b"1.1", b"1.0") + b"\r\nhello", "hello"),
    (HEAD.replace(b"1.1", b"1.0") + b"content-length: 5\r\n\r\nhello", "hello"),
    (HEAD.replace(b" OK", b"") + b"content-length: 5\r\n\r\nhello", "hello"),
    (HEAD + b"content-length: 5\r\n\r\nhello and more", "hello"),
    (HEAD + b"content-length: 5\r\n\r\n", "Error: no content came from URL: the connection to URL broke: "),
    (HEAD + b"content-length: -5\r\n\r\nhello", "Error: the connection to URL broke: bad content-length"),
    (
        HEAD + b"content-length: " + b"9" * 5000 + b"\r\n\r\n",
        "Error: the connection to URL broke: bad content-length",
    ),
    (
        HEAD + b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
        "Error: the connection to URL broke: conflicting content-length headers",
    ),
    (CHUNKED + b"5\r\nhello\r\n0\r\n\r\n5\r\nmore!\r\n", "hello"),
    (CHUNKED + b"0\r\n\r\n", "[the page is empty: the server sent no content, and its status is 200]"),
    (CHUNKED + b"5\r\nhello\r\n0\r\nx: y\r\n\r\n", "hello"),
    (CHUNKED + b"64\r\nhello", "hello\n[the page is not whole: the connection to URL broke: "),
    (CHUNKED + b"f" * 20 + b"\r\nhello", "hello\n[the page is not whole: the connection to URL broke: "),
    (CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n", "Error: no content came from URL: the connection to URL broke: "),
    (CHUNKED + b"1\r\na\r\n" * 20_000 + b"0\r\n\r\n", "a" * 20_000),
    (
        HEAD + b"".join(b"a%d: b\r\n" % number for number in range(8000)) + b"content-length: 5\r\n\r\nhello",
        "hello",
    ),
    (HEAD + b"a: b\r\n" * 10_000 + b"content-length: 5\r\n\r\nhello", "hello"),
    (HEAD + b"a: b\r\n" * 40_000 + b"\r\n", "Error: the connection to URL broke: receive buffer too long"),
    (HEAD + b"no header\r\n\r\nhello", "Error: the connection to URL broke: illegal header line"),
    (HEAD + b"x: a\0b\r\n\r\nhello", "Error: the connection to URL broke: illegal header line"),
    (b"HTTP/2 200 OK\r\n\r\nhello", "Error: the connection to URL broke: illegal status line"),
    (b"<html>hello", "Error: the connection to URL broke: server disconnected without sending a response"),
    (b"", "Error: the connection to URL broke: server disconnected without sending a response"),
    (
        b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        "Error: the connection to URL broke: ",
    ),
    (GZIP + packed(b"hello") + b"\0" * 100_000, "hello"),
    (GZIP + packed(b"") * 20_000, "[the page is empty: the server sent no content, and its status is 200]"),
    (GZIP, "Error: no content came from URL: the service sent a compressed body that is not complete"),
    (GZIP + packed(b"hello") + b"more", "hello\n[the page is not whole: the service sent a compressed body "),
]


@pytest.mark.parametrize(("answer", "outcome"), ANSWERS, ids=[f"{number}" for number in range(len(ANSWERS))])
async def test_what_comes_of_it(answer: bytes, outcome: str) -> None:
    found = await outcome_of(answer)
    assert found == outcome or (outcome.endswith(" ") and found.startswith(outcome))


@pytest.mark.parametrize(
    ("answer", "again"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"x: y\r\n"),
        (b"", b"HTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\n"),
        (GZIP, packed(b"")),
        (CHUNKED + b"5;", b"x"),
    ],
    ids=["headers", "interim answers", "empty members", "chunk extension"],
)
async def test_dripping_is_bounded(answer: bytes, again: bytes) -> None:
    """Something comes all the time, and never what is waited for."""
    found = await outcome_of(answer, "drip", again=again, timeout_secs=0.5)
    assert found.startswith("Error: no ")
    assert found.endswith(" came from URL within 0.5 s (timeout_secs in [tools.web])")


async def test_what_came_in_time_is_kept() -> None:
    for head, again in ((CHUNKED, b"1\r\na\r\n"), (HEAD + b"content-length: 100000\r\n\r\n", b"a")):
        found = await outcome_of(head, "drip", again=again, timeout_secs=0.5)
        assert found.startswith("a")
        assert found.endswith(
            "[the page is not whole: the rest did not come within 0.5 s (timeout_secs in [tools.web])]"
        )


@pytest.mark.parametrize(
    ("answer", "again"),
    [(CHUNKED + b"1;", b"x"), (CHUNKED + b"1\r\na\r\n0\r\n", b"x: y\r\n")],
    ids=["extension", "trailers"],
)
async def test_floods_end(answer: bytes, again: bytes) -> None:
    """What belongs to no content is not gathered without end either."""
    assert "receive buffer too long" in await outcome_of(answer, "endless", again=again)


@pytest.mark.parametrize("again", [b"\0", packed(b"")], ids=["zeros", "members"])
async def test_a_body_that_goes_on_and_holds_nothing(again: bytes) -> None:
    """It has no end, and no byte of a page that could be too many."""
    problem = "the service sent a compressed body that goes on and holds nothing"
    assert await outcome_of(GZIP, "endless", again=packed(b"")) == f"Error: no content came from URL: {problem}"
    text = await outcome_of(GZIP + packed(b"hello"), "endless", again=again)
    assert text == f"hello\n[the page is not whole: {problem}]"


# --- what is called text and is none ---


RANDOM = random.Random(3).randbytes(5000)


@pytest.mark.parametrize("content_type", ["text/html; charset=utf-8", "text/plain", "application/json"])
@pytest.mark.parametrize(
    "body",
    [
        b"%PDF-1.7\n1 0 obj",
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xd8\xff\xe0",
        b"PK\x03\x04",
        packed(b"x"),
        b"\x7fELF",
        RANDOM,
    ],
    ids=["pdf", "png", "jpeg", "zip", "gzip", "elf", "random"],
)
async def test_binary_content_under_the_name_of_text(content_type: str, body: bytes) -> None:
    async with ScriptedServer(default=raw(body, content_type=content_type)) as server:
        kind = content_type.partition(";")[0]
        for as_sent in (False, True):
            with pytest.raises(
                ToolError, match=f"the server calls it {kind}, and it looks like no text; only text can"
            ):
                await page_of(f"http://page.test:{server.port}/", raw=as_sent)


@pytest.mark.parametrize(
    "text",
    [
        "RIFF is a format. GIF89a is another, and so is Rar!",
        "\x1b[31mred\x1b[0m " * 200,
        "one\0two",
        "Привет, мир. " * 200,
        "page\x0c" * 500,
    ],
)
@pytest.mark.parametrize("codec", ["utf-8", "utf-16"])
async def test_text_that_looks_a_little_like_it(text: str, codec: str) -> None:
    async with ScriptedServer([raw(text.encode(codec), content_type="text/plain")]) as server:
        shown = await page_of(f"http://page.test:{server.port}/")
    assert shown == text.replace("\x1b", "").replace("\0", "")


async def test_text_under_a_wrong_charset_is_shown_as_well_as_can_be() -> None:
    body = "<p>Привет</p>".encode("cp1251")
    async with ScriptedServer([raw(body, content_type="text/html; charset=utf-8")]) as server:
        assert await page_of(f"http://page.test:{server.port}/") == "\ufffd" * 6
