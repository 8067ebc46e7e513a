"""The rules that recognise one request in plain English.

Each rule is a pattern and a function that makes a request of its match, or None if the match makes no sense after all.
The first rule that gives a request wins, so the order matters: what is said in more words comes first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from openheim_provider_demo.phrases import Phrase, is_file_name
from openheim_provider_demo.requests import (
    Describe,
    Hello,
    Help,
    ListFiles,
    ReadFile,
    Recall,
    Remember,
    ReplaceText,
    Request,
    Search,
    SummariseFile,
    WriteFile,
)

__all__ = ("recognise",)

#: Only requests that carry free text are longer; the others' patterns take quadratic time.
_LONGEST_REQUEST = 1_000

#: Groups that hold free text.
_FREE_TEXT = ("new", "note", "text")


class _Match:
    """The named groups of a match, with quoted text put back."""

    def __init__(self, phrase: Phrase, match: re.Match[str]) -> None:
        self._phrase = phrase
        self._match = match

    def has(self, group: str) -> bool:
        return bool(self._match.groupdict().get(group))

    def phrase(self, group: str) -> Phrase:
        return self._phrase.part(*self._match.span(group))

    def text(self, group: str) -> str:
        return self.phrase(group).text() if self.has(group) else ""

    def place(self) -> str | None:
        """The path named, ``""`` for the session's directory (also when nothing is named), None if it is neither."""
        return self.phrase("place").place() if self.has("place") else ""

    def open_ended(self) -> bool:
        """Whether free text without quotes stands at the end."""
        end = len(self._phrase.masked)
        return any(
            self.has(group) and self._match.end(group) == end and not self.phrase(group).is_quoted
            for group in _FREE_TEXT
        )


_Make: TypeAlias = Callable[[_Match], Request | None]


def recognise(phrase: Phrase) -> tuple[Request | None, bool]:
    """The request that a phrase makes, or None; and whether it ends in free text, which might go on."""
    for whole in (phrase, phrase.without_lead()):
        short = whole.without_tail()
        for pattern, make, takes_text in _RULES:
            # Free text keeps its full stop.
            form = whole if takes_text else short
            if not takes_text and len(form.masked) > _LONGEST_REQUEST:
                continue
            found = pattern.fullmatch(form.masked)
            if found is not None:
                match = _Match(form, found)
                request = make(match)
                if request is not None:
                    return request, match.open_ended()
    return None, False


def _list(match: _Match) -> Request | None:
    place = match.place()
    if place is None:
        return None
    return ReadFile(place) if is_file_name(place) else ListFiles(place or None)


def _look(match: _Match) -> Request | None:
    """Something to be summed up: a file or a directory."""
    place = match.place()
    if place is None:
        return None
    return SummariseFile(place) if is_file_name(place) else Describe(place or None)


def _look_if_sure(match: _Match) -> Request | None:
    """The same where other things than files are asked about in the same words."""
    place = match.place()
    sure = place == "" or (place is not None and (is_file_name(place) or match.phrase("place").is_surely_a_place))
    return _look(match) if sure else None


def _contents(match: _Match) -> Request | None:
    """What is in something: a file's text, or the files of a directory."""
    place = match.place()
    if place is None:
        return None
    return ReadFile(place) if is_file_name(place) else Describe(place or None)


def _show(match: _Match) -> Request | None:
    place = match.place()
    return ReadFile(place) if place and is_file_name(place) else None


def _read(match: _Match) -> Request | None:
    place = match.place()
    return ReadFile(place) if place else None


def _search(match: _Match) -> Request | None:
    words, place = match.text("words"), match.place()
    return Search(words, place or None) if words and place is not None else None


def _write(match: _Match) -> Request | None:
    place = match.place()
    if not place or not (is_file_name(place) or match.has("file")):
        return None
    return WriteFile(place, match.text("text"))


def _replace(match: _Match) -> Request | None:
    place, old = match.place(), match.text("old")
    if not place or not old:
        return None
    return ReplaceText(place, old, match.text("new"), match.has("all") or match.has("everywhere"))


def _remember(match: _Match) -> Request | None:
    note = match.text("note")
    return Remember(note) if note else None


def _recall(match: _Match) -> Request | None:
    return Recall(match.text("topic") or None)


def _rule(pattern: str, make: _Make, *, takes_text: bool = False) -> tuple[re.Pattern[str], _Make, bool]:
    # A space in a pattern stands for any white space.
    return re.compile(pattern.replace(" ", r"\s+"), re.IGNORECASE | re.DOTALL), make, takes_text


_IN = r"(?: (?:in|of|under|inside|within|from|at) (?P<place>.+?)| here)?"
_FILE = r"(?:an? |the |my )?(?:new |empty )*(?P<file>file )?(?:named |called |at )?(?P<place>\S+)"
_ARTICLE = r"(?: the)?(?: (?:word|words|text|string))?"
_OF_FILE = r"(?: me)?(?: out)?(?: the)?(?: contents?| text)?(?: of)?(?: the)?(?: file)? (?P<place>.+)"

_RULES = (
    # Talking
    _rule(
        r"(?:hi|hello|hey|greetings|good (?:morning|day|afternoon|evening))(?:,? (?:there|openheim))?",
        lambda _: Hello(),
    ),
    _rule(r"help(?: me)?|commands", lambda _: Help()),
    _rule(r"what (?:can|do) (?:you|i) (?:do|ask|understand)(?: (?:here|for me|you|you to do))?", lambda _: Help()),
    _rule(r"(?:who|what) are you|are you (?:an?|the) .+|how does this work", lambda _: Help()),
    # Memory
    _rule(r"what (?:do|can) you (?:remember|recall)(?: (?:about|of|on) (?P<topic>.+))?", _recall),
    _rule(r"do you (?:remember|recall)(?: (?:anything|something))?(?: (?:about|of))?(?: (?P<topic>.+))?", _recall),
    _rule(r"what did i (?:tell you|ask you to remember)(?: about (?P<topic>.+))?", _recall),
    _rule(r"(?:recall|search (?:your |the |my )?(?:memory|memories|notes) for) (?P<topic>.+)", _recall),
    _rule(r"(?:remember|memori[sz]e|note down|note|keep in mind)(?: that|:) (?P<note>.+)", _remember, takes_text=True),
    _rule(r"(?:remember|memori[sz]e|note down|keep in mind) (?P<note>.+)", _remember, takes_text=True),
    # Writing
    _rule(
        rf"(?:write|create|make|save) {_FILE}(?: file)?"
        r" (?:with|containing|holding|saying|that (?:says|holds|contains))"
        r"(?: (?:the )?(?:text|contents?|words?|lines?))?:? (?P<text>.+)",
        _write,
        takes_text=True,
    ),
    _rule(rf"(?:write|create|save) {_FILE}: (?P<text>.+)", _write, takes_text=True),
    _rule(rf"(?:write|save|put) (?P<text>.+) (?:to|into|in|as) {_FILE}", _write, takes_text=True),
    _rule(rf"(?:create|make|touch) {_FILE}", _write),
    # Editing
    _rule(
        r"(?:edit|in|change)(?: the)?(?: file)? (?P<place>\S+?)[,:]?(?: and| to| by)?"
        r" (?:replac(?:e|ing)|chang(?:e|ing)) (?P<all>(?:all|every|each) )?(?:occurrences? of )?(?P<old>.+?)"
        r" (?:with|by|to|into) (?P<new>.+?)(?P<everywhere> everywhere)?",
        _replace,
    ),
    _rule(
        r"(?:replace|change|substitute) (?P<all>(?:all|every|each) )?(?:occurrences? of )?(?P<old>.+?)"
        r" (?:with|by|to|into|for) (?P<new>.+?)(?P<everywhere> everywhere)?"
        r" (?:in|inside|of)(?: the)?(?: file)? (?P<place>\S+)",
        _replace,
    ),
    # Searching
    _rule(rf"(?:search|look|scan|grep)(?: in| through)? (?P<place>(?!for\b).+?) for{_ARTICLE} (?P<words>.+)", _search),
    _rule(
        r"(?:(?:look|scan) for|(?:search|grep|find)(?: for)?)"
        rf"(?: all| every)?(?: (?:occurrences?|mentions?|uses?|lines) (?:of|with))?{_ARTICLE} (?P<words>.+?){_IN}",
        _search,
    ),
    _rule(rf"(?:which|what) files (?:mention|contain|use|have|hold|import){_ARTICLE} (?P<words>.+?){_IN}", _search),
    _rule(rf"where (?:is|are) (?P<words>.+?) (?:defined|used|mentioned|called){_IN}", _search),
    # Listing
    _rule(
        r"(?:list|show|name|print|display|give)(?: me)?(?: all)?(?: of)?(?: the| my)?"
        rf" (?:files|entries|contents?|everything|folders|directories)(?: and (?:files|folders|directories))?{_IN}",
        _list,
    ),
    _rule(
        rf"(?:which|what) files (?:are|exist|do you see|can you see|are there|do we have|do i have)(?: there)?{_IN}",
        _list,
    ),
    _rule(r"(?:ls|dir|list)(?: (?P<place>.+))?", _list),
    # Reading and summing up
    _rule(
        r"(?:tell me )?what(?: is|['’]?s| are| do you see| can you see| do we have)(?: there)?"  # noqa: RUF001  as typed
        r" (?:in|inside|under) (?P<place>.+)",
        _contents,
    ),
    _rule(r"(?:tell me )?what(?: is|['’]?s) here", lambda _: Describe()),  # noqa: RUF001  as people type it
    _rule(r"what does (?P<place>.+?) (?:contain|hold|say)", _contents),
    _rule(r"what does (?P<place>.+?) do", _look_if_sure),
    _rule(r"what(?: is|['’]?s) (?P<place>.+?)(?: about| for)?", _look_if_sure),  # noqa: RUF001  as people type it
    _rule(
        r"(?:explain|describe|tell me) what (?P<place>.+?) (?:does|is|contains|holds)(?: about| for)?", _look_if_sure
    ),
    _rule(rf"(?:read|cat|open|view){_OF_FILE}", _read),
    _rule(rf"(?:show|print|display|give){_OF_FILE}", _show),
    _rule(r"(?:summari[sz]e|sum up|explore|inspect|look at|look around)(?: (?P<place>.+))?", _look),
    _rule(r"(?:describe|explain|review|tell me (?:something )?about) (?P<place>.+)", _look_if_sure),
    _rule(r"(?:give me |write )?an? (?:short |brief )?(?:summary|overview) of (?P<place>.+)", _look),
    _rule(r"where am i", lambda _: Describe()),
)
