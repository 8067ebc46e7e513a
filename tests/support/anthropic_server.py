"""A scripted server that speaks Anthropic's wire.

::

    async with AnthropicServer([tool_calls(("read_file", {"path": "a.md"})), text("It says ", "hi.")]) as server:
        ...  # server.base_url, server.requests

Requests that the real service would refuse are refused here too, by :mod:`tests.support.anthropic_validator`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tests.support import anthropic_wire as wire
from tests.support.anthropic_validator import problems
from tests.support.replies import Reply
from tests.support.server import Request, ScriptedServer

__all__ = ("AnthropicServer",)


class AnthropicServer(ScriptedServer):
    """Answers ``POST …/messages`` from the script. ``GET …/models`` is answered apart and uses up nothing.

    Args:
        models: names, or pages of the list, in order.
        strict: whether a request that the service would refuse is refused, and uses up nothing.
    """

    def __init__(
        self,
        replies: Iterable[Reply] | Callable[[Request], Reply] = (),
        *,
        models: Iterable[str | Reply] = (wire.MODEL,),
        strict: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(replies, **options)
        given = list(models)
        pages = [page for page in given if isinstance(page, Reply)]
        self._pages = pages or [wire.models(*(name for name in given if isinstance(name, str)))]
        self._strict = strict

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def prompts(self) -> list[Request]:
        """The requests for replies, without those for the list of models."""
        return [request for request in self.requests if request.method == "POST"]

    def reply_to(self, request: Request) -> Reply:
        if request.method == "GET":
            if request.path.partition("?")[0] != "/v1/models":
                return wire.error(404, f"no {request.path}", type="not_found_error")
            return self._pages.pop(0) if len(self._pages) > 1 else self._pages[0]
        if request.path != "/v1/messages":
            return wire.error(404, f"no {request.path}", type="not_found_error")
        if "anthropic-version" not in request.headers:
            return wire.error(400, "anthropic-version: header is required")
        if self._strict and (found := _problems(request)):
            return wire.error(400, "; ".join(found))
        return super().reply_to(request)


def _problems(request: Request) -> list[str]:
    try:
        return problems(request.json)
    except Exception as err:  # whatever is so far from the wire that the validator cannot look at it
        return [f"the request cannot be understood: {err!r}"]
