"""Which elements of a page are not for reading, and where each of them ends."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("Skipping",)

_NOT_READ = frozenset(
    "script style noscript template svg math iframe object embed applet audio video canvas map datalist select textarea"
    " noembed noframes".split()
)
_VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())
#: Elements that may go without an end tag, and the tags that end them then.
_PARAGRAPH_ENDS = frozenset(
    "address article aside blockquote center details dialog div dl fieldset figcaption figure footer form h1 h2 h3 h4"
    " h5 h6 header hr main menu nav ol p pre section table ul".split()
)
_ROW_ENDS = frozenset(("tr", "tbody", "thead", "tfoot"))
_IMPLIED_ENDS = {
    "p": _PARAGRAPH_ENDS,
    "li": frozenset(("li",)),
    "dt": frozenset(("dt", "dd")),
    "dd": frozenset(("dt", "dd")),
    "tr": _ROW_ENDS,
    "td": _ROW_ENDS | {"td", "th"},
    "th": _ROW_ENDS | {"td", "th"},
}
_CONTAINERS = _PARAGRAPH_ENDS | _ROW_ENDS | {"body", "html"}
_INVISIBLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.IGNORECASE)


class Skipping:
    """Follows the tags of a page and tells which are inside an element that is left out.

    Such an element ends at its end tag, where a sibling begins that implies it, or where an element around it ends.
    """

    def __init__(self) -> None:
        self._name = ""  # of the element that is left out
        self._inside: dict[str, int] = {}  # open elements inside it
        self._open = 0  # those of them that need an end tag

    @property
    def active(self) -> bool:
        return bool(self._name)

    def start(self, name: str, attributes: Mapping[str, str], closed: bool) -> bool:
        """Whether a start tag is left out."""
        if self._name and not self._open and name in _IMPLIED_ENDS.get(self._name, ()):
            self._name = ""
        if self._name:
            if name not in _VOID and not closed:
                self._inside[name] = self._inside.get(name, 0) + 1
                self._open += name not in _IMPLIED_ENDS
            return True
        # Pages that hide themselves until a script has run are read all the same.
        if name not in _NOT_READ and (name in ("html", "body") or not _is_hidden(attributes)):
            return False
        if name not in _VOID and not (closed and name in ("svg", "math")):
            self._name, self._inside, self._open = name, {}, 0
        return True

    def end(self, name: str) -> bool:
        """Whether an end tag is left out."""
        if not self._name:
            return False
        if self._inside.get(name):
            self._inside[name] -= 1
            self._open -= name not in _IMPLIED_ENDS
            return True
        own = name == self._name
        # Of other end tags, those of elements inside were counted: this one belongs to an element around it.
        if own or (name in _CONTAINERS and self._name not in ("template", "svg", "math")):
            self._name = ""
        return own


def _is_hidden(attributes: Mapping[str, str]) -> bool:
    if not attributes:
        return False
    return (
        ("hidden" in attributes and attributes["hidden"].strip().lower() != "until-found")
        or attributes.get("aria-hidden", "").strip().lower() == "true"
        or ("style" in attributes and _INVISIBLE.search(attributes["style"]) is not None)
    )
