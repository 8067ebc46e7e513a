"""Which provider and model a session uses.

In this order: the one named, the config's default, the first key found in the environment, the demo provider.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from openheim.errors import ConfigError
from openheim.providers import ProviderSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from openheim.config.models import Config, ProviderEntry

__all__ = ("KEY_VARIABLES", "Selection", "check_model", "provider_names", "resolve_entry", "select_provider")

#: Kinds that a key in the environment is enough for, in the order in which they are looked for.
KEY_VARIABLES = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY"}

#: What can stand in a header, which is where keys are sent.
_SENDABLE = re.compile(r"[!-~](?:[ -~]*[!-~])?")

#: Characters read of a file that holds a key.
_MAX_KEY_FILE = 64 * 1024

_DEMO_NOTICE = (
    "no provider is configured and no key was found, so the demo provider answers (it is no language model); "
    f"set {' or '.join(KEY_VARIABLES.values())}, or run openheim init"
)


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
) -> Selection:
    """Picks provider and model.

    Raises:
        ConfigError: unknown provider or model (the closest names are given), or an entry that cannot be used.
    """
    env = os.environ if environment is None else environment
    if provider is not None:
        return _checked(config, _existing(config, provider), model, env)
    if model is not None:
        return _by_model(config, model, env)
    name, notice = _default_name(config, env)
    return replace(_checked(config, name, None, env), notice=notice)


def _default_name(config: Config, env: Mapping[str, str]) -> tuple[str, str]:
    if config.default_provider is not None:
        return _existing(config, config.default_provider, "default_provider names "), ""
    if len(config.providers) == 1:
        return next(iter(config.providers)), ""
    if config.providers:
        raise ConfigError(
            f"several providers are configured ({', '.join(sorted(config.providers))}) and none is the default",
            hint="set default_provider in the config, or pass --provider",
        )
    for kind, variable in KEY_VARIABLES.items():
        if env.get(variable):
            return kind, ""
    return "demo", _DEMO_NOTICE


def _existing(config: Config, name: str, lead: str = "") -> str:
    if name in config.providers or name in KEY_VARIABLES or name == "demo":
        return name
    names = provider_names(config)
    close = get_close_matches(name, names, 2) or names
    raise ConfigError(f"{lead}unknown provider {name!r}", hint=f"there are: {', '.join(close)}")


def _by_model(config: Config, model: str, env: Mapping[str, str]) -> Selection:
    for name in sorted(config.providers):
        entry = config.providers[name]
        if model in entry.models or model == entry.default_model:
            return _checked(config, name, model, env)
    name, notice = _default_name(config, env)
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


def _checked(config: Config, name: str, model: str | None, env: Mapping[str, str]) -> Selection:
    settings, options = resolve_entry(config, name, env)
    if model is not None and settings.models:
        check_model(model, settings.models, name)
    return Selection(settings, options, model if model is not None else settings.default_model)


def _unknown_model(model: str, known: Any, where: str = "") -> ConfigError:
    close = get_close_matches(model, list(known), 3) or list(known)[:5]
    return ConfigError(f"unknown model {model!r}{where}", hint=f"there are: {', '.join(close)}")


def resolve_entry(
    config: Config, name: str, environment: Mapping[str, str]
) -> tuple[ProviderSettings, Mapping[str, Any]]:
    """One provider entry, checked, with its key; and the keys that belong to the plugin.

    Raises:
        ConfigError: the address or the key cannot be used, plain http would carry a key, the default model is not
            allowed, or the key file cannot be read. Neither address nor key is quoted.
    """
    from openheim.config.models import ProviderEntry

    entry = config.providers.get(name) or ProviderEntry()
    kind = entry.kind or (name if name in KEY_VARIABLES or name == "demo" else "openai_compatible")
    where = f"provider {name!r}"
    base = _address(entry, where)
    key = _key(entry, kind, where, environment)
    if key and base.startswith("http://"):
        raise ConfigError(
            f"{entry.options.lead('api_base')}{where} would send its key over plain http, in clear",
            hint="use an https address, or leave the key out for a local server",
        )
    if entry.models and entry.default_model is not None and entry.default_model not in entry.models:
        raise ConfigError(
            f"{entry.options.lead('default_model')}default_model {entry.default_model!r} of {where} is not among its "
            "models",
            hint=f"choose one of {', '.join(entry.models)}",
        )
    default_model = entry.default_model or (entry.models[0] if entry.models else "")
    settings = ProviderSettings(
        name=name,
        kind=kind,
        api_base=base,
        api_key=key,
        default_model=default_model,
        models=entry.models,
        timeout_secs=entry.timeout_secs,
        max_tokens=entry.max_tokens,
        context_window=entry.context_window,
        thinking=entry.thinking,
    )
    return settings, entry.options


def _address(entry: ProviderEntry, where: str) -> str:
    if entry.api_base is None:
        return ""
    from openheim._addresses import address_problem

    problem = address_problem(entry.api_base)
    if problem is None and re.search("[?#]", entry.api_base):
        problem = "must end with its path: what follows ? or # would stand in the middle of every address made from it"
    if problem is not None:
        raise ConfigError(f"{entry.options.lead('api_base')}api_base of {where} {problem}", hint="correct that setting")
    return entry.api_base.rstrip("/")


def _key(entry: ProviderEntry, kind: str, where: str, env: Mapping[str, str]) -> str:
    key, source = _found_key(entry, kind, where, env)
    if key and not _SENDABLE.fullmatch(key):
        raise ConfigError(
            f"the key of {where}, from {source}, holds characters that cannot be sent in a header",
            hint="keys are plain ASCII on one line: copy it anew",
        )
    return key


def _found_key(entry: ProviderEntry, kind: str, where: str, env: Mapping[str, str]) -> tuple[str, str]:
    """The key, or ``""``, and where it comes from."""
    variable = entry.env_var
    if variable is None and entry.api_base is None:
        # A vendor's key goes to the vendor's own address only, unless the entry asks for it by name.
        variable = KEY_VARIABLES.get(kind)
    if variable and env.get(variable, "").strip():
        return env[variable].strip(), variable
    if entry.api_key is not None and entry.api_key.strip():
        place = entry.options.place_of("api_key")
        return entry.api_key.strip(), f"api_key ({place})" if place else "api_key"
    if entry.api_key_file:
        return _key_in_file(entry, f"api_key_file of {where}"), f"the file {entry.api_key_file}"
    return "", ""


def _key_in_file(entry: ProviderEntry, what: str) -> str:
    from openheim.config.paths import expanded_path

    lead = entry.options.lead("api_key_file")
    path = expanded_path(entry.api_key_file or "", f"{lead}{what}")
    try:
        # With a byte-order mark, which some editors write unasked.
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(_MAX_KEY_FILE + 1)
    except (OSError, UnicodeDecodeError) as err:
        reason = err.strerror if isinstance(err, OSError) else "not UTF-8"
        raise ConfigError(f"{lead}cannot read {what}: {reason}", hint="check path and permissions") from err
    if len(text) > _MAX_KEY_FILE:
        raise ConfigError(f"{lead}{what} is too long for a key", hint="name the file that holds the key alone")
    return text.strip()
