"""A provider that states its models is never asked for another."""

from __future__ import annotations

from pathlib import Path

import pytest

from openheim import Client
from openheim.errors import ConfigError
from openheim.testing import ScriptedProvider

pytestmark = pytest.mark.anyio


class Stating(ScriptedProvider):
    known_models = ("small", "large")
    default_model = "small"


async def test_other_models_are_refused_before_a_turn(tmp_path: Path) -> None:
    async with Client(config=False, provider=Stating(["yes"]), data_dir=tmp_path) as client:
        with pytest.raises(ConfigError, match=r"unknown model 'larg' .*\(there are: large\)"):
            client.new_session(model="larg")
        session = client.new_session()
        assert session.binding.model == "small"
        session.set_model(client.provider, "large")
        with pytest.raises(ConfigError, match="unknown model 'huge'"):
            session.set_model(client.provider, "huge")
        assert session.binding.model == "large"
        assert (await session.run("go")).text == "yes"


async def test_a_default_model_of_the_settings_is_checked_too(tmp_path: Path) -> None:
    settings = {"providers": {"demo": {"default_model": "nosuch"}}}
    async with Client(config=False, data_dir=tmp_path, settings=settings) as client:
        with pytest.raises(ConfigError, match=r"unknown model 'nosuch' of provider 'demo' \(there are: demo\)"):
            client.new_session()


async def test_a_provider_that_states_none_takes_any(tmp_path: Path) -> None:
    async with Client(config=False, provider=ScriptedProvider(["yes"]), data_dir=tmp_path) as client:
        assert client.new_session(model="anything").binding.model == "anything"


async def test_one_without_a_default_wants_a_model_named(tmp_path: Path) -> None:
    entry = {"kind": "openai_compatible", "api_base": "http://127.0.0.1:9/v1"}
    settings = {"providers": {"local": entry}, "default_provider": "local"}
    async with Client(config=False, data_dir=tmp_path, settings=settings) as client:
        with pytest.raises(ConfigError, match="no model is named for provider 'local'") as caught:
            client.new_session()
        assert "default_model in [providers.local]" in caught.value.hint
        assert client.new_session(model="qwen3").binding.model == "qwen3"
