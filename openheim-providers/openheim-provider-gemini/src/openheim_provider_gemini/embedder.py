"""The embedder: texts in batches, a vector for each."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from openheim import InvalidRequestError, ServerError
from openheim.jsontext import wire_bytes
from openheim_provider_gemini.service import answer_object, resource_path, service_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openheim import Embedder, HttpClient, ProviderSettings

__all__ = ("GeminiEmbedder",)

#: Texts that the service takes in one request.
_BATCH = 100


class GeminiEmbedder:
    """Speaks ``batchEmbedContents``. Raises as :func:`service_of` does.

    Args:
        model: the model that makes the embeddings, such as ``gemini-embedding-001``.
    """

    def __init__(self, settings: ProviderSettings, model: str, http: HttpClient) -> None:
        self._service = service_of(settings, http)
        self._model = model if "/" in model else f"models/{model}"
        self.dimension: int | None = None

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector per text; see :class:`openheim.embeddings.Embedder`."""
        for index, text in enumerate(texts):
            if not text.strip():
                raise InvalidRequestError(f"text {index} is blank, and has no embedding", hint="leave blank texts out")
        vectors: list[list[float]] = []
        for start in range(0, len(texts), _BATCH):
            vectors += await self._embed_batch(texts[start : start + _BATCH])
        return vectors

    async def _embed_batch(self, texts: Sequence[str]) -> list[list[float]]:
        requests = [{"model": self._model, "content": {"parts": [{"text": text}]}} for text in texts]
        path = f"/{resource_path(self._model)}:batchEmbedContents"
        content = wire_bytes({"requests": requests})
        async with self._service.post(path, content, accept="application/json") as response:
            answer = await self._service.document(response, answer_object)
        entries = answer.get("embeddings")
        count = len(entries) if isinstance(entries, list) else 0
        if not isinstance(entries, list) or count != len(texts):
            raise ServerError(f"the service made {count} embeddings of {len(texts)} texts", retryable=False)
        vectors = [_vector(entry) for entry in entries]
        sizes = sorted({len(vector) for vector in vectors})
        if len(sizes) > 1:
            raise ServerError(f"the service made embeddings of {sizes[0]} and of {sizes[-1]} numbers", retryable=False)
        if self.dimension is None:
            self.dimension = sizes[0]
        if self.dimension != sizes[0]:
            raise ServerError(
                f"the service made embeddings of {sizes[0]} numbers, and of {self.dimension} before", retryable=False
            )
        return vectors


def _vector(entry: Any) -> list[float]:
    values = entry.get("values") if isinstance(entry, dict) else None
    try:
        if isinstance(values, list) and values and all(type(value) in (int, float) for value in values):
            vector = [float(value) for value in values]
            if all(map(math.isfinite, vector)):
                return vector
    except OverflowError:  # an integer that is larger than any float
        pass
    raise ServerError("the service made an embedding that is no list of numbers", retryable=False)


if TYPE_CHECKING:
    _conforms: type[Embedder] = GeminiEmbedder
