"""What makes embeddings is made as ``[memory]`` says, when it is first asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from openheim import HttpClient, PluginLoadError, PluginNotFoundError, ProviderSettings, hookimpl
from openheim.errors import ConfigError
from tests.runtime.test_live import make_runtime

pytestmark = pytest.mark.anyio

ENTRY = {"kind": "vectors", "api_key": "key-of-vectors", "default_model": "writer", "size": 3}
SETTINGS: dict[str, Any] = {
    "providers": {"v": ENTRY},
    "memory": {"embedding_provider": "v", "embedding_model": "vectors-1"},
}


class Vectors:
    dimension = 3

    def __init__(self) -> None:
        self.closed = 0

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, 0.0, 0.0] for _ in texts]

    async def aclose(self) -> None:
        self.closed += 1


class VectorsPlugin:
    class Settings(BaseModel):
        model_config = ConfigDict(extra="forbid")

        size: int = 0

    def __init__(self) -> None:
        self.asked: list[tuple[str, ProviderSettings, str, HttpClient]] = []
        self.made = Vectors()

    @hookimpl
    def openheim_create_embedder(self, kind: str, settings: ProviderSettings, model: str, http: HttpClient) -> Vectors:
        self.asked.append((kind, settings, model, http))
        return self.made


async def test_the_entry_and_its_model_reach_the_plugin_once() -> None:
    plugin = VectorsPlugin()
    async with make_runtime(settings=SETTINGS) as runtime:
        runtime.host.register(plugin, kind="embeddings", name="vectors")
        embedder = runtime.embedder()
        assert embedder is plugin.made
        assert runtime.embedder() is embedder
        ((kind, settings, model, http),) = plugin.asked
        assert (kind, settings.name, settings.api_key, model) == ("vectors", "v", "key-of-vectors", "vectors-1")
        assert settings.options == VectorsPlugin.Settings(size=3)
        assert http is runtime.http
    assert plugin.made.closed == 1


async def test_without_settings_there_is_none() -> None:
    async with make_runtime() as runtime:
        assert runtime.embedder() is None


@pytest.mark.parametrize(
    ("entry", "error", "message"),
    [
        (ENTRY | {"models": ["writer"]}, ConfigError, "unknown model 'vectors-1' of provider 'v'"),
        (ENTRY | {"sise": 3}, ConfigError, "sise"),
        (ENTRY | {"kind": "nosuch"}, PluginNotFoundError, "nosuch"),
    ],
    ids=["model", "option", "kind"],
)
async def test_what_cannot_be_used(entry: dict[str, Any], error: type[Exception], message: str) -> None:
    async with make_runtime(settings=SETTINGS | {"providers": {"v": entry}}) as runtime:
        runtime.host.register(VectorsPlugin(), kind="embeddings", name="vectors")
        with pytest.raises(error, match=message):
            runtime.embedder()


async def test_a_plugin_that_only_writes_text_is_no_embedder() -> None:
    class Writer:
        @hookimpl
        def openheim_create_provider(self) -> None: ...

    async with make_runtime() as runtime:
        with pytest.raises(PluginLoadError, match="does not implement openheim_create_embedder"):
            runtime.host.register(Writer(), kind="embeddings", name="vectors")
