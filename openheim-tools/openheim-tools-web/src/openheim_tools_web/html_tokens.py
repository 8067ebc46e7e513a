"""HTML as a sequence of tags and texts.

Follows the tokenizer of the HTML standard as far as it matters for reading. Each character is passed once, so that no
page can make it slow. Parsers that build the tree of the standard can be made so: nested and misnested tags cost them
the square of their number, in time and in memory. (lexbor took 29 s for 100,000 nested ``div``, and more memory than
there was for 18,000 times ``<p><b a=1><i>`` with a different number each time.)
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("TokenHandler", "read_tokens", "unescaped")

_NAME = re.compile(r"[a-zA-Z][^\s/>]*")
_BEFORE_ATTRIBUTE = re.compile(r"[\s/]*")
_ATTRIBUTE_NAME = re.compile(r"[^\s/>][^\s/>=]*")
_EQUALS = re.compile(r"\s*=\s*")
_UNQUOTED = re.compile(r"[^\s>]*")
_COMMENT_END = re.compile("--!?>")
#: Elements whose content is no markup, up to their end tag.
_RAW = frozenset(("script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes"))
_RAW_END = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _RAW}
#: Numbers of no character, and longer than Python likes to read.
_LONG_NUMBER = re.compile("&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{8,});?")


class TokenHandler(Protocol):
    """Is told what is read, in order. Names are in lower case; of a repeated attribute, the first counts."""

    def start(self, name: str, attributes: Mapping[str, str], closed: bool) -> None:
        """A start tag. ``closed``: it ends with ``/>``, which means something in SVG and MathML only."""

    def end(self, name: str) -> None: ...

    def text(self, text: str) -> None:
        """Text between tags, or the whole content of an element such as ``title`` or ``script``; unescaped."""

    @property
    def done(self) -> bool:
        """Whether the rest is of no interest."""
        ...


def unescaped(text: str) -> str:
    """The text with its character references replaced."""
    if "&" not in text:
        return text
    return html.unescape(_LONG_NUMBER.sub("\ufffd", text))


def read_tokens(source: str, handler: TokenHandler) -> None:
    """Reads a page. What is not closed at its end (a tag, a comment, a script) takes the rest of the page with it."""
    position = 0
    while not handler.done:
        found = source.find("<", position)
        if found < 0:
            break
        if found > position:
            handler.text(unescaped(source[position:found]))
        position = _read_markup(source, found, handler)
    if position < len(source) and not handler.done:
        handler.text(unescaped(source[position:]))


def _read_markup(source: str, position: int, handler: TokenHandler) -> int:
    """Reads what begins with the ``<`` there, and returns where it ends."""
    following = source[position + 1 : position + 2]
    if following.isascii() and following.isalpha():
        return _read_start_tag(source, position + 1, handler)
    if following == "/":
        name = _NAME.match(source, position + 2)
        if name is not None:
            end, attributes, _ = _read_attributes(source, name.end())
            if attributes is not None:
                handler.end(name[0].lower())
            return end
        return _behind(source.find(">", position), source)
    if source.startswith("<!--", position):
        closing = _COMMENT_END.search(source, position + 2)
        return closing.end() if closing else len(source)
    if following in ("!", "?"):
        return _behind(source.find(">", position), source)
    handler.text("<")
    return position + 1


def _read_start_tag(source: str, position: int, handler: TokenHandler) -> int:
    match = _NAME.match(source, position)
    assert match is not None
    name = match[0].lower()
    end, attributes, closed = _read_attributes(source, match.end())
    if attributes is None:
        return end
    handler.start(name, attributes, closed)
    if name == "plaintext":
        handler.text(source[end:])
        return len(source)
    if name in _RAW:
        closing = _RAW_END[name].search(source, end)
        stop = closing.start() if closing else len(source)
        content = source[end:stop]
        handler.text(unescaped(content) if name in ("title", "textarea") else content)
        if not closing:
            handler.end(name)
        return stop
    return end


def _read_attributes(source: str, position: int) -> tuple[int, dict[str, str] | None, bool]:
    """Reads to the ``>`` of a tag, or to the end of the page.

    Returns:
        Where the tag ends, its attributes (None if it has no end), and whether it ends with ``/>``.
    """
    attributes: dict[str, str] = {}
    while True:
        gap = _BEFORE_ATTRIBUTE.match(source, position)
        position = gap.end() if gap else position
        if source.startswith(">", position):
            return position + 1, attributes, source[position - 1] == "/"
        # A name may begin with "=", so that there is always something to read.
        name = _ATTRIBUTE_NAME.match(source, position)
        if name is None:
            return len(source), None, False
        position, value = name.end(), ""
        if equals := _EQUALS.match(source, position):
            position = equals.end()
            quote = source[position : position + 1]
            if quote in ('"', "'") and quote:
                closing = source.find(quote, position + 1)
                if closing < 0:
                    return len(source), None, False
                value, position = source[position + 1 : closing], closing + 1
            else:
                plain = _UNQUOTED.match(source, position)
                value, position = (plain[0], plain.end()) if plain else ("", position)
        attributes.setdefault(name[0].lower(), value)


def _behind(position: int, source: str) -> int:
    return position + 1 if position >= 0 else len(source)
