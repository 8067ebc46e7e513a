"""Which provider and model a session uses.

In this order: the one named, the config's default, the first key found in the environment, the demo provider.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias

from openheim.config.rules import KEY_VARIABLES, fallback_problems, is_kind, kind_of, provider_problems, sends_in_clear
from openheim.config.secrets import UnusableKey, find_key, key_variable
from openheim.errors import ConfigError
from openheim.plugins.first_party import distribution_of
from openheim.providers import ProviderSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from openheim.config.models import Config

__all__ = (
    "KEY_VARIABLES",
    "Installed",
    "Selection",
    "check_model",
    "default_provider",
    "fallback_pairs",
    "key_advice",
    "provider_names",
    "resolve_entry",
    "select_provider",
)

#: Gives the kinds of providers whose plugins are there, without loading one.
Installed: TypeAlias = "Callable[[], Collection[str]]"


@dataclass(frozen=True, slots=True)
class Selection:
    """A provider entry, the model asked for (``""`` for the provider's default) and a notice for the user, if any.

    ``options`` are the entry's keys that belong to the plugin; they are not checked yet.
    """

    settings: ProviderSettings
    # May hold keys, so they are not shown.
    options: Mapping[str, Any] = field(repr=False)
    model: str
    notice: str = ""


def provider_names(config: Config) -> list[str]:
    """Names that ``--provider`` may take: the entries, and kinds that need none."""
    return sorted({*config.providers, *KEY_VARIABLES, "demo"})


def select_provider(
    config: Config,
    *,
    provider: str | None = None,
    model: str | None = None,
    environment: Mapping[str, str] | None = None,
    installed: Installed | None = None,
) -> Selection:
    """Picks provider and model.

    Args:
        installed: as of :func:`default_provider`.

    Raises:
        ConfigError: unknown provider or model (the closest names are given), or an entry that cannot be used.
    """
    env = os.environ if environment is None else environment
    if provider is not None:
        return _checked(config, _existing(config, provider, installed=installed), model, env)
    if model is not None:
        return _by_model(config, model, env, installed)
    name, notice = default_provider(config, env, installed)
    return replace(_checked(config, name, None, env), notice=notice)


def default_provider(config: Config, env: Mapping[str, str], installed: Installed | None = None) -> tuple[str, str]:
    """The name of the provider that is used when none is named, and a notice for the user, or ``""``.

    Args:
        installed: asked where a key in the environment decides, since a key is of no use without its plugin; None
            takes all to be there.

    Raises:
        ConfigError: the config names one that does not exist, or several and no default.
    """
    if config.default_provider is not None:
        return _existing(config, config.default_provider, "default_provider names "), ""
    if len(config.providers) == 1:
        return next(iter(config.providers)), ""
    if config.providers:
        raise ConfigError(
            f"several providers are configured ({', '.join(sorted(config.providers))}) and none is the default",
            hint="set default_provider in the config, or pass --provider",
        )
    there = KEY_VARIABLES if installed is None else installed()
    keyed = [kind for kind, variable in KEY_VARIABLES.items() if env.get(variable)]
    for kind in keyed:
        if kind in there:
            return kind, ""
    return "demo", _demo_notice(keyed, [kind for kind in KEY_VARIABLES if kind in there])


def key_advice(kinds: Collection[str]) -> str:
    """What to do for a provider that needs no entry, where the plugins of these kinds are installed."""
    variables = [variable for kind, variable in KEY_VARIABLES.items() if kind in kinds]
    if variables:
        return f"set {' or '.join(variables)}"
    return f"install a provider (pip install {distribution_of('providers', 'openai')})"


def _demo_notice(keyed: list[str], there: list[str]) -> str:
    answers = "so the demo provider answers (it is no language model)"
    if keyed:
        lacking = f"the plugin that {KEY_VARIABLES[keyed[0]]} is for is not installed"
        advice = f"pip install {distribution_of('providers', keyed[0])}"
    else:
        lacking, advice = "no key was found", f"{key_advice(there)}, or run openheim init"
    return f"no provider is configured and {lacking}, {answers}; {advice}"


def _existing(config: Config, name: str, lead: str = "", installed: Installed | None = None) -> str:
    if name in config.providers or is_kind(name):
        return name
    from openheim.config.masking import without_keys

    names = provider_names(config)
    close = get_close_matches(name, names, 1)
    if installed is not None and name in installed():
        hint = f'a plugin of this kind is installed: give it an entry, [providers.{name}] with kind = "{name}"'
    elif close:
        hint = f"did you mean {close[0]}? there are: {', '.join(names)}"
    else:
        hint = f"there are: {', '.join(names)}"
    hint = without_keys(hint)
    raise ConfigError(f"{lead}unknown provider {without_keys(name)!r}", hint=hint)


def _by_model(config: Config, model: str, env: Mapping[str, str], installed: Installed | None) -> Selection:
    for name in sorted(config.providers):
        entry = config.providers[name]
        if model in entry.models or model == entry.default_model:
            return _checked(config, name, model, env)
    name, notice = default_provider(config, env, installed)
    default = config.providers.get(name)
    if default is None or not default.models:
        return replace(_checked(config, name, model, env), notice=notice)
    known = sorted({known for entry in config.providers.values() for known in entry.models})
    raise _unknown_model(model, known)


def check_model(model: str, known: Iterable[str], name: str) -> None:
    """Checks a model against those that the provider ``name`` says it has.

    Raises:
        ConfigError: it is none of them; the closest names are given.
    """
    models = tuple(known)
    if model not in models:
        raise _unknown_model(model, models, f" of provider {name!r}")


def fallback_pairs(config: Config, name: str) -> list[tuple[str, str]]:
    """Provider and model of each ``fallback`` of an entry, in order. Lists of those entries are not followed.

    Raises:
        ConfigError: one of them cannot be used; see :func:`openheim.config.rules.fallback_problems`.
    """
    entry = config.providers.get(name)
    if entry is None or not entry.fallback:
        return []
    for broken in fallback_problems(name, config):
        lead = f"{entry.options.lead('fallback')}fallback of provider {name!r}"
        raise ConfigError(f"{lead} {broken.message}", hint=broken.hint)
    return [(provider, model) for provider, _slash, model in (text.partition("/") for text in entry.fallback)]


def _checked(config: Config, name: str, model: str | None, env: Mapping[str, str]) -> Selection:
    settings, options = resolve_entry(config, name, env)
    if model is not None and settings.models:
        check_model(model, settings.models, name)
    return Selection(settings, options, model if model is not None else settings.default_model)


def _unknown_model(model: str, known: Any, where: str = "") -> ConfigError:
    close = get_close_matches(model, list(known), 3) or list(known)[:5]
    from openheim.config.masking import without_keys

    hint = without_keys(f"there are: {', '.join(close)}")
    return ConfigError(f"unknown model {without_keys(model)!r}{where}", hint=hint)


def resolve_entry(
    config: Config, name: str, environment: Mapping[str, str]
) -> tuple[ProviderSettings, Mapping[str, Any]]:
    """One provider entry, checked, with its key; and the keys that belong to the plugin.

    Raises:
        ConfigError: the address or the key cannot be used, plain http would carry a key off this machine, the default
            model is not allowed, or the key is not where the entry says. Neither address nor key is quoted.
    """
    from openheim.config.models import ProviderEntry

    entry = config.providers.get(name) or ProviderEntry()
    where = f"provider {name!r}"
    lead = entry.options.lead
    for broken in provider_problems(name, entry):
        keys = broken.path[2:]
        raise ConfigError(f"{lead(*keys)}{keys[-1]} of {where} {broken.message}", hint=broken.hint)
    base = (entry.api_base or "").rstrip("/")
    try:
        key = find_key(name, entry, environment)
    except UnusableKey as err:
        raise ConfigError(f"{lead(*err.setting) if err.setting else ''}{err.message}", hint=err.hint) from err
    if key and sends_in_clear(base, config.http.proxy):
        raise ConfigError(
            f"{lead('api_base')}{where} would send its key over plain http, in clear",
            hint="use an https address, or a loopback one (127.0.0.1, [::1], localhost) without a proxy, or leave the "
            "key out: openheim config check shows where it stands",
        )
    settings = ProviderSettings(
        name=name,
        kind=kind_of(name, entry),
        api_base=base,
        api_key=key,
        key_variable=key_variable(name, entry),
        default_model=entry.default_model or (entry.models[0] if entry.models else ""),
        models=entry.models,
        timeout_secs=entry.timeout_secs,
        max_tokens=entry.max_tokens,
        context_window=entry.context_window,
        thinking=entry.thinking_of("default"),
    )
    return settings, entry.options
