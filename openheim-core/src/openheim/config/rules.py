"""What is wrong with settings that are each allowed by themselves.

:func:`broken_rules` stops every command. :func:`provider_problems` concerns entries that may never be used, so it is
asked when one of them is, and by ``openheim config check``.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from openheim.config.models import Config, McpServerEntry, MemorySection, ProviderEntry

__all__ = (
    "KEY_VARIABLES",
    "THINKING",
    "Broken",
    "broken_rules",
    "doubts",
    "fallback_problems",
    "is_kind",
    "kind_of",
    "provider_problems",
    "readable_by_others",
    "sends_in_clear",
)

#: Kinds that a key in the environment is enough for, in the order in which they are looked for.
KEY_VARIABLES = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY"}

#: Words that ``thinking`` may be. Which of the efforts a model takes is known to its service only.
THINKING = ("off", "adaptive", "none", "minimal", "low", "medium", "high", "xhigh", "max")

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

#: Paths of the services that plugins ask, as their documentation shows them.
_ENDPOINT = re.compile(r"/(?:chat/completions|completions|responses|messages|models|embeddings)/?$")

#: A variable as shells write it, ``$NAME`` or ``${NAME}``. Settings do not put its value there.
_SHELL_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule that does not hold: the key to look at, what is wrong with it, what to do."""

    path: tuple[str, ...]
    message: str
    hint: str


def kind_of(name: str, entry: ProviderEntry | None) -> str:
    """The kind of a provider entry: the one it names, else the one of its name, else ``openai_compatible``."""
    if entry is not None and entry.kind:
        return entry.kind
    return name if is_kind(name) else "openai_compatible"


def is_kind(name: str) -> bool:
    """Whether a provider of this name needs no entry."""
    return name in KEY_VARIABLES or name == "demo"


def broken_rules(config: Config) -> Iterator[Broken]:
    """What must not be, whatever is done next."""
    for name, entry in config.providers.items():
        yield from _key_sources(("providers", name), entry)
    for name, server in config.mcp_servers.items():
        yield from _mcp_server(("mcp_servers", name), server)
    yield from _memory(config.memory, config)


def doubts(config: Config) -> Iterator[Broken]:
    """What is no error and yet hardly meant."""
    for name, entry in config.providers.items():
        if endpoint := _ENDPOINT.search(entry.api_base or ""):
            yield Broken(
                ("providers", name, "api_base"),
                f"ends in {endpoint[0].rstrip('/')}, which is added to it for each request: take that off",
                "",
            )
        given = entry.api_key if isinstance(entry.api_key, str) else ""
        if variable := _SHELL_VARIABLE.fullmatch(given.strip()):
            from openheim.config.masking import without_keys

            yield Broken(
                ("providers", name, "api_key"),
                # All in the message: what is shown at the start of a command has no hints.
                "is sent as it stands, not as the variable's value: "
                f'write {{ env = "{without_keys(variable[1] or variable[2])}" }}',
                "",
            )
    for name, server in config.mcp_servers.items():
        if not server.command and not server.url:
            yield Broken(
                ("mcp_servers", name),
                "has neither command nor url, so there is nothing to connect to",
                "give it one of them",
            )


def _key_sources(path: tuple[str, ...], entry: ProviderEntry) -> Iterator[Broken]:
    # What stands there instead is as often as not the key itself, which is no text for a message.
    if entry.env_var is not None and not _VARIABLE.fullmatch(entry.env_var):
        yield Broken((*path, "env_var"), "must be the name of a variable", "such as MY_API_KEY; never the key itself")
    if entry.api_key is not None and not isinstance(entry.api_key, str):
        sources = entry.api_key
        if len(sources) != 1 or not sources.keys() <= {"env", "file", "keyring"}:
            yield Broken(
                (*path, "api_key"),
                "must be a text, or a table with one of env, file and keyring",
                'such as { keyring = "openai" }',
            )
        elif "env" in sources and not _VARIABLE.fullmatch(sources["env"]):
            yield Broken((*path, "api_key", "env"), "must be the name of a variable", "such as MY_API_KEY")


def _mcp_server(path: tuple[str, ...], server: McpServerEntry) -> Iterator[Broken]:
    if server.command and server.url:
        yield Broken((*path, "url"), "cannot stand beside command", "make two servers of it, or take one out")
    if server.url and (problem := _address_problem(server.url)):
        yield Broken((*path, "url"), problem, "correct it")
    if server.headers and server.url and server.url.startswith("http://"):
        yield Broken(
            (*path, "headers"), "would be sent over plain http, in clear", "use an https address, or take them out"
        )
    for name, value in server.headers.items():
        if not _HEADER_NAME.fullmatch(name):
            yield Broken((*path, "headers", name), "is no name of a header", "correct it")
        elif not _HEADER_VALUE.fullmatch(value):
            yield Broken((*path, "headers", name), "holds a character that no header may hold", "correct it")
    for name in server.env:
        if not name or "=" in name or "\0" in name:
            yield Broken((*path, "env", name), "is no name of a variable", "correct it")


def _memory(memory: MemorySection, config: Config) -> Iterator[Broken]:
    provider = (memory.embedding_provider or "").strip()
    model = (memory.embedding_model or "").strip()
    if provider and not model:
        yield Broken(("memory", "embedding_provider"), "needs embedding_model as well", "name the model")
    if model and not provider:
        yield Broken(("memory", "embedding_model"), "needs embedding_provider as well", "name the provider")
    if provider:
        entry = config.providers.get(provider)
        if entry is None and provider not in KEY_VARIABLES:
            known = ", ".join(sorted({*config.providers, *KEY_VARIABLES} - {"anthropic"}))
            yield Broken(("memory", "embedding_provider"), "names no provider", f"there are: {known}")
        elif kind_of(provider, entry) == "anthropic":
            yield Broken(
                ("memory", "embedding_provider"),
                "cannot be of kind anthropic, which makes no embeddings",
                "name a provider of another kind",
            )
    if memory.db_path is not None and not os.path.isabs(memory.db_path):
        yield Broken(("memory", "db_path"), "must be an absolute path", "write it from the root of the file system")


def provider_problems(name: str, entry: ProviderEntry) -> Iterator[Broken]:
    """What keeps one provider entry from being used, as far as the settings alone show it."""
    path = ("providers", name)
    if entry.api_base is not None and (problem := _base_problem(entry.api_base)):
        yield Broken((*path, "api_base"), problem, "correct it")
    for keys, value in _thinking_values(entry):
        if isinstance(value, str) and value not in THINKING:
            known = ", ".join(THINKING)
            yield Broken((*path, *keys), "is no way of thinking", f"write one of {known}, or a budget in tokens")
    if entry.models and entry.default_model is not None and entry.default_model not in entry.models:
        from openheim.config.masking import without_keys

        hint = without_keys(f"choose one of {', '.join(entry.models)}")
        yield Broken((*path, "default_model"), "is not among its models", hint)


def fallback_problems(name: str, config: Config) -> Iterator[Broken]:
    """What is wrong with the ``fallback`` of an entry: no pair, a provider that is not there, one that has failed."""
    from openheim.config.masking import without_keys

    entry = config.providers[name]
    seen = {f"{name}/{entry.default_model}"}
    for text in entry.fallback:
        path, shown = ("providers", name, "fallback"), repr(without_keys(text))
        provider, slash, model = text.partition("/")
        if not (slash and provider and model):
            yield Broken(path, f"holds {shown}, which is no provider/model", 'write it as in "openai/gpt-4o"')
        elif provider not in config.providers and not is_kind(provider):
            known = ", ".join(sorted({*config.providers, *KEY_VARIABLES, "demo"}))
            yield Broken(path, f"names unknown provider {without_keys(provider)!r}", f"there are: {known}")
        elif text in seen:
            yield Broken(path, f"holds {shown}, which would be asked after it has failed", "take it out of the list")
        seen.add(text)


def _thinking_values(entry: ProviderEntry) -> Iterator[tuple[tuple[str, ...], str | int]]:
    if isinstance(entry.thinking, str | int):
        yield ("thinking",), entry.thinking
    for model, value in entry.thinking.items() if isinstance(entry.thinking, dict) else ():
        yield ("thinking", model), value


def _base_problem(address: str) -> str | None:
    problem = _address_problem(address)
    if problem is None and ("?" in address or "#" in address):
        return "must end with its path: what follows ? or # would stand in the middle of every address made from it"
    return problem


def sends_in_clear(address: str, proxy: str | None) -> bool:
    """Whether others could read what is sent to the address: plain http, to anything but this machine itself.

    Args:
        proxy: of the settings. One that the request would go through, from wherever, reads it as well.
    """
    if not address.startswith("http://"):
        return False
    from openheim._http.addresses import is_loopback

    if not is_loopback(address):
        return True
    from urllib.parse import urlsplit

    from openheim._http.proxies import proxy_for

    parts = urlsplit(address)
    return proxy_for("http", parts.hostname or "", parts.port or 80, proxy) is not None


def _address_problem(address: str) -> str | None:
    from openheim._http.addresses import address_problem

    return address_problem(address)


def readable_by_others(file: Path, values: Mapping[str, object]) -> bool:
    """Whether a file with a key in it may be read by other users of the machine."""
    providers = values.get("providers")
    if os.name != "posix" or not isinstance(providers, dict):
        return False
    if not any(isinstance(entry, dict) and isinstance(entry.get("api_key"), str) for entry in providers.values()):
        return False
    try:
        return bool(file.stat().st_mode & 0o077)
    except OSError:
        return False
