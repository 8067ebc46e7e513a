"""What a call of web_fetch returns: the page as text, or the error that it is for the model."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING

import anyio.to_thread

from openheim import ToolError
from openheim_tools_web.charsets import decoded
from openheim_tools_web.contents import content_of, is_gibberish, media_type, sniffed
from openheim_tools_web.fetching import Page, fetch
from openheim_tools_web.html_text import readable_page, refresh_target
from openheim_tools_web.urls import is_web_address, joined

if TYPE_CHECKING:
    from openheim_tools_web.guard import Guard
    from openheim_tools_web.settings import Settings
    from openheim_tools_web.urls import WebUrl

__all__ = ("page_text", "section")

_REDIRECTS = frozenset((301, 302, 303, 307, 308))
#: Those that have no body, whatever their headers announce (RFC 9110, 15.3 and 15.4).
_BODILESS = frozenset((204, 205, 304))
#: Content codings that are undone, and the names for none at all.
_CODINGS = frozenset(("gzip", "x-gzip", "deflate", "identity", ""))
#: Of an answer that is an error, so much is read, and so much of its text is told.
ERROR_BYTES = 64 * 1024
ERROR_CHARS = 500
MAX_LOCATION_CHARS = 2000
#: What has no place in text, and would do odd things to a terminal.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f]")


async def page_text(url: WebUrl, guard: Guard, settings: Settings, *, ca_file: str | None, raw: bool) -> str:
    """The whole text of a page, notes on what it lacks at its end.

    Raises:
        ToolError: the guard refuses the address, or there is no page of text at it.
    """
    guard.check(url)
    page = await fetch(url, guard, settings, ca_file=ca_file, wanted=lambda page: _wanted(page, settings.max_bytes))
    # A large page takes a tenth of a second.
    return await anyio.to_thread.run_sync(_outcome, page, url, raw, abandon_on_cancel=True)


def _wanted(page: Page, max_bytes: int) -> int:
    """How many bytes of the body are of use.

    Raises:
        ToolError: none, since it is no text.
    """
    if page.status in _REDIRECTS or page.status in _BODILESS or page.headers.get("content-length") == "0":
        return 0
    kind = content_of(page.headers.get("content-type", ""))
    coding = page.headers.get("content-encoding", "").strip().lower()
    if not 200 <= page.status < 300:
        return ERROR_BYTES if kind is not None and coding in _CODINGS else 0
    if kind is None:
        what = _printable(media_type(page.headers["content-type"]))[:100]
        raise _not_text(f"the content type is {what}")
    if coding not in _CODINGS:
        raise ToolError(
            f"the content cannot be read: the server sent it in the coding {_printable(coding)[:100]!r}, though only"
            " gzip and deflate were asked for"
        )
    return max_bytes


def _not_text(why: str) -> ToolError:
    return ToolError(f"{why}; only text can be fetched (HTML, plain text, JSON, XML)")


def _outcome(page: Page, url: WebUrl, raw: bool) -> str:
    _check_status(page, url)
    return _text(page, url, raw)


def _check_status(page: Page, url: WebUrl) -> None:
    """Raises:
    ToolError: the answer is no success.
    """
    if page.status in _REDIRECTS and (location := page.headers.get("location", "").strip()):
        try:
            location = location.encode("latin-1").decode("utf-8")
        except UnicodeError:
            pass  # It is in Latin-1 already.
        there = _printable(joined(str(url), location))[:MAX_LOCATION_CHARS]
        advice = "so fetch that address if you want what is there"
        if not is_web_address(there):
            advice = "and only http:// and https:// can be fetched"
        raise ToolError(f"{url} redirects to {there} (status {page.status}); redirects are not followed, {advice}")
    if 200 <= page.status < 300:
        return
    phrase = HTTPStatus(page.status).phrase if page.status in HTTPStatus._value2member_map_ else "unknown"
    # Of an error, nobody misses the rest.
    page.shortfall = ""
    message = f"{url} answered with status {page.status} ({phrase})"
    try:
        excerpt = " ".join(_text(page, url, raw=False).split()) if page.body else ""
    except ToolError:
        excerpt = ""
    if len(excerpt) > ERROR_CHARS:
        excerpt = excerpt[:ERROR_CHARS] + " …"
    raise ToolError(f"{message}: {excerpt}" if excerpt else message)


def _text(page: Page, url: WebUrl, raw: bool) -> str:
    """The text of a page, notes on what it lacks at its end.

    Raises:
        ToolError: it is no text.
    """
    content_type = page.headers.get("content-type", "")
    kind = content_of(content_type)
    if kind == "unknown":
        kind = sniffed(page.body)
        if kind is None:
            raise _not_text("the server does not say what it sent, and it looks like no text")
    text = decoded(page.body, content_type, markup=kind in ("html", "xml"))
    if is_gibberish(page.body, text):
        raise _not_text(f"the server calls it {_printable(media_type(content_type))[:100]}, and it looks like no text")
    notes = []
    leads_to = refresh_target(str(url), page.headers.get("refresh", ""))
    if kind == "html" and not raw:
        readable = readable_page(text, str(url))
        text = f"Title: {readable.title}\n\n{readable.text}" if readable.title else readable.text
        if readable.part:
            notes.append(f"only what the page marks as its {readable.part} part is shown; raw=true gives all of it")
        leads_to = readable.leads_to or leads_to
        if readable.is_cut:
            notes.append("the text of the page is too long, and cut here")
    text = _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    # Half of a pair, from UTF-16 that is no such thing.
    text = text.encode("utf-8", "replace").decode("utf-8")
    if not text.strip():
        text = _without_text(page, html=kind == "html" and not raw)
    if leads_to not in ("", str(url)):
        there = _printable(leads_to)[:MAX_LOCATION_CHARS]
        notes.append(
            f"the page leads on to {there}, which is not followed; fetch that address if you want what is there"
        )
    if page.shortfall:
        notes.append(f"the page is not whole: {page.shortfall}")
    return "\n".join([text, *(f"[{note}]" for note in notes)])


def _without_text(page: Page, *, html: bool) -> str:
    if not page.body:
        return f"[the page is empty: the server sent no content, and its status is {page.status}]"
    hint = "; a script may make it, and raw=true shows the source" if html else ", only blanks"
    return f"[the page has no text{hint}]"


def section(text: str, start: int, room_bytes: int) -> str:
    """The part of the text that fits into ``room_bytes``, with a note that says how to see the next one.

    Raises:
        ToolError: there is nothing at ``start``.
    """
    if start and start >= len(text):
        raise ToolError(f"start={start} is beyond the end: the text has {len(text):,} characters")
    rest = text[start : start + room_bytes]
    if len(rest) * 4 > room_bytes:
        rest = rest.encode()[:room_bytes].decode("utf-8", "ignore")
    end = start + len(rest)
    if end == len(text):
        return rest
    # At the end of a line, where there is one.
    line_end = rest.rfind("\n", len(rest) * 3 // 4)
    if line_end > 0:
        rest = rest[: line_end + 1]
        end = start + len(rest)
    return f"{rest.rstrip()}\n[characters {start:,} to {end:,} of {len(text):,}; go on with start={end}]"


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "\ufffd" for character in text)
