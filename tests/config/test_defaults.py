"""Default models and key variables stand in several places, and say the same in all of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from openheim import HttpClient, ProviderSettings
from openheim.config.load import load_config
from openheim.config.selection import KEY_VARIABLES, select_provider
from openheim.config.template import PROVIDER_CHOICES
from openheim.errors import ConfigError
from openheim.plugins.host import PluginHost
from openheim.plugins.policy import PluginPolicy

DOCS = Path(__file__).parents[2] / "docs"


def test_defaults_of_the_core_are_those_of_the_plugins() -> None:
    host = PluginHost(PluginPolicy(), report=pytest.fail)
    compared = set()
    for name, (kind, model, variable) in PROVIDER_CHOICES.items():
        assert variable == KEY_VARIABLES.get(kind, "")
        if kind not in host.names("providers") or not model:
            continue
        provider = host.create_provider(kind, ProviderSettings(name, kind, api_key="k"), HttpClient())
        assert provider.default_model == model
        if variable:
            with pytest.raises(ConfigError, match=rf"set {variable}\b"):
                host.create_provider(kind, ProviderSettings(name, kind), HttpClient())
        compared.add(kind)
    assert compared >= {"openai", "demo"}
    assert set(KEY_VARIABLES) == {kind for kind, _model, variable in PROVIDER_CHOICES.values() if variable}


@pytest.mark.parametrize(
    ("there", "keys", "chosen", "words"),
    [
        (("openai", "demo"), ("anthropic", "openai"), "openai", ""),
        (("openai", "demo", "anthropic"), ("anthropic", "openai"), "anthropic", ""),
        (("openai", "demo"), (), "demo", "no key was found, .*; set OPENAI_API_KEY, or run openheim init"),
        (("gemini", "openai", "demo"), (), "demo", "; set OPENAI_API_KEY or GEMINI_API_KEY,"),
        (("openai", "demo"), ("gemini",), "demo", "GEMINI_API_KEY is for is .*; pip install openheim-provider-gemini"),
        (("demo",), (), "demo", r"install a provider \(pip install openheim-provider-openai\)"),
    ],
)
def test_only_what_is_installed_is_chosen_by_its_key(
    there: tuple[str, ...], keys: tuple[str, ...], chosen: str, words: str
) -> None:
    environment = {KEY_VARIABLES[kind]: "k" for kind in keys}
    selection = select_provider(load_config(environment={}).config, environment=environment, installed=lambda: there)
    assert selection.settings.name == chosen
    assert re.search(words, selection.notice)
    assert bool(words) == bool(selection.notice)


def test_texts_name_the_variables_in_the_order_in_which_they_count() -> None:
    variables = list(KEY_VARIABLES.values())
    notice = select_provider(load_config(environment={}).config, environment={}).notice
    page = (DOCS / "reference" / "configuration.md").read_text(encoding="utf-8")
    for text in (notice, page):
        assert list(dict.fromkeys(re.findall(r"[A-Z]+_API_KEY", text))) == variables
