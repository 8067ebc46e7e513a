"""Embeddings: batches, order, and what is no embedding."""

from __future__ import annotations

import json
from typing import Any

import pytest

from openheim import Runtime
from openheim.config.load import load_config
from openheim.embeddings import Embedder
from openheim.errors import AuthError, InvalidRequestError, OverloadedError, ProviderError, ServerError
from openheim.http import HttpClient
from openheim.plugins.host import PluginHost
from openheim.plugins.policy import policy_from
from openheim.providers import ProviderSettings
from openheim_provider_gemini.plugin import Settings, openheim_create_embedder
from tests.providers.conftest import KEY
from tests.support.gemini_server import GeminiServer
from tests.support.gemini_wire import embeddings, error
from tests.support.replies import Reply, raw
from tests.support.server import Request

pytestmark = pytest.mark.anyio


def embedder_of(server: GeminiServer, http: HttpClient, model: str = "gemini-embedding-001", **fields: Any) -> Embedder:
    settings = ProviderSettings("mine", "gemini", server.base_url, timeout_secs=10.0, **fields)
    embedder = openheim_create_embedder(settings, model, http)
    assert embedder is not None
    return embedder


async def test_a_vector_for_each_text_in_order(http: HttpClient) -> None:
    async with GeminiServer([embeddings([1, 2.5], [3.0, -4.0])]) as server:
        options = Settings(extra_headers={"x-team": "a"})
        embedder = embedder_of(server, http, api_key=KEY, options=options)
        assert embedder.dimension is None
        assert await embedder.embed(["größe", "b"]) == [[1.0, 2.5], [3.0, -4.0]]
        assert embedder.dimension == 2
        (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/v1beta/models/gemini-embedding-001:batchEmbedContents")
    assert (request.headers["x-goog-api-key"], request.headers["x-team"]) == (KEY, "a")
    name = "models/gemini-embedding-001"
    assert request.json == {
        "requests": [{"model": name, "content": {"parts": [{"text": text}]}} for text in ("größe", "b")]
    }


async def test_batches(http: HttpClient) -> None:
    def answer(request: Request) -> Reply:
        texts = [entry["content"]["parts"][0]["text"] for entry in request.json["requests"]]
        return embeddings(*([float(text)] for text in texts))

    async with GeminiServer(answer) as server:
        embedder = embedder_of(server, http)
        assert await embedder.embed([str(number) for number in range(201)]) == [
            [float(number)] for number in range(201)
        ]
        assert [len(request.json["requests"]) for request in server.requests] == [100, 100, 1]
        assert await embedder.embed([]) == []
        assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("reply", "kind", "message"),
    [
        (embeddings([1.0]), ServerError, "1 embeddings of 2 texts"),
        (embeddings([1.0], [1.0, 2.0]), ServerError, "of 1 and of 2 numbers"),
        (embeddings([1.0], []), ServerError, "no list of numbers"),
        (embeddings([1.0], ["x"]), ServerError, "no list of numbers"),
        (embeddings([1.0], [float("inf")]), ServerError, "no list of numbers"),
        (embeddings([1.0], [10**400]), ServerError, "no list of numbers"),
        (embeddings([1.0], [True]), ServerError, "no list of numbers"),
        (raw(json.dumps({}), content_type="application/json"), ServerError, "0 embeddings"),
        (raw("[]", content_type="application/json"), ProviderError, "mine answered"),
        (error(503, f"busy, {KEY}", word="UNAVAILABLE"), OverloadedError, "busy"),
        (error(403, "denied", word="PERMISSION_DENIED"), AuthError, "denied"),
    ],
)
async def test_what_is_no_answer(http: HttpClient, reply: Reply, kind: type[ProviderError], message: str) -> None:
    async with GeminiServer([reply]) as server:
        with pytest.raises(kind, match=message) as caught:
            await embedder_of(server, http, api_key=KEY).embed(["a", "b"])
    assert KEY not in str(caught.value)


async def test_the_dimension_stays(http: HttpClient) -> None:
    async with GeminiServer([embeddings([1.0, 2.0]), embeddings([1.0])]) as server:
        embedder = embedder_of(server, http)
        await embedder.embed(["a"])
        with pytest.raises(ServerError, match="of 1 numbers, and of 2 before"):
            await embedder.embed(["a"])


async def test_blank_texts_are_refused_before_anything_is_sent(http: HttpClient) -> None:
    async with GeminiServer() as server:
        with pytest.raises(InvalidRequestError, match="text 1 is blank"):
            await embedder_of(server, http).embed(["a", " "])
        assert server.requests == []


async def test_as_the_settings_say() -> None:
    async with GeminiServer([embeddings([1.0])]) as server:
        flags = {
            "providers": {"g": {"kind": "gemini", "api_base": server.base_url, "extra_headers": {"x-team": "a"}}},
            "memory": {"embedding_provider": "g", "embedding_model": "tiny"},
        }
        host = PluginHost(policy_from({}, {}), report=print)
        async with Runtime(load_config(environment={}, flags=flags), host) as runtime:
            embedder = runtime.embedder()
            assert embedder is not None
            assert await embedder.embed(["a"]) == [[1.0]]
        assert server.requests[0].headers["x-team"] == "a"
