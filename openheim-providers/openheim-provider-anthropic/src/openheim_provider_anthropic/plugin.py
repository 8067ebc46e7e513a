"""What the entry point names. Everything else is imported when a provider is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim import hookimpl

if TYPE_CHECKING:
    from openheim import HttpClient, Provider, ProviderSettings
    from openheim_provider_anthropic.settings import Settings

__all__ = ("Settings", "openheim_create_provider")


@hookimpl
def openheim_create_provider(kind: str, settings: ProviderSettings, http: HttpClient) -> Provider | None:
    from openheim_provider_anthropic.provider import AnthropicProvider

    return AnthropicProvider(settings, http)


def __getattr__(name: str) -> Any:
    # Settings are a pydantic model, and most runs with this plugin have no settings of its own to check.
    if name == "Settings":
        from openheim_provider_anthropic.settings import Settings

        return Settings
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
