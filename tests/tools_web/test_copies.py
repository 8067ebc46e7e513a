"""Going on in a long page: the text is kept for the session, so that it is fetched once and stays the same."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openheim import TextBlock
from openheim.testing import FakeTurn
from openheim_tools_web import copies
from openheim_tools_web.web_fetch import WebFetch
from tests.support.replies import Reply, raw
from tests.support.server import Request, ScriptedServer
from tests.tools_web.calls import LOOPBACK, LookUp

pytestmark = pytest.mark.anyio


def page(text: str) -> Reply:
    return raw(text, content_type="text/plain")


class Calls:
    """Calls of one session, of one that a server on the loopback interface answers."""

    def __init__(self, server: ScriptedServer) -> None:
        self.tool = WebFetch(look_up=LookUp(["127.0.0.1"]))
        self.url = f"http://page.test:{server.port}/"

    async def __call__(self, start: int = 0, *, session: str = "session", path: str = "", **arguments: Any) -> str:
        turn = FakeTurn(Path("/nowhere"), settings=LOOPBACK, session_id=session, result_limit_bytes=2048)
        result = await self.tool.run({"url": self.url + path, "start": start, **arguments}, turn)
        (block,) = result.content
        assert isinstance(block, TextBlock)
        return block.text


def changing_pages() -> Callable[[Request], Reply]:
    """Pages of 5,000 characters, all of them the number of the request."""
    count = itertools.count()
    return lambda request: page(str(next(count)) * 5000)


async def test_going_on_shows_the_page_that_was_begun() -> None:
    async with ScriptedServer(changing_pages()) as server:
        call = Calls(server)
        assert (await call()).startswith("0")
        assert (await call(1024)).startswith("0")
        assert await call(4500) == "0" * 500
        assert len(server.requests) == 1
        assert (await call()).startswith("1")  # the page as it is now
        assert (await call(1024)).startswith("1")
        assert (await call(1024, raw=True)).startswith("2")
        assert (await call(1024, path="other")).startswith("3")
        assert (await call(1024, session="other")).startswith("4")
        assert (await call(1024, session="")).startswith("5")
        assert (await call(2048, session="")).startswith("6")  # outside of a session, nothing is kept
        await call.tool.close_session("session")
        assert (await call(1024)).startswith("7")
        assert (await call(1024, session="other")).startswith("4")


async def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedServer(changing_pages()) as server:
        call = Calls(server)
        monkeypatch.setattr(copies, "MAX_PAGES", 2)
        for path in ("a", "b", "c"):
            await call(path=path)
        assert (await call(1, path="b")).startswith("1")
        assert (await call(1, path="c")).startswith("2")
        assert (await call(1, path="a")).startswith("3")
        monkeypatch.setattr(copies, "MAX_MEMORY_BYTES", 8000)
        await call(path="d")
        assert (await call(1, path="d")).startswith("4")
        assert (await call(1, path="a")).startswith("5")
        monkeypatch.setattr(copies, "MAX_AGE_SECS", 0)
        assert (await call(1, path="a")).startswith("6")
        assert (await call(1, path="a")).startswith("7")


async def test_short_pages_are_not_kept() -> None:
    async with ScriptedServer([page("a" * 100), page("b" * 100)]) as server:
        call = Calls(server)
        await call()
        assert await call(50) == "b" * 50
