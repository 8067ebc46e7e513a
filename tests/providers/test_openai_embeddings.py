"""The embedder: batches, order, forms of vectors, and answers that are none."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from openheim.errors import (
    AuthError,
    ConfigError,
    InvalidRequestError,
    ProviderConnectionError,
    ProviderError,
    ServerError,
)
from openheim.http import HttpClient
from openheim.plugins.host import PluginHost
from openheim.plugins.policy import PluginPolicy
from openheim.providers import ProviderSettings
from openheim_provider_openai.plugin import Settings, openheim_create_embedder
from tests.providers.conftest import KEY
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import embeddings, error
from tests.support.replies import Reply, raw
from tests.support.server import Request

pytestmark = pytest.mark.anyio


@pytest.fixture
def make(http: HttpClient) -> Callable[..., Any]:
    def embedder(base_url: str, kind: str = "openai_compatible", **fields: Any) -> Any:
        fields.setdefault("timeout_secs", 10.0)
        return openheim_create_embedder(kind, ProviderSettings("mine", kind, base_url, **fields), "vectors-1", http)

    return embedder


def echo(request: Request) -> Reply:
    """Each text's length, and where it stands."""
    texts = request.json["input"]
    return embeddings(*([float(len(text)), float(place)] for place, text in enumerate(texts)))


async def test_one_vector_per_text_in_order(make: Callable[..., Any]) -> None:
    async with OpenAIServer(echo) as server:
        embedder = make(server.base_url, api_key=KEY)
        assert embedder.dimension is None
        assert await embedder.embed(["a", "bbb", "cc"]) == [[1.0, 0.0], [3.0, 1.0], [2.0, 2.0]]
        assert embedder.dimension == 2
        (request,) = server.requests
    assert request.path == "/v1/embeddings"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.json == {"model": "vectors-1", "input": ["a", "bbb", "cc"], "encoding_format": "float"}


async def test_nothing_takes_no_request(make: Callable[..., Any]) -> None:
    async with OpenAIServer(echo) as server:
        assert await make(server.base_url).embed([]) == []
        assert server.requests == []


async def test_batches(make: Callable[..., Any]) -> None:
    async with OpenAIServer(echo) as server:
        vectors = await make(server.base_url).embed([str(number) for number in range(300)])
        long = await make(server.base_url).embed(["x" * 150_000, "y" * 150_000, "z" * 300_000])
        sizes = [len(request.json["input"]) for request in server.requests]
    assert [vector[1] for vector in vectors] == [
        *map(float, range(128)),
        *map(float, range(128)),
        *map(float, range(44)),
    ]
    assert [vector[0] for vector in long] == [150_000.0, 150_000.0, 300_000.0]
    assert sizes == [128, 128, 44, 1, 1, 1]


async def test_a_blank_text_is_refused_before_anything_is_sent(make: Callable[..., Any]) -> None:
    async with OpenAIServer(echo) as server:
        with pytest.raises(InvalidRequestError, match="text 1 is blank"):
            await make(server.base_url).embed(["a", " "])
        assert not server.requests
        assert len(await make(server.base_url).embed(["\ud83d"])) == 1


async def test_dimensions_can_be_asked_for(make: Callable[..., Any]) -> None:
    async with OpenAIServer(echo) as server:
        await make(server.base_url, options=Settings(dimensions=2)).embed(["a"])
        assert server.requests[0].json["dimensions"] == 2


def document(*entries: dict[str, Any]) -> Reply:
    return raw(json.dumps({"data": entries}), content_type="application/json")


A = {"index": 0, "embedding": [1.0]}
B = {"index": 1, "embedding": [2]}


@pytest.mark.parametrize(
    "answer",
    [
        document(A, B),
        document(B, A),
        document({"embedding": [1]}, {"embedding": [2]}),
        document({"index": 0, "embedding": [1]}, {"index": 0, "embedding": [2]}),
        embeddings([1.0], [2.0], as_text=True),
    ],
)
async def test_forms_of_answers(make: Callable[..., Any], answer: Reply) -> None:
    async with OpenAIServer([answer]) as server:
        assert await make(server.base_url).embed(["a", "b"]) == [[1.0], [2.0]]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (document(A), ServerError),
        (document(A, B, {"index": 2, "embedding": [3]}), ServerError),
        (document(A, {"index": 1, "embedding": [1, 2]}), ServerError),
        (document(A, {"index": 1, "embedding": []}), ServerError),
        (document(A, {"index": 1, "embedding": ["x"]}), ServerError),
        (document(A, {"index": 1, "embedding": "!!"}), ServerError),
        (document(A, {"index": 1, "embedding": "AAA="}), ServerError),
        (document(A, {"index": 1}), ServerError),
        (raw('{"data": [{"index": 0, "embedding": [NaN]}, {"index": 1, "embedding": [1]}]}'), ServerError),
        (
            raw('{"data": [{"index": 0, "embedding": [1' + 400 * "0" + ']}, {"index": 1, "embedding": [1]}]}'),
            ServerError,
        ),
        (raw('{"data": []}'), ServerError),
        (raw("<html>"), ServerError),
        (error(401, f"bad key {KEY}"), AuthError),
        (raw(b'{"data": [', content_type="application/json").ending("reset"), ProviderConnectionError),
    ],
)
async def test_what_is_no_answer(make: Callable[..., Any], answer: Reply, kind: type[ProviderError]) -> None:
    async with OpenAIServer([answer]) as server:
        with pytest.raises(ProviderError) as caught:
            await make(server.base_url, api_key=KEY).embed(["a", "b"])
    assert type(caught.value) is kind
    assert KEY not in str(caught.value)


async def test_an_answer_that_is_too_long_is_told(make: Callable[..., Any]) -> None:
    async with OpenAIServer([raw(b" " * (16 * 2**20 + 1))]) as server:
        with pytest.raises(ServerError, match="more than 16 MiB") as caught:
            await make(server.base_url).embed(["a"])
    assert not caught.value.retryable


async def test_a_model_that_changes_its_size_is_told(make: Callable[..., Any]) -> None:
    async with OpenAIServer([embeddings([1.0, 2.0]), embeddings([1.0])]) as server:
        embedder = make(server.base_url)
        await embedder.embed(["a"])
        with pytest.raises(ServerError, match="vectors of 1 numbers, and of 2 before"):
            await embedder.embed(["a"])
        assert embedder.dimension == 2


@pytest.mark.parametrize("kind", ["openai", "openai_compatible"])
async def test_as_it_is_installed(http: HttpClient, kind: str) -> None:
    host = PluginHost(PluginPolicy(), report=print)
    async with OpenAIServer(echo) as server:
        embedder = host.create_embedder(kind, ProviderSettings("mine", kind, server.base_url), "vectors-1", http)
        assert await embedder.embed(["ab"]) == [[2.0, 0.0]]


async def test_an_entry_without_an_address_is_refused(make: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match="no api_base"):
        make("")


@pytest.mark.parametrize(
    "answer",
    [
        document({"index": "1", "embedding": [1]}, {"index": "0", "embedding": [2]}),
        document({"index": 1, "embedding": [1]}, {"index": 1, "embedding": [2]}),
        document({"index": True, "embedding": [1]}, {"index": 0, "embedding": [2]}),
        document({"index": 0, "embedding": {"1": 2}}, {"index": 1, "embedding": {"1": 2}}),
        document({"index": 0, "embedding": ["1"]}, {"index": 1, "embedding": [True]}),
        document({"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1, 2]}),
    ],
)
async def test_an_answer_that_leaves_doubts_is_refused_and_fixes_no_size(
    make: Callable[..., Any], answer: Reply
) -> None:
    right = document({"index": 0, "embedding": [1, 2, 3]}, {"index": 1, "embedding": [4, 5, 6]})
    async with OpenAIServer([answer, right]) as server:
        embedder = make(server.base_url)
        with pytest.raises(ServerError):
            await embedder.embed(["a", "b"])
        assert await embedder.embed(["a", "b"]) == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


async def test_vectors_of_another_size_than_asked_for(make: Callable[..., Any]) -> None:
    async with OpenAIServer([document({"index": 0, "embedding": [1, 2]})]) as server:
        with pytest.raises(ServerError, match="of 2 numbers, and 8 were asked for"):
            await make(server.base_url, options=Settings(dimensions=8)).embed(["a"])
