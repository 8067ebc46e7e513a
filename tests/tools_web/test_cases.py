"""The cases of ``tests/cases/web``: inputs that broke other agents' fetching tools."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from openheim import ToolError
from tests.support.replies import Reply
from tests.support.server import ScriptedServer
from tests.tools_web.calls import LookUp, call, is_refused, page_of
from tests.tools_web.playing import played

pytestmark = pytest.mark.anyio

CASE_FILES = Path(__file__).parent.parent / "cases/web"
CASES = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(CASE_FILES.glob("*.json"))}
BODIES = {"gzip of 64 MiB of the letter A": lambda: gzip.compress(b"A" * (64 << 20), 9)}

URLS = [(case["case"], row["url"], row["verdict"]) for case in CASES.values() for row in case.get("urls", ())]


def test_there_are_cases() -> None:
    assert len(CASES) >= 7
    assert len(URLS) >= 37


@pytest.mark.parametrize(("case", "url", "verdict"), URLS)
async def test_urls(connects: list[tuple[str, int]], case: str, url: str, verdict: str) -> None:
    refused = await is_refused(url)
    assert (refused, bool(connects)) == ((True, False) if verdict == "refuse" else (False, True))


@pytest.mark.parametrize("case", [case for case in CASES.values() if "resolver" in case], ids=lambda case: case["case"])
async def test_names(connects: list[tuple[str, int]], case: Mapping[str, Any]) -> None:
    look_up = LookUp(*case["resolver"]["answers"])
    assert await is_refused(f"http://{case['resolver']['name']}/", look_up=look_up)
    assert connects == []


def body_of(response: Mapping[str, Any]) -> bytes:
    if "body_generator" in response:
        return BODIES[response["body_generator"]]()
    return base64.b64decode(response["body_b64"])


def answers() -> Iterator[Any]:
    for case in CASES.values():
        for number, row in enumerate(case.get("rows", [case] if "response" in case else [])):
            if "raw" not in row:
                response = row.get("response", row)
                expect = row.get("expect", row)
                yield pytest.param(response, expect, id=f"{case['case']}-{number}")


@pytest.mark.parametrize(("response", "expect"), [*answers()])
async def test_answers(response: Mapping[str, Any], expect: Mapping[str, Any]) -> None:
    known = {"followed", "result_contains", "within_s", "result_bytes_max", "rss_growth_mb_max", "no_crash"}
    assert set(expect) - known <= {"headers", "body_b64"}
    body = body_of(response)
    reply = Reply((body,) if body else (), response.get("status", 200), response["headers"])
    async with ScriptedServer([reply]) as server:
        with anyio.fail_after(expect.get("within_s", 10)):
            try:
                text = await page_of(f"http://page.test:{server.port}/")
            except ToolError as err:
                text = str(err)
        assert len(server.requests) == 1  # "followed": false
    assert expect.get("result_contains", "") in text
    # rss_growth_mb_max is measured by test_memory, in a process of its own.
    assert len(text.encode()) <= expect.get("result_bytes_max", len(text.encode()))


RAW = [(case["case"], row) for case in CASES.values() for row in case.get("rows", ()) if "raw" in row]


@pytest.mark.parametrize(("case", "row"), RAW, ids=[f"{case}-{row['then']}" for case, row in RAW])
async def test_raw_answers(case: str, row: Mapping[str, Any]) -> None:
    expect = row["expect"]
    limit_secs = 0.5 if row["then"].startswith("drip") else 3
    with played(row["raw"].encode(), row["then"]) as port, anyio.fail_after(expect["within_s"]):
        try:
            text, ok = await page_of(f"http://page.test:{port}/", settings={"timeout_secs": limit_secs}), True
        except ToolError as err:
            text, ok = str(err), False
    assert expect.get("ok", ok) is ok
    assert len(text.encode()) <= expect.get("result_bytes_max", len(text.encode()))


async def test_a_short_body_is_given_as_far_as_it_came() -> None:
    with played(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nshort", "close") as port:
        text = await page_of(f"http://page.test:{port}/")
    assert text.startswith("short\n[the page is not whole: the connection to http://page.test:")


async def test_the_look_up_is_asked_once_a_call(connects: list[tuple[str, int]]) -> None:
    """A name that means something else a moment later makes no difference."""
    look_up = LookUp(["93.184.215.14"], ["127.0.0.1"])
    with pytest.raises(ToolError, match="no connection"):
        await call("http://rebinding.test/", look_up=look_up)
    assert look_up.asked == ["rebinding.test"]
    assert connects == [("93.184.215.14", 80)]
    assert await is_refused("http://rebinding.test/", look_up=look_up)
    assert len(connects) == 1
