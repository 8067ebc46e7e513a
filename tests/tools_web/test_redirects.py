"""Redirects are told and not followed, whoever asks for them: the status, a header, or the page."""

from __future__ import annotations

import pytest

from openheim import ToolError
from tests.support.replies import raw
from tests.support.server import ScriptedServer
from tests.tools_web.calls import page_of

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("/c", "http://page.test:PORT/c"),
        ("c?d", "http://page.test:PORT/a/c?d"),
        ("//other.test/", "http://other.test/"),
        ("https://other.test/\x7f", "https://other.test/\ufffd"),
        ("http://[bad", "http://[bad"),
    ],
)
async def test_redirects(status: int, location: str, shown: str) -> None:
    async with ScriptedServer([raw(b"x", status=status, headers={"location": location}).ending("stall")]) as server:
        url = f"http://page.test:{server.port}/a/b"
        with pytest.raises(ToolError) as caught:
            await page_of(url)
    assert f"{url} redirects to {shown.replace('PORT', str(server.port))} (status {status})" in str(caught.value)


@pytest.mark.parametrize(
    ("location", "advice"),
    [
        ("HTTPS://other.test/", "so fetch that address if you want what is there"),
        ("javascript:alert(1)", "and only http:// and https:// can be fetched"),
        ("file:///etc/passwd", "and only http:// and https:// can be fetched"),
    ],
)
async def test_only_an_address_of_the_web_is_advised(location: str, advice: str) -> None:
    async with ScriptedServer([raw(b"", status=302, headers={"location": location})]) as server:
        url = f"http://page.test:{server.port}/"
        with pytest.raises(ToolError) as caught:
            await page_of(url)
    assert str(caught.value).lower() == (
        f"{url} redirects to {location.lower()} (status 302); redirects are not followed, {advice}"
    )


async def test_a_redirect_to_nowhere() -> None:
    async with ScriptedServer([raw(b"hello", status=302, content_type="text/plain")]) as server:
        with pytest.raises(ToolError, match=r"answered with status 302 \(Found\)"):
            await page_of(f"http://page.test:{server.port}/")


async def test_a_server_that_redirects_to_itself_is_asked_once() -> None:
    async with ScriptedServer(default=raw(b"", status=302, headers={"location": "/"})) as server:
        with pytest.raises(ToolError, match="redirects are not followed"):
            await page_of(f"http://page.test:{server.port}/")
        assert server.connections == 1


LEADS_ON = "[the page leads on to {}, which is not followed; fetch that address if you want what is there]"


@pytest.mark.parametrize(
    ("content", "there"),
    [
        ("0; url=latest/", "http://page.test:PORT/a/latest/"),
        ("0;URL='//other.test/?a&amp;b'", "http://other.test/?a&b"),
        ("3.5 , /x", "http://page.test:PORT/x"),
        ("0; url=http://169.254.169.254/", "http://169.254.169.254/"),
        ("0", ""),
        ("0; url=", ""),
        ("0; url=b", ""),
        ("600; url=/x", ""),
        ("url=/x", ""),
        ("0; url=javascript:alert(1)", ""),
        ("0; url=' JavaScript:alert(1)'", ""),
        ("0; url=data:text/html,hello", ""),
        ("0; url=file:///etc/passwd", ""),
        ("0; url=mailto:a@b.test", ""),
        ("0; url=HTTPS://other.test/", "HTTPS://other.test/"),
    ],
)
@pytest.mark.parametrize("in_header", [False, True])
async def test_pages_that_lead_on(content: str, there: str, in_header: bool) -> None:
    element = f'<META content="{content}" http-equiv=Refresh>'
    headers = {"refresh": content.replace("&amp;", "&")} if in_header else {}
    body = "<p>Moved" if in_header else f"{element}<p>Moved"
    async with ScriptedServer([raw(body, content_type="text/html", headers=headers)]) as server:
        text = await page_of(f"http://page.test:{server.port}/a/b")
        assert len(server.requests) == 1
    note = f"\n{LEADS_ON.format(there.replace('PORT', str(server.port)))}" if there else ""
    assert text == f"Moved{note}"


async def test_where_a_page_leads_is_the_first_address_of_the_web_in_it() -> None:
    body = (
        "<base href='data:,x'><meta http-equiv=refresh content='0;url=/x'>"
        "<meta http-equiv=refresh content='0;url=javascript:alert(1)'>"
        "<meta http-equiv=refresh content='0;url=http://other.test/'><p>Moved"
    )
    headers = {"refresh": "0; url=http://last.test/"}
    async with ScriptedServer([raw(body, content_type="text/html", headers=headers)]) as server:
        text = await page_of(f"http://page.test:{server.port}/")
    assert text == f"Moved\n{LEADS_ON.format('http://other.test/')}"
