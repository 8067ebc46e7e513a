"""A scripted server that speaks Gemini's wire, for tests in this process and for child processes.

::

    async with GeminiServer([tool_calls(("read_file", {"path": "a.md"})), text("It says ", "hi.")]) as server:
        ...  # server.base_url, server.requests

Like the service it refuses requests that break its rules (see :mod:`tests.support.gemini_validator`), which uses up
nothing of the script; what was wrong is in ``problems``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from tests.support import gemini_wire as wire
from tests.support.gemini_validator import problems
from tests.support.replies import Reply
from tests.support.server import Request, ScriptedServer

__all__ = ("GeminiServer",)

_GENERATE = re.compile(r"/v1beta/((?:models|tunedModels)/[\w.%-]+):streamGenerateContent\?alt=sse")


class GeminiServer(ScriptedServer):
    """Answers ``POST …:streamGenerateContent`` and ``…:batchEmbedContents`` from the script.

    ``GET …/models`` is answered apart and uses up nothing.
    """

    def __init__(
        self,
        replies: Iterable[Reply] | Callable[[Request], Reply] = (),
        *,
        models: Iterable[str] | Callable[[Request], Reply] = (wire.MODEL,),
        **options: Any,
    ) -> None:
        super().__init__(replies, **options)
        self._models = models if callable(models) else wire.models(*models)
        self.problems: list[str] = []

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1beta"

    @property
    def prompts(self) -> list[Request]:
        """The requests for replies."""
        return [request for request in self.requests if ":streamGenerateContent" in request.path]

    def reply_to(self, request: Request) -> Reply:
        if request.method == "GET":
            return self._models(request) if callable(self._models) else self._models
        if ":streamGenerateContent" in request.path:
            address = _GENERATE.fullmatch(request.path)
            found = problems(request.json, model=address[1]) if address else [f"the address is {request.path}"]
            self.problems += found
            if found:
                return wire.error(400, "; ".join(found))
        return super().reply_to(request)
