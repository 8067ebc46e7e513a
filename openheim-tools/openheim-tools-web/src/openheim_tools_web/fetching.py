"""One request, bounded in time and size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from openheim import ToolError
from openheim.errors import ProviderError
from openheim.http import HttpClient
from openheim_tools_web.settings import LONGEST_MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openheim_tools_web.guard import Guard
    from openheim_tools_web.settings import Settings
    from openheim_tools_web.urls import WebUrl

__all__ = ("Page", "fetch")

_HEADERS = {
    "accept": "text/html,application/xhtml+xml,application/xml;q=0.9,application/json;q=0.9,text/*;q=0.9,*/*;q=0.5",
    # Those that openheim.http decompresses, piece by piece.
    "accept-encoding": "gzip, deflate",
}


@dataclass(slots=True)
class Page:
    """What came of a request.

    Args:
        headers: names in lower case.
        body: what was read of it, decompressed.
        shortfall: why the body is not whole, as a clause, or ``""``.
    """

    status: int
    headers: Mapping[str, str]
    body: bytearray = field(default_factory=bytearray)
    shortfall: str = ""


async def fetch(
    url: WebUrl, guard: Guard, settings: Settings, *, ca_file: str | None, wanted: Callable[[Page], int]
) -> Page:
    """Fetches an address. The connection serves this request only.

    Args:
        wanted: given the page without its body, says how many bytes of that are of use.

    Raises:
        ToolError: no answer came, or ``guard`` refuses the address. An answer that breaks off, or takes too long, is
            given as far as it came.
    """
    page: Page | None = None
    client = HttpClient(proxy=settings.proxy, ca_file=ca_file, resolve=guard.resolve)
    limit_secs = settings.timeout_secs
    try:
        with anyio.move_on_after(limit_secs) as scope:
            # The client's own limit is for each step, and would come first where a step takes all the time.
            async with client.stream("GET", str(url), headers=_HEADERS, timeout_secs=limit_secs + 60) as response:
                page = Page(response.status, response.headers)
                if (limit := wanted(page)) > 0:
                    async for chunk in response.chunks():
                        page.body += chunk
                        if len(page.body) > limit:
                            del page.body[limit:]
                            page.shortfall = f"it is longer than {limit:,} bytes"
                            if limit < LONGEST_MAX_BYTES:
                                page.shortfall += "; a larger max_bytes in [tools.web] shows more"
                            break
    except ProviderError as err:
        if page is None:
            raise ToolError(err.message) from err
        if not page.body and 200 <= page.status < 300:
            raise ToolError(f"no content came from {url.origin}: {err.message}") from err
        page.shortfall = err.message
    finally:
        await client.aclose()
    if scope.cancelled_caught:
        if page is None or not page.body:
            what = "answer" if page is None else "content"
            raise ToolError(f"no {what} came from {url.origin} within {limit_secs:g} s (timeout_secs in [tools.web])")
        page.shortfall = f"the rest did not come within {limit_secs:g} s (timeout_secs in [tools.web])"
    assert page is not None
    return page
