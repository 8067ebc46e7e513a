"""The embedder: texts in, vectors out, in batches."""

from __future__ import annotations

import base64
import math
import sys
from array import array
from typing import TYPE_CHECKING, Any

from openheim import InvalidRequestError, ServerError
from openheim_provider_openai.service import Service
from openheim_provider_openai.tools import dumped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from openheim import Embedder, HttpClient, ProviderSettings

__all__ = ("OpenAIEmbedder",)

#: Most texts of one request, and most characters unless one text alone is longer: services limit both, in tokens.
_BATCH_TEXTS = 128
_BATCH_CHARACTERS = 200_000


class OpenAIEmbedder:
    """Speaks ``POST /embeddings``.

    Args:
        kind: ``openai`` or ``openai_compatible``.
        settings: the entry.
        model: the model's name.

    Raises:
        ConfigError: the entry lacks something; see :class:`~openheim_provider_openai.service.Service`.
    """

    def __init__(self, kind: str, settings: ProviderSettings, model: str, http: HttpClient) -> None:
        self._service = Service(kind, settings, http)
        self._model = model
        self._asked = self._service.options.dimensions if self._service.options is not None else None
        self._dimension: int | None = None

    @property
    def dimension(self) -> int | None:
        """Numbers in a vector, once a call has told."""
        return self._dimension

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector per text, in order; see :class:`openheim.embeddings.Embedder`."""
        for index, text in enumerate(texts):
            if not text.strip():
                raise InvalidRequestError(f"text {index} is blank, and has no embedding", hint="leave blank texts out")
        vectors: list[list[float]] = []
        for batch in _batches(texts):
            vectors += await self._embed_batch(batch)
        return vectors

    async def _embed_batch(self, batch: list[str]) -> list[list[float]]:
        body: dict[str, Any] = {"model": self._model, "input": batch, "encoding_format": "float"}
        if self._asked is not None:
            body["dimensions"] = self._asked
        content = dumped("the texts", body)
        async with self._service.post("/embeddings", content, accept="application/json") as response:
            vectors = await self._service.document(response, _vectors)
        name = self._service.settings.name
        if len(vectors) != len(batch):
            raise ServerError(f"{name} made {len(vectors)} vectors of {len(batch)} texts", retryable=False)
        sizes = sorted({len(vector) for vector in vectors})
        if len(sizes) > 1:
            raise ServerError(f"{name} made vectors of {sizes[0]} and of {sizes[-1]} numbers", retryable=False)
        self._check_size(sizes[0])
        return vectors

    def _check_size(self, size: int) -> None:
        name = self._service.settings.name
        if self._asked is not None and size != self._asked:
            raise ServerError(
                f"{name} made vectors of {size} numbers, and {self._asked} were asked for",
                hint=f"the model may not be able to: leave out dimensions in [providers.{name}]",
                retryable=False,
            )
        if self._dimension is None:
            self._dimension = size
        if size != self._dimension:
            raise ServerError(
                f"{name} made vectors of {size} numbers, and of {self._dimension} before",
                hint="has the model been replaced? Give it another name, so that its vectors are kept apart",
                retryable=False,
            )


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) >= _BATCH_TEXTS or size + len(text) > _BATCH_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


def _vectors(payload: Any) -> list[list[float]] | None:
    """The vectors of an answer in the order of the texts, whatever order they came in; None if it holds none."""
    entries = payload.get("data") if isinstance(payload, dict) else None
    if not isinstance(entries, list) or not entries:
        return None
    try:
        vectors = [_vector(entry["embedding"]) for entry in entries]
        places = [entry.get("index") for entry in entries]
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return None
    if all(place is None or (place == 0 and type(place) is int) for place in places):
        return vectors  # Some servers count nothing, and some call every one 0.
    if not all(type(place) is int for place in places) or sorted(places) != list(range(len(entries))):
        return None  # Which vector belongs to which text is anybody's guess.
    return [vector for _place, vector in sorted(zip(places, vectors, strict=True))]


def _vector(embedding: Any) -> list[float]:
    """A vector that came as numbers, or as base64 of 32-bit ones.

    Raises:
        ValueError: it holds no numbers, or one that is not finite.
        OverflowError: it holds an integer that is too large.
        TypeError: it is something else.
    """
    if isinstance(embedding, str):
        numbers = array("f")
        numbers.frombytes(base64.b64decode(embedding, validate=True))
        if sys.byteorder == "big":
            numbers.byteswap()
        vector = numbers.tolist()
    elif isinstance(embedding, list) and all(type(number) in (int, float) for number in embedding):
        vector = [float(number) for number in embedding]
    else:
        raise TypeError("no vector")
    if not vector or not all(map(math.isfinite, vector)):
        raise ValueError("no vector")
    return vector


if TYPE_CHECKING:
    _conforms: type[Embedder] = OpenAIEmbedder
