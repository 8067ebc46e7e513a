"""What a page can make of the memory of the process that reads it."""

from __future__ import annotations

import gzip
import subprocess
import sys

from tests.support.replies import raw
from tests.support.server import ScriptedServer

# Fetches each address once to have everything loaded, then again: what grows then is what the page takes.
CHILD = """
import resource, sys
import anyio
from openheim import ToolError
from tests.tools_web.calls import page_of

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1024 * 1024)

async def main():
    warm, *others = sys.argv[1:]
    await page_of(warm)
    before = peak()
    for url in others:
        try:
            text = await page_of(url)
        except ToolError as err:
            # Packed twice and said to be so once, it is no text.
            assert url.endswith("/twice"), err
            continue
        assert len(text.encode()) < 300_000, url
    print(peak() - before)

anyio.run(main)
"""


def test_bombs_and_hostile_pages_take_little_memory() -> None:
    bomb = gzip.compress(bytes(64 << 20).replace(b"\0", b"A"), 9)
    twice = gzip.compress(gzip.compress(b"A" * (64 << 20)) * 4)
    html = {"content_type": "text/html"}
    tags = "".join(f"<p><b a={number}><i>" for number in range(18_000))
    pages = {
        "/warm": raw("<p>x</p>", headers={"content-encoding": "identity"}, **html),
        "/bomb": raw(bomb, content_type="text/plain", headers={"content-encoding": "gzip"}),
        "/bomb.html": raw(bomb, headers={"content-encoding": "gzip"}, **html),
        "/twice": raw(twice, content_type="text/plain", headers={"content-encoding": "gzip"}),
        "/tags": raw(tags, **html),
        "/deep": raw("<div>" * 100_000, **html),
        "/long": raw([b"x" * 65536] * 1000, content_type="text/plain"),
    }
    with ScriptedServer(lambda request: pages[request.path]) as server:
        urls = [f"http://page.test:{server.port}{path}" for path in pages]
        child = subprocess.run([sys.executable, "-c", CHILD, *urls], capture_output=True, text=True, timeout=50)
    assert child.returncode == 0, child.stderr
    assert float(child.stdout) < 60
