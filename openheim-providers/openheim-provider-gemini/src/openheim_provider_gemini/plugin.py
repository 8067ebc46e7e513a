"""What the entry points name. Everything else is imported when a provider or an embedder is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim import hookimpl

if TYPE_CHECKING:
    from openheim import Embedder, HttpClient, Provider, ProviderSettings
    from openheim_provider_gemini.settings import Settings

__all__ = ("Settings", "openheim_create_embedder", "openheim_create_provider")


@hookimpl
def openheim_create_provider(settings: ProviderSettings, http: HttpClient) -> Provider | None:
    from openheim_provider_gemini.provider import GeminiProvider

    return GeminiProvider(settings, http)


@hookimpl
def openheim_create_embedder(settings: ProviderSettings, model: str, http: HttpClient) -> Embedder | None:
    from openheim_provider_gemini.embedder import GeminiEmbedder

    return GeminiEmbedder(settings, model, http)


def __getattr__(name: str) -> Any:
    # Settings are a pydantic model, and most runs with this plugin have no settings of its own to check.
    if name == "Settings":
        from openheim_provider_gemini.settings import Settings

        return Settings
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
