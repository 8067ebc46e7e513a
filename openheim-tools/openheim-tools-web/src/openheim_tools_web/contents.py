"""What kind of content an answer has, and whether it is text at all."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

__all__ = ("Content", "content_of", "is_gibberish", "media_type", "sniffed")

#: ``unknown``: the answer does not say, so its beginning has to tell.
Content: TypeAlias = Literal["html", "xml", "text", "unknown"]

_HTML = ("text/html", "application/xhtml+xml")
_HTML_START = re.compile(
    rb"<(?:!doctype\s+html|html|head|body|title|meta|script|style|link|div|p|h[1-6]|table|a|br)[\s/>]", re.IGNORECASE
)
#: How the files begin that are met most often where a page was expected; no text begins like the first of them.
_NEVER_TEXT = (b"%PDF-", b"\x89PNG", b"\xff\xd8\xff", b"PK\x03\x04", b"\x1f\x8b", b"\x7fELF")
_BINARY_STARTS = (*_NEVER_TEXT, b"GIF8", b"RIFF", b"Rar!")
_SAMPLE_BYTES = 1024
#: What binary data that is read as text is full of; a tenth of random bytes. (Escapes colour the output of programs.)
_BINARY_CONTROLS = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MOST_CONTROLS = 8
_MOST_CONTROLS_SHARE = 0.05


def media_type(content_type: str) -> str:
    """The header without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def content_of(content_type: str) -> Content | None:
    """What the header says; None for what is no text."""
    kind = media_type(content_type)
    if not kind:
        return "unknown"
    if kind in _HTML:
        return "html"
    if "xml" in kind:
        return "xml"
    if kind.startswith("text/") or "json" in kind:
        return "text"
    return None


def is_gibberish(body: bytes | bytearray, text: str) -> bool:
    """Whether a body that was decoded to ``text`` is none, whatever the header says."""
    if body.startswith(_NEVER_TEXT):
        return True
    sample = text[:_SAMPLE_BYTES]
    controls = len(_BINARY_CONTROLS.findall(sample))
    return controls > max(_MOST_CONTROLS, _MOST_CONTROLS_SHARE * len(sample))


def sniffed(body: bytes | bytearray) -> Content | None:
    """What the beginning of a body looks like; None for what is no text."""
    start = bytes(body[:_SAMPLE_BYTES])
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "text"
    if start.startswith(_BINARY_STARTS):
        return None
    start = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith((b"<?xml", b"<\0?\0", b"\0<\0?")):
        return "xml"
    if b"\0" in start:
        return None
    if _HTML_START.match(re.sub(rb"\A(?:<!--.*?-->\s*)+", b"", start, flags=re.DOTALL)):
        return "html"
    return "text"
