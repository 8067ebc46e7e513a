"""The plugin as it is installed: entry points, settings, what it costs to load, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from typing import Any

import pytest
from pydantic import ValidationError

from openheim.errors import ConfigError
from openheim.http import HttpClient
from openheim.providers import ProviderSettings
from openheim_provider_anthropic import plugin
from openheim_provider_anthropic.plugin import openheim_create_provider
from tests.providers.conftest import KEY


def test_entry_point() -> None:
    (found,) = entry_points(group="openheim.providers", name="anthropic")
    assert found.load() is plugin


def test_loading_the_plugin_imports_nothing_heavy() -> None:
    heavy = ("httpx", "httpcore", "pydantic", "anyio", "asyncio", "ssl", "json", "email")
    script = (
        f"import sys, openheim_provider_anthropic.plugin as plugin\n"
        f"assert not [name for name in {heavy!r} if name in sys.modules], sorted(sys.modules)\n"
        f"from openheim import HttpClient, ProviderSettings\n"
        f"settings = ProviderSettings('a', 'anthropic', api_key='k')\n"
        f"plugin.openheim_create_provider('anthropic', settings, HttpClient())\n"
        f"assert 'pydantic' not in sys.modules and 'anthropic' not in sys.modules\n"
        f"plugin.Settings\n"
        f"assert 'pydantic' in sys.modules\n"
    )
    child = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, timeout=50)
    assert child.returncode == 0, child.stderr


def test_the_plugin_has_no_other_lazy_names() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Setings'"):
        plugin.Setings  # noqa: B018  # the mistake under test


def create(**fields: Any) -> Any:
    return openheim_create_provider("anthropic", ProviderSettings("mine", "anthropic", **fields), HttpClient())


def test_defaults() -> None:
    provider = create(api_key=KEY)
    assert (provider.wire, provider.default_model) == ("anthropic-messages", "claude-sonnet-4-6")


@pytest.mark.parametrize("base", ["", "https://api.anthropic.com/v1", "https://api.anthropic.com/v1/"])
def test_anthropic_without_a_key_is_refused_before_anything_is_sent(base: str) -> None:
    with pytest.raises(ConfigError, match="provider 'mine' has no key") as caught:
        create(api_base=base)
    assert "ANTHROPIC_API_KEY" in caught.value.hint
    assert "[providers.mine]" in caught.value.hint


def test_other_servers_need_no_key() -> None:
    create(api_base="http://localhost:8000/v1")


@pytest.mark.parametrize("thinking", ["turbo", -5, "", 10**12])
def test_thinking_that_is_none(thinking: Any) -> None:
    with pytest.raises(ConfigError, match="provider 'mine': thinking is") as caught:
        create(api_key=KEY, thinking=thinking)
    assert "[providers.mine]" in caught.value.hint


@pytest.mark.parametrize("name", ["Authorization", "X-API-Key", "x_api_key", "Cookie"])
def test_a_credential_in_a_header_is_never_sent_in_clear(name: str) -> None:
    options = plugin.Settings(extra_headers={"x-team": "a", name: f"Bearer {KEY}"})
    with pytest.raises(ConfigError, match="over plain http") as caught:
        create(api_base="http://models.example/v1", options=options)
    assert name.lower() in caught.value.message
    assert "x-team" not in caught.value.message
    assert KEY not in str(caught.value)
    create(api_base="https://models.example/v1", options=options)


@pytest.mark.parametrize(
    "settings",
    [
        {"unknown": 1},
        {"cache": "2h"},
        {"extra_headers": {"a": 1}},
        {"extra_headers": {"Transfer-Encoding": "chunked"}},
        {"extra_body": {"x": {"y": [float("inf")]}}},
        {"extra_body": {"messages": []}},
        {"extra_body": {"system": "x", "temperature": 1}},
        {"server_tools": [{"name": "web_search"}]},
        {"server_tools": ["web_search"]},
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        plugin.Settings.model_validate(settings)


def test_headers_are_not_shown() -> None:
    assert KEY not in repr(plugin.Settings(extra_headers={"x-key": KEY}))
