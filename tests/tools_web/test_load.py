"""Memory, descriptors and threads stay as they are over many pages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.replies import raw
from tests.support.server import ScriptedServer

#: Kind of page, how many of them there are, and calls. Making text of a megabyte of tags takes half a second.
LOADS = [("text/plain", 64, 64, 10_000), ("text/html", 4, 4, 100)]

#: Pages of a megabyte, in parts and as a whole. Those in parts are kept for their session, as many as there is room
#: for: that is over when the measuring begins.
CHILD = """
import json, os, sys, threading
from pathlib import Path
import anyio
from openheim.testing import FakeTurn
from openheim_tools_web.web_fetch import WebFetch
from tests.tools_web.calls import LOOPBACK, LookUp

SETTINGS = {**LOOPBACK, "max_bytes": 2 << 20}

def resident_mb():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024 / 1024

def possessions():
    return resident_mb(), len(os.listdir("/proc/self/fd")), threading.active_count()

async def main():
    url, pages, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    tool = WebFetch(look_up=LookUp(["127.0.0.1"]))

    async def one(number):
        page = number % pages
        limit = 128 * 1024 if number % 2 else 2 << 20
        turn = FakeTurn(Path(), settings=SETTINGS, session_id=str(page), result_limit_bytes=limit)
        result = await tool.run({"url": f"{url}/{page}"}, turn)
        text = result.content[0].text
        assert "start=" in text[-40:] if number % 2 else text.endswith("the end"), text[-200:]

    async def some(count):
        for first in range(0, count, 4):
            async with anyio.create_task_group() as group:
                for number in range(first, first + 4):
                    group.start_soon(one, number)

    await some(pages)
    before = possessions()
    await some(count)
    print(json.dumps([before, possessions()]))

anyio.run(main)
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("content_type", "pages", "calls", "long_calls"), LOADS)
def test_many_pages_of_a_megabyte(
    content_type: str, pages: int, calls: int, long_calls: int, long_counts: bool
) -> None:
    count = long_calls if long_counts else calls
    page = raw("<p>some words of a line</p>\n" * 36_000 + "the end", content_type=content_type)
    with ScriptedServer(lambda request: page) as server:
        done = subprocess.run(
            [sys.executable, "-c", CHILD, f"http://page.test:{server.port}", str(pages), str(count)],
            env={"PYTHONPATH": str(Path(__file__).parent.parent.parent), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        server.wait_open(0)
    assert done.returncode == 0, done.stderr
    (memory, descriptors, threads), (memory_after, descriptors_after, threads_after) = json.loads(done.stdout)
    assert abs(memory_after - memory) < 20, (memory, memory_after)
    assert descriptors_after <= descriptors
    assert threads_after <= threads
