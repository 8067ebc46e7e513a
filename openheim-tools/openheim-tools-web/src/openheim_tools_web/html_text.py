"""A web page as text that reads well: headings, lists, links, tables and code keep their form, as in Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openheim_tools_web.html_tokens import read_tokens, unescaped
from openheim_tools_web.lines import Lines
from openheim_tools_web.skipping import Skipping
from openheim_tools_web.urls import is_web_address, joined

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("ReadablePage", "readable_page", "refresh_target")

#: Longest text that is made of a page: a page can say a long address once and then use it in each of its links.
MAX_TEXT_CHARS = 2 * 1024 * 1024
MAX_HREF_CHARS = 1000
MAX_LABEL_CHARS = 500
#: Levels of lists that are indented.
MAX_INDENT = 8
#: The main part of a page stands for the whole if it has at least this share of the text.
PART_SHARES = {"main": 0.1, "article": 0.4}
MIN_MAIN_CHARS = 100

_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_PARAGRAPHS = frozenset(("p", "pre", "blockquote", "table", "ul", "ol", "dl", "figure", *_HEADINGS))
_BLOCKS = _PARAGRAPHS | frozenset(
    "address article aside body caption center dd details dialog div dt fieldset figcaption footer form header hgroup"
    " hr html legend li main menu nav option search section summary tbody tfoot thead tr".split()
)
#: Seconds, and where to go behind them, with or without quotes.
_REFRESH = re.compile(
    r"""\s{0,20}([0-9]{1,9})(?:\.[0-9.]{0,9})?(?>\s{0,20}[;,]|\s{1,20})\s{0,20}+(?:url\s{0,20}=\s{0,20})?+"""
    r"""(["']?)([^"']{1,8192})""",
    re.IGNORECASE,
)
#: A page that goes on later than this is meant to be read first.
MAX_REFRESH_SECS = 15
_LISTS = frozenset(("ul", "ol", "menu", "dir"))
#: Elements that :meth:`Lines.begin` is used for.
_BEGUN = frozenset(("li", "dd", *_HEADINGS))
_SHOWN_SCHEMES = ("http://", "https://", "mailto:")


@dataclass(frozen=True, slots=True)
class ReadablePage:
    """Args:
    title: what the page says, or ``""``.
    leads_to: where the page sends its readers on its own account, or ``""``.
    part: ``main`` or ``article`` if the text is only that part of the page, else ``""``.
    is_cut: whether the text was too long.
    """

    title: str
    text: str
    part: str
    is_cut: bool
    leads_to: str = ""


def refresh_target(base: str, refresh: str) -> str:
    """Where a ``refresh`` leads, a header or an element; ``""`` if nowhere on the web, or only after a time.

    HTML Standard, "shared declarative refresh steps".
    """
    found = _REFRESH.match(refresh)
    if not found or not (reference := found[3].strip()) or int(found[1]) > MAX_REFRESH_SECS:
        return ""
    there = joined(base, reference)
    return there if is_web_address(there) else ""


def readable_page(source: str, address: str) -> ReadablePage:
    """The text of a page.

    Args:
        address: where the page came from; its links are resolved against it.
    """
    reader = _Reader(address)
    read_tokens(source, reader)
    return reader.page()


class _Reader:
    def __init__(self, address: str) -> None:
        self._base = address
        self._lines = Lines()
        self._skipping = Skipping()
        self._titles: list[list[str]] = []
        self._in_title = False
        self._lists: list[int | None] = []  # the next number, or None for one without
        self._rows: list[int] = []  # cells of the current row, for each open table
        self._pre = 0
        self._pre_begins = False
        self._link: _Link | None = None
        self._told: set[str] = set()
        self._leads_to = ""
        self._parts = {name: _Part() for name in PART_SHARES}

    @property
    def done(self) -> bool:
        return self._lines.length > MAX_TEXT_CHARS

    def page(self) -> ReadablePage:
        self._end_link()
        whole = self._lines.since(0)
        text, part = whole, ""
        for name, place in self._parts.items():
            if place.count != 1:
                continue
            inner = self._lines.since(place.first, place.last)
            size = len(inner.strip())
            if size >= MIN_MAIN_CHARS and size >= PART_SHARES[name] * len(whole):
                text, part = inner, name if size < len(whole.strip()) else ""
                break
        title = " ".join("".join(self._titles[0]).split()) if self._titles else ""
        return ReadablePage(title, text.strip("\n"), part, self.done, self._leads_to)

    # --- what the tokens tell ---

    def start(self, name: str, attributes: Mapping[str, str], closed: bool) -> None:
        if self._skipping.start(name, attributes, closed):
            if name in _BLOCKS:
                self._break(1)
            return
        if name == "title":
            self._in_title = True
            self._titles.append([])
            return
        if name in _BLOCKS:
            self._break(2 if name in _PARAGRAPHS and not (name in _LISTS and self._lists) else 1)
        if name in _HEADINGS:
            self._begin(_HEADINGS[name])
        elif name in _LISTS:
            self._lists.append(_first_number(attributes) if name == "ol" else None)
        elif name in ("td", "th"):
            self._start_cell()
        else:
            self._start_other(name, attributes)

    def _start_other(self, name: str, attributes: Mapping[str, str]) -> None:
        match name:
            case "a":
                self._end_link()
                if href := attributes.get("href", "").strip():
                    self._link = _Link(unescaped(href))
            case "br" if self._pre:
                self._lines.write_exactly("\n")
            case "br":
                self._break(1)
            case "hr":
                self._write("---")
                self._break(1)
            case "li":
                self._begin(self._bullet(attributes))
            case "dd":
                self._begin("  ")
            case "img" | "area":
                if alt := unescaped(attributes.get("alt", "")).strip():
                    self._write(f"[image: {alt}]")
            case "code" | "kbd" | "samp" if not self._pre:
                self._write("`")
            case "pre":
                self._end_link()
                self._pre += 1
                self._lines.write_exactly("```\n")
                self._pre_begins = True
            case "table":
                self._rows.append(0)
            case "tr":
                self._end_row()
            case "base":
                if href := attributes.get("href", "").strip():
                    self._base = joined(self._base, unescaped(href))[:MAX_HREF_CHARS]
            case "meta" if attributes.get("http-equiv", "").strip().lower() == "refresh" and not self._leads_to:
                there = refresh_target(self._base, unescaped(attributes.get("content", "")))
                self._leads_to = there[:MAX_HREF_CHARS]
            case "main" | "article":
                self._end_link()
                self._parts[name].begin(self._lines)

    def end(self, name: str) -> None:
        if self._skipping.end(name):
            return
        if name == "title":
            self._in_title = False
            return
        if name in _BEGUN:
            self._end_link()
            self._begin("")
        if name in _LISTS:
            if self._lists:
                self._lists.pop()
            self._break(1 if self._lists else 2)
        elif name == "a":
            self._end_link()
        elif name in ("code", "kbd", "samp") and not self._pre:
            self._write("`")
        elif name == "pre" and self._pre:
            self._pre -= 1
            if not self._lines.line_is_empty:
                self._lines.write_exactly("\n")
            self._lines.write_exactly("```")
            self._break(2)
        elif name == "table" and self._rows:
            self._end_row()
            self._rows.pop()
            self._break(2)
        elif name == "tr":
            self._end_row()
        elif name in _BLOCKS:
            self._break(2 if name in _PARAGRAPHS else 1)
        if name in self._parts:
            self._end_link()
            self._parts[name].end(self._lines)

    def text(self, text: str) -> None:
        if self._in_title:
            self._titles[-1].append(text)
        elif not self._skipping.active:
            self._write(text)

    # --- what is made of it ---

    def _write(self, text: str) -> None:
        if self._pre:
            # The first line break belongs to the tag.
            self._lines.write_exactly(text.removeprefix("\n") if self._pre_begins else text)
            self._pre_begins = False
        elif self._link is not None:
            self._link.label.append(text)
            self._link.length += len(text)
            if self._link.length > MAX_LABEL_CHARS:
                # More than a label: the tag was not closed, or holds half of the page.
                label, self._link = "".join(self._link.label), None
                self._lines.write(label)
        else:
            self._lines.write(text)

    def _break(self, count: int) -> None:
        if self._pre:
            if not self._lines.line_is_empty:
                self._lines.write_exactly("\n")
        elif self._link is not None and not self._link.is_blank:
            self._link.label.append(" ")
        else:
            self._lines.break_line(count)

    def _begin(self, prefix: str) -> None:
        if not self._pre and (self._link is None or self._link.is_blank):
            self._lines.begin(prefix)

    def _bullet(self, attributes: Mapping[str, str]) -> str:
        indent = "  " * min(max(len(self._lists) - 1, 0), MAX_INDENT)
        number = self._lists[-1] if self._lists else None
        if number is None:
            return f"{indent}- "
        given = _number(attributes.get("value", ""))
        number = number if given is None else given
        self._lists[-1] = number + 1
        return f"{indent}{number}. "

    def _start_cell(self) -> None:
        self._end_link()
        if not self._rows:
            self._break(1)
            return
        if self._rows[-1]:
            self._lines.join(" | ")
        else:
            self._lines.break_line()
            self._lines.write_exactly("| ")
            self._lines.join("")
        self._rows[-1] += 1

    def _end_row(self) -> None:
        self._end_link()
        if self._rows and self._rows[-1]:
            self._lines.end_row(" |")
            self._rows[-1] = 0

    def _end_link(self) -> None:
        link, self._link = self._link, None
        if link is None:
            return
        label = "".join(link.label)
        text = " ".join(label.split())
        address = "" if link.href.startswith("#") else joined(self._base, link.href)
        shown = address.startswith(_SHOWN_SCHEMES) and len(address) <= MAX_HREF_CHARS and address.isprintable()
        if not text or not shown or address in self._told or " " in address:
            self._lines.write(label)
            return
        self._told.add(address)
        blank = " " if label[:1].isspace() else ""
        end = " " if label[-1:].isspace() else ""
        self._lines.write(f"{blank}[{text}]({address}){end}")


class _Link:
    def __init__(self, href: str) -> None:
        self.href = href
        self.label: list[str] = []
        self.length = 0

    @property
    def is_blank(self) -> bool:
        return not self.label or (self.length < 8 and not "".join(self.label).strip())


class _Part:
    """Where an element begins and ends in the text."""

    def __init__(self) -> None:
        self.count = 0
        self.first = 0
        self.last: int | None = None
        self._depth = 0

    def begin(self, lines: Lines) -> None:
        if not self._depth:
            self.count += 1
            self.first = len(lines)
        self._depth += 1

    def end(self, lines: Lines) -> None:
        if self._depth:
            self._depth -= 1
            if not self._depth:
                self.last = len(lines)


def _first_number(attributes: Mapping[str, str]) -> int:
    start = _number(attributes.get("start", ""))
    return 1 if start is None else start


def _number(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.removeprefix("-").isdigit() and len(text) < 8 else None
