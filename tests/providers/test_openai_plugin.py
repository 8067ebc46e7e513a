"""The plugin as it is installed: entry points, settings, what it costs to load, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from datetime import date, datetime
from importlib.metadata import entry_points
from typing import Any

import pytest
from pydantic import ValidationError

from openheim.errors import ConfigError
from openheim.http import HttpClient
from openheim.providers import ProviderSettings
from openheim_provider_openai import plugin
from openheim_provider_openai.plugin import openheim_create_provider
from tests.providers.conftest import KEY


def test_entry_points() -> None:
    found = {entry.name: entry.load() for entry in entry_points(group="openheim.providers") if entry.name in KINDS}
    assert found == dict.fromkeys(KINDS, plugin)


KINDS = ("openai", "openai_compatible")


def test_loading_the_plugin_imports_nothing_heavy() -> None:
    heavy = ("httpx", "httpcore", "pydantic", "anyio", "asyncio", "ssl", "json", "email")
    script = (
        f"import sys, openheim_provider_openai.plugin as plugin\n"
        f"assert not [name for name in {heavy!r} if name in sys.modules], sorted(sys.modules)\n"
        f"plugin.Settings\n"
        f"assert 'pydantic' in sys.modules\n"
    )
    child = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, timeout=50)
    assert child.returncode == 0, child.stderr


def test_the_plugin_has_no_other_lazy_names() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Setings'"):
        plugin.Setings  # noqa: B018  # the mistake under test


def create(kind: str, **fields: Any) -> Any:
    return openheim_create_provider(kind, ProviderSettings("mine", kind, **fields), HttpClient())


def test_defaults() -> None:
    provider = create("openai", api_key=KEY)
    assert (provider.wire, provider.default_model) == ("openai-chat", "gpt-4o")


@pytest.mark.parametrize("base", ["", "https://api.openai.com/v1", "https://api.openai.com/v1/"])
def test_openai_without_a_key_is_refused_before_anything_is_sent(base: str) -> None:
    with pytest.raises(ConfigError, match="provider 'mine' has no key") as caught:
        create("openai", api_base=base)
    assert "OPENAI_API_KEY" in caught.value.hint
    assert "[providers.mine]" in caught.value.hint


def test_which_model_a_compatible_server_has_is_not_guessed() -> None:
    base = "http://localhost:8000/v1"
    assert create("openai_compatible", api_base=base).default_model == ""
    assert create("openai_compatible", api_base=base, default_model="qwen3").default_model == "qwen3"
    assert create("openai", api_base=base).default_model == "gpt-4o"


def test_other_servers_need_no_key() -> None:
    create("openai", api_base="http://localhost:8000/v1")
    create("openai_compatible", api_base="http://localhost:8000/v1")


def test_a_compatible_server_needs_an_address() -> None:
    with pytest.raises(ConfigError, match="provider 'mine' has no api_base") as caught:
        create("openai_compatible")
    assert "[providers.mine]" in caught.value.hint


CREDENTIALS = ["Authorization", "proxy-authorization", "api-key", "X-API-Key", "x_api_key", "Cookie", "x-auth-token"]
CREDENTIALS += ["x-goog-api-key", "ocp-apim-subscription-key", "cf-access-client-secret", "helicone-auth", "apikey"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CREDENTIALS)
def test_a_credential_in_a_header_is_never_sent_in_clear(kind: str, name: str) -> None:
    options = plugin.Settings(extra_headers={"x-team": "a", name: f"Bearer {KEY}"})
    for base in ("http://localhost:8000/v1", "http://models.example/v1/"):
        with pytest.raises(ConfigError, match="over plain http") as caught:
            create(kind, api_base=base, options=options)
        assert name.lower() in caught.value.message
        assert "x-team" not in caught.value.message
        assert "[providers.mine]" in caught.value.hint
        assert KEY not in str(caught.value)
    create(kind, api_base="https://models.example/v1", options=options)


@pytest.mark.parametrize("name", ["x-team", "OpenAI-Organization", "http-referer", "x-tokenizer", "x-author-name"])
def test_other_headers_go_over_plain_http(name: str) -> None:
    create("openai_compatible", api_base="http://localhost:8000/v1", options=plugin.Settings(extra_headers={name: "a"}))


@pytest.mark.parametrize(
    "settings",
    [
        {"unknown": 1},
        {"stream_options": "perhaps"},
        {"max_tokens_field": "tokens"},
        {"extra_headers": {"a": 1}},
        {"extra_body": {"messages": []}},
        {"extra_body": {"top_p": float("nan")}},
        {"extra_body": {"stream": False, "temperature": 1}},
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        plugin.Settings.model_validate(settings)


FRAMING = ["Connection", "content-length", "Expect", "host", "Keep-Alive", "proxy-connection", "TE", "trailer"]
FRAMING += ["transfer-encoding", "Upgrade"]


@pytest.mark.parametrize("name", FRAMING)
def test_how_a_request_is_sent_is_not_for_headers_to_say(name: str) -> None:
    with pytest.raises(ValidationError, match=f"extra_headers\\n.*{name.lower()} cannot be set here"):
        plugin.Settings.model_validate({"extra_headers": {name: "a", "x-team": "b"}})


@pytest.mark.parametrize("value", [float("nan"), {"a": [float("inf")]}, date(2026, 1, 1), [datetime(2026, 1, 1)]])
def test_what_json_cannot_say_is_told_with_its_name(value: Any) -> None:
    with pytest.raises(ValidationError, match=r"extra_body\n.*seed has no form in JSON"):
        plugin.Settings.model_validate({"extra_body": {"seed": value, "top_k": 1}})


def test_headers_are_not_shown() -> None:
    assert KEY not in repr(plugin.Settings(extra_headers={"x-key": KEY}))
