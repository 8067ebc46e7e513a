"""Embedders with one fault each, and two without, as objects that an entry point may name.

Most speak a small wire of their own: the request is a JSON list of texts, the answer one of vectors.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import anyio.lowlevel

from openheim import HttpClient, ProviderSettings, classify_error, hookimpl
from openheim.errors import InvalidRequestError, ServerError

Vectors = list[list[float]]


class Small:
    """An embedder of the small wire, without a fault."""

    most = 10

    def __init__(self, settings: ProviderSettings, http: HttpClient) -> None:
        self.dimension: int | None = None
        self._key = settings.api_key
        self._http = http

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.check(texts)
        vectors: Vectors = []
        for start in range(0, len(texts), self.most):
            vectors += await self.ask(texts[start : start + self.most])
        return vectors

    def check(self, texts: Sequence[str]) -> None:
        for place, text in enumerate(texts):
            if not text.strip():
                raise InvalidRequestError(f"text {place} is blank")

    def body(self, texts: Sequence[str]) -> bytes:
        return json.dumps(list(texts)).encode()

    async def ask(self, texts: Sequence[str]) -> Vectors:
        headers = {"authorization": f"Bearer {self._key}"}
        async with self._http.stream(
            "POST", "https://small/embed", headers=headers, content=self.body(texts)
        ) as answer:
            body = await answer.read(1_000_000)
            if answer.status != 200:
                raise self.refusal(answer.status, body)
        return self.read(body, len(texts))

    def refusal(self, status: int, body: bytes) -> Exception:
        return classify_error(status, {}, b"")

    def read(self, body: bytes, count: int) -> Vectors:
        try:
            vectors: Vectors = json.loads(body)
        except ValueError:
            vectors = []
        if not isinstance(vectors, list) or len(vectors) != count:
            raise ServerError("these are no vectors of the texts")
        self.take_size(vectors)
        return vectors

    def take_size(self, vectors: Vectors) -> None:
        self.dimension = self.dimension or len(vectors[0])
        if {len(vector) for vector in vectors} != {self.dimension}:
            raise ServerError("vectors of several sizes")


class Offline:
    """Counts letters, without a fault."""

    def __init__(self, settings: ProviderSettings, http: HttpClient) -> None:
        self.dimension = 2

    async def embed(self, texts: Sequence[str]) -> Vectors:
        Small.check(self, texts)  # type: ignore[arg-type]  # it looks at the texts alone
        await anyio.lowlevel.checkpoint()
        return [[float(len(text)), float(text.count("e"))] for text in texts]


class NotAsync(Offline):
    def embed(self, texts: Sequence[str]) -> Coroutine[Any, Any, Vectors]:
        return super().embed(texts)


class Reverses(Small):
    async def ask(self, texts: Sequence[str]) -> Vectors:
        return (await super().ask(texts))[::-1]


class ForgetsItsDimension(Small):
    def take_size(self, vectors: Vectors) -> None:
        super().take_size(vectors)
        self.dimension = None


class AsksForNothing(Small):
    async def embed(self, texts: Sequence[str]) -> Vectors:
        return await super().embed(texts) if texts else await self.ask(texts)

    def take_size(self, vectors: Vectors) -> None:
        if vectors:
            super().take_size(vectors)


class SendsBlanks(Small):
    def check(self, texts: Sequence[str]) -> None:
        pass


class SendsAllAtOnce(Small):
    most = 100_000


class CrashesOnOddTexts(Small):
    def body(self, texts: Sequence[str]) -> bytes:
        return json.dumps(list(texts), ensure_ascii=False).encode()


class TakesAnything(Small):
    def read(self, body: bytes, count: int) -> Vectors:
        try:
            vectors: Vectors = json.loads(body)
            self.dimension = len(vectors[0])
        except (ValueError, LookupError):
            raise ServerError("these are no vectors") from None
        return vectors


class ForgetsItsSize(Small):
    def take_size(self, vectors: Vectors) -> None:
        self.dimension = None
        super().take_size(vectors)


class LeaksErrors(Small):
    def refusal(self, status: int, body: bytes) -> Exception:
        return RuntimeError(f"HTTP {status}")


class TellsNothingApart(Small):
    def refusal(self, status: int, body: bytes) -> Exception:
        return ServerError("it failed")


class QuotesTheService(Small):
    def refusal(self, status: int, body: bytes) -> Exception:
        error = super().refusal(status, body)
        error.args = (body.decode(),)
        error.message = body.decode()  # type: ignore[attr-defined]  # every error of ours has one
        return error


class NeverWaits(Offline):
    async def embed(self, texts: Sequence[str]) -> Vectors:
        Small.check(self, texts)  # type: ignore[arg-type]  # it looks at the texts alone
        return [[float(len(text)), float(text.count("e"))] for text in texts]


class LeavesItOpen(Small):
    async def ask(self, texts: Sequence[str]) -> Vectors:
        exchange = self._http.stream("POST", "https://small/embed", content=self.body(texts))
        answer = await exchange.__aenter__()
        body = await answer.read(1_000_000)
        await exchange.__aexit__(None, None, None)
        if answer.status != 200:
            raise self.refusal(answer.status, body)
        return self.read(body, len(texts))


class Mixes(Small):
    _texts: Sequence[str] = ()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self._texts = texts
        await anyio.lowlevel.checkpoint()
        return await super().embed(self._texts)


class ShowsItsKey(Small):
    def __repr__(self) -> str:
        return f"ShowsItsKey({self._key})"


class Plugin:
    def __init__(self, make: Callable[[ProviderSettings, HttpClient], Any]) -> None:
        self._make = make

    @hookimpl
    def openheim_create_embedder(self, kind: str, settings: ProviderSettings, model: str, http: HttpClient) -> Any:
        return self._make(settings, http)


class Faulty:
    """Each class of this module as a plugin: the entry point ``kit_embedders:faulty.Mixes`` creates a ``Mixes``."""

    def __getattr__(self, name: str) -> Plugin:
        return Plugin(globals()[name])


faulty = Faulty()
