"""An HTTP client that answers from a script, for tests of providers without a socket."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import anyio.lowlevel

from openheim._watching import body_watcher
from openheim.errors import ProviderConnectionError
from openheim.http import HttpClient, HttpExchange, HttpResponse
from openheim.testing.scripted import Pause

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
    from types import TracebackType

__all__ = ("Answer", "HttpAnswer", "HttpRequest", "ScriptedHttp")


@dataclass(slots=True, frozen=True)
class HttpRequest:
    """A request that was made. The headers are those that the provider gave."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    content: bytes


@dataclass(slots=True, frozen=True)
class HttpAnswer:
    """What a service answers.

    Args:
        body: chunks in the order in which they arrive; a :class:`Pause` holds the stream, an exception breaks it.
        status: HTTP status.
        headers: names in lower case.
    """

    body: tuple[bytes | Pause | Exception, ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})

    @classmethod
    def of(cls, text: str | bytes, *, status: int = 200, content_type: str = "text/event-stream") -> HttpAnswer:
        """An answer whose body arrives in one piece."""
        content = text.encode() if isinstance(text, str) else text
        return cls((content,), status, {"content-type": content_type})

    def cut(self, then: Pause | Exception | None = None) -> HttpAnswer:
        """The same answer with ``then`` in the middle of its body; if None, the body ends there."""
        whole = b"".join(piece for piece in self.body if isinstance(piece, bytes))
        half = len(whole) // 2
        return replace(self, body=(whole[:half],) if then is None else (whole[:half], then, whole[half:]))


#: What a script may hold: an answer, an error in place of one, or a function that makes either from the request.
Answer: TypeAlias = "HttpAnswer | Exception | Callable[[HttpRequest], HttpAnswer | Exception]"


class ScriptedHttp(HttpClient):
    """Answers request after request from ``answers``. Once these are used up, there is no connection.

    Args:
        answers: any iterable, also an endless one such as ``itertools.repeat(answer)``.

    Attributes:
        requests: every request, in order.
        active: exchanges that are open now.
    """

    def __init__(self, answers: Iterable[Answer] = ()) -> None:
        super().__init__(proxy="")
        self.requests: list[HttpRequest] = []
        self.active = 0
        self._answers = iter(answers)

    def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes = b"",
        timeout_secs: float = 120.0,
    ) -> HttpExchange:
        if content and (told := body_watcher.get()) is not None:
            told(content)
        return _Exchange(self, HttpRequest(method, url, dict(headers or {}), content))

    def answer(self, request: HttpRequest) -> HttpAnswer:
        """The next answer of the script.

        Raises:
            Exception: the one that stands in its place.
        """
        self.requests.append(request)
        answer = next(self._answers, None)
        if callable(answer):
            answer = answer(request)
        if answer is None:
            answer = ProviderConnectionError("no connection: the script has no answer", hint="check network and proxy")
        if isinstance(answer, Exception):
            raise answer
        return answer


class _Exchange(HttpExchange):
    __slots__ = ("_http", "_request")

    def __init__(self, http: ScriptedHttp, request: HttpRequest) -> None:
        self._http = http
        self._request = request

    async def __aenter__(self) -> HttpResponse:
        await anyio.lowlevel.checkpoint()
        response = _Response(self._http.answer(self._request))
        self._http.active += 1
        return response

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._http.active -= 1


class _Response(HttpResponse):
    __slots__ = ("_pieces",)

    def __init__(self, answer: HttpAnswer) -> None:
        self.status = answer.status
        self.headers = dict(answer.headers)
        self.timeout_secs = 10.0
        self.truncated = False
        self._pieces = iter(answer.body)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        for piece in self._pieces:
            await anyio.lowlevel.checkpoint()
            if isinstance(piece, Pause):
                await piece.hold()
            elif isinstance(piece, Exception):
                raise piece
            else:
                yield piece

    async def drain(self, limit_secs: float = 0.1) -> None:
        """There is no connection to keep."""
