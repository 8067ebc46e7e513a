"""The plugin as it is installed: entry points, settings, what it costs to load, what it refuses, how models think."""

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
from openheim_provider_gemini import plugin
from openheim_provider_gemini.plugin import openheim_create_embedder, openheim_create_provider
from openheim_provider_gemini.thinking import thinking_config
from tests.providers.conftest import KEY


@pytest.mark.parametrize("group", ["openheim.providers", "openheim.embeddings"])
def test_entry_points(group: str) -> None:
    (found,) = entry_points(group=group, name="gemini")
    assert found.load() is plugin


def test_loading_the_plugin_imports_nothing_heavy() -> None:
    heavy = ("httpx", "httpcore", "pydantic", "anyio", "asyncio", "ssl", "json", "email", "google")
    script = (
        f"import sys, openheim_provider_gemini.plugin as plugin\n"
        f"assert not [name for name in {heavy!r} if name in sys.modules], sorted(sys.modules)\n"
        f"plugin.Settings\n"
        f"assert 'pydantic' in sys.modules\n"
        f"import openheim_provider_gemini.provider, openheim_provider_gemini.embedder\n"
        f"assert 'google.genai' not in sys.modules\n"
    )
    child = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, timeout=50)
    assert child.returncode == 0, child.stderr


def test_the_plugin_has_no_other_lazy_names() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Setings'"):
        plugin.Setings  # noqa: B018  # the mistake under test


def create(what: str = "provider", **fields: Any) -> Any:
    settings = ProviderSettings("mine", "gemini", **fields)
    if what == "embedder":
        return openheim_create_embedder(settings, "gemini-embedding-001", HttpClient())
    return openheim_create_provider(settings, HttpClient())


BOTH = pytest.mark.parametrize("what", ["provider", "embedder"])


def test_defaults() -> None:
    provider = create(api_key=KEY)
    assert (provider.wire, provider.default_model) == ("gemini", "gemini-3.8-flash")
    assert create("embedder", api_key=KEY).dimension is None


@BOTH
@pytest.mark.parametrize("base", ["", "https://generativelanguage.googleapis.com/v1beta/"])
def test_without_a_key_google_is_not_asked(what: str, base: str) -> None:
    with pytest.raises(ConfigError, match="provider 'mine' has no key") as caught:
        create(what, api_base=base)
    assert "GEMINI_API_KEY" in caught.value.hint
    assert "[providers.mine]" in caught.value.hint
    create(what, api_base="http://localhost:8000/v1beta")


@BOTH
@pytest.mark.parametrize("name", ["X-Goog-Api-Key", "authorization", "cookie"])
def test_a_credential_in_a_header_is_never_sent_in_clear(what: str, name: str) -> None:
    options = plugin.Settings(extra_headers={"x-team": "a", name: KEY})
    with pytest.raises(ConfigError, match="over plain http") as caught:
        create(what, api_base="http://models.example/v1beta", options=options)
    assert name.lower() in caught.value.message
    assert "x-team" not in caught.value.message
    assert KEY not in str(caught.value)
    create(what, api_base="https://models.example/v1beta", options=options)


@pytest.mark.parametrize(
    "settings",
    [
        {"unknown": 1},
        {"extra_headers": {"a": 1}},
        {"extra_headers": {"Transfer-Encoding": "chunked"}},
        {"extra_body": {"x": {"y": [float("inf")]}}},
        {"extra_body": {"contents": []}},
        {"extra_body": {"system_instruction": {}}},
        {"extra_body": {"tools": []}},
        {"extra_body": {"generation_config": {}}},
        {"extra_body": {"generationConfig": 1}},
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        plugin.Settings.model_validate(settings)


def test_headers_are_not_shown() -> None:
    assert KEY not in repr(plugin.Settings(extra_headers={"x-key": KEY}))


SHOWN = {"includeThoughts": True}


@pytest.mark.parametrize(
    ("model", "thinking", "config"),
    [
        # By level: generation 3 and whatever is the latest.
        ("gemini-3-pro-preview", None, SHOWN),
        ("gemini-3-pro-preview", "adaptive", SHOWN),
        ("gemini-3-pro-preview", -1, SHOWN),
        ("gemini-3-pro-preview", "off", {"thinkingLevel": "LOW"}),
        ("gemini-3-pro-preview", "minimal", SHOWN | {"thinkingLevel": "LOW"}),
        ("gemini-3.5-flash", "off", {"thinkingLevel": "MINIMAL"}),
        ("gemini-3.5-flash", 0, {"thinkingLevel": "MINIMAL"}),
        ("gemini-3.5-flash", "minimal", SHOWN | {"thinkingLevel": "MINIMAL"}),
        ("gemini-3.5-flash", "medium", SHOWN | {"thinkingLevel": "MEDIUM"}),
        ("gemini-3.5-flash", "max", SHOWN | {"thinkingLevel": "HIGH"}),
        ("gemini-3.5-flash", 4096, SHOWN | {"thinkingBudget": 4096}),
        ("gemini-3.5-flash", 99_999, SHOWN | {"thinkingBudget": 32_768}),
        ("models/gemini-3.8-flash", "high", SHOWN | {"thinkingLevel": "HIGH"}),
        ("gemini-12.1-pro", "high", SHOWN | {"thinkingLevel": "HIGH"}),
        # By budget: generation 2.5.
        ("gemini-2.5-flash", None, SHOWN),
        ("gemini-2.5-flash", "off", {"thinkingBudget": 0}),
        ("gemini-2.5-flash", "0", {"thinkingBudget": 0}),
        ("gemini-2.5-flash", "adaptive", SHOWN | {"thinkingBudget": -1}),
        ("gemini-2.5-flash", 1024, SHOWN | {"thinkingBudget": 1024}),
        ("gemini-2.5-flash", 99_999, SHOWN | {"thinkingBudget": 24_576}),
        ("gemini-2.5-flash", "low", SHOWN | {"thinkingBudget": 2048}),
        ("gemini-2.5-flash", "xhigh", SHOWN | {"thinkingBudget": 24_576}),
        ("gemini-2.5-flash-lite", 100, SHOWN | {"thinkingBudget": 512}),
        ("gemini-2.5-pro", "off", {"thinkingBudget": 128}),
        ("gemini-2.5-pro", "xhigh", SHOWN | {"thinkingBudget": 32_768}),
        ("gemini-2.5-pro", "a word of tomorrow", SHOWN),
        # Those that do not think refuse the field.
        ("gemini-2.0-flash", "high", None),
        ("gemini-2.5-flash-image", "high", None),
        ("gemini-2.5-flash-preview-tts", None, None),
        # Names that say nothing.
        ("m-test", None, None),
        ("m-test", "off", {"thinkingBudget": 0}),
        ("m-test", 2048, SHOWN | {"thinkingBudget": 2048}),
    ],
)
def test_thinking(model: str, thinking: Any, config: dict[str, Any] | None) -> None:
    assert thinking_config(model, thinking) == config
