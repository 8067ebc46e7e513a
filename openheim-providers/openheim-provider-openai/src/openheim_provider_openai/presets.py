"""What well-known services need that differs from OpenAI's own: a table, found by host, by usual port or by name.

``docs/reference/openai-compatible.md`` shows it. Whatever an entry sets itself wins over it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("NO_PRESET", "PRESETS", "Preset", "preset_for")

#: As a name: no preset, whatever the address.
NO_PRESET = "none"


class Preset(NamedTuple):
    """One service.

    Args:
        quirks: fields of :class:`~openheim_provider_openai.dialect.Dialect` that it changes.
        hosts: its hosts; one with a dot first stands for all hosts that end so.
        port: the port that its server listens on unless told otherwise.
    """

    quirks: Mapping[str, Any]
    hosts: tuple[str, ...] = ()
    port: int | None = None


#: Templates of many local models raise an error unless user and assistant take turns.
_TEMPLATED = {"wire": "chat", "max_tokens_field": "max_tokens", "strict_roles": True}

PRESETS: dict[str, Preset] = {
    "openai": Preset(
        {
            "max_tokens_field": "max_completion_tokens",
            "prompt_cache_key": True,
            "reduces_schemas": True,
            "images": None,
        },
        hosts=("api.openai.com",),
    ),
    "azure": Preset(
        {
            "max_tokens_field": "max_completion_tokens",
            "prompt_cache_key": True,
            "reduces_schemas": True,
            "key_header": "api-key",
            "images": None,
        },
        hosts=(".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com"),
    ),
    "openrouter": Preset(
        {"wire": "chat", "max_tokens_field": "max_tokens", "reasoning_details": True}, hosts=("openrouter.ai",)
    ),
    "deepseek": Preset(
        {
            "wire": "chat",
            "max_tokens_field": "max_tokens",
            "echo_reasoning": "reasoning_content",
            "response_format": "json_object",
        },
        hosts=("api.deepseek.com",),
    ),
    "mistral": Preset(
        {
            "wire": "chat",
            "max_tokens_field": "max_tokens",
            "strict_roles": True,
            "tool_id_pattern": "[a-zA-Z0-9]{9}",
            "stream_options": False,
        },
        hosts=("api.mistral.ai",),
    ),
    "groq": Preset({"wire": "chat", "max_tokens_field": "max_completion_tokens"}, hosts=("api.groq.com",)),
    "ollama": Preset({"wire": "chat", "max_tokens_field": "max_tokens"}, port=11434),
    "vllm": Preset(_TEMPLATED, port=8000),
    "lmstudio": Preset(_TEMPLATED, port=1234),
    "llamacpp": Preset(_TEMPLATED, port=8080),
}


def preset_for(api_base: str) -> str:
    """The name of the preset that fits an address, or ``""``. Ports count on plain http only, where local servers are.

    Args:
        api_base: base address of the service.
    """
    scheme, _, rest = api_base.lower().partition("://")
    # By hand: every start of a provider comes through here, and parsing addresses in general takes an import.
    place = rest.partition("/")[0].rpartition("@")[2]
    host, _, port = place.rpartition(":") if place.rstrip("0123456789").endswith(":") else (place, "", "")
    for name, preset in PRESETS.items():
        if any(host.endswith(known) if known[0] == "." else host == known for known in preset.hosts):
            return name
        if scheme == "http" and port and port == str(preset.port):
            return name
    return ""
