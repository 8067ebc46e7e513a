"""From a prompt to the requests in it."""

from __future__ import annotations

import re
from dataclasses import replace

from openheim_provider_demo.phrases import Phrase, is_file_name
from openheim_provider_demo.requests import Describe, ReadFile, Request, SummariseFile, SummariseText
from openheim_provider_demo.rules import recognise

__all__ = ("understand",)

_LONGEST_PROMPT = 20_000
#: A longer prompt is one request, with a long text in it.
_LONGEST_SPLIT = 2_000
_MOST_REQUESTS = 8
#: Bounds the work on a prompt with many commas; a prompt that people write takes a dozen.
_MOST_ATTEMPTS = 200

_BETWEEN = re.compile(
    r"(?:\s*[,;.!?])?\s+(?:and\s+)?then\s+|\s*[,;]\s*(?:and\s+)?|\s+and\s+(?:also\s+)?|[.!?]\s+|\n+", re.IGNORECASE
)
#: How ``openheim run`` attaches standard input to a prompt.
_ATTACHED = "\n\n[standard input]\n"
_ABOUT_ATTACHED = re.compile(
    r"(?:summari[sz]e|sum up|describe|explain|read|look at|what is|what's)\s+"
    r"(?:this|it|that|(?:this|the|standard)\s+(?:text|file|input))",
    re.IGNORECASE,
)

_ABOUT_FILES = re.compile(r"\b(?:directory|folder|files?|project|repo|repository|checkout|codebase)\b", re.IGNORECASE)
#: Verbs of what cannot be done here; looking at the directory instead would be no answer.
_OTHER_DEEDS = re.compile(
    r"\b(?:add|build|change|commit|compile|convert|copy|create|delete|download|edit|execute|fetch|fix|format|generate|"
    r"implement|install|make|move|push|refactor|remove|rename|replace|run|send|sort|start|stop|test|translate|"
    r"uninstall|update|upload|write)\b",
    re.IGNORECASE,
)


def understand(prompt: str) -> tuple[Request, ...]:
    """The requests in a prompt, in order; none if it was not understood, wholly or in part."""
    prompt, _, attached = prompt.partition(_ATTACHED)
    if len(prompt) > _LONGEST_PROMPT:
        return ()
    phrase = Phrase.of(prompt)
    if attached and _ABOUT_ATTACHED.fullmatch(phrase.bare().masked):
        return (SummariseText(attached),)
    requests = _Reading().several(phrase, None)
    if not requests and _ABOUT_FILES.search(phrase.masked) and not _OTHER_DEEDS.search(phrase.masked):
        return (Describe(guessed=True),)
    return tuple(request for request, before in zip(requests, (None, *requests), strict=False) if request != before)


class _Reading:
    def __init__(self) -> None:
        self._attempts = 0

    def several(self, phrase: Phrase, before: Request | None, most: int = _MOST_REQUESTS) -> tuple[Request, ...]:
        """Splits at the first gap with sense on both sides of it; without one, the phrase is one request."""
        if most > 1 and len(phrase.masked) <= _LONGEST_SPLIT:
            for gap in _BETWEEN.finditer(phrase.masked):
                first, open_ended = self._single(phrase.part(0, gap.start()), before)
                # What ends in free text may well go on with "and".
                if first is not None and not open_ended:
                    rest = self.several(phrase.part(gap.end(), None), first, most - 1)
                    if rest:
                        return (first, *rest)
        only, _ = self._single(phrase, before)
        return () if only is None else (only,)

    def _single(self, phrase: Phrase, before: Request | None) -> tuple[Request | None, bool]:
        self._attempts += 1
        if self._attempts > _MOST_ATTEMPTS:
            return None, False
        request, open_ended = recognise(phrase)
        if request is None and isinstance(before, ReadFile | SummariseFile):
            # "read a.txt and b.txt": the second one is asked for by its name alone.
            path = phrase.bare().place()
            if path and is_file_name(path):
                return replace(before, path=path), False
        return request, open_ended
