"""What the entry points name. Everything else is imported when a provider is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim import hookimpl

if TYPE_CHECKING:
    from openheim import Embedder, HttpClient, Provider, ProviderSettings
    from openheim_provider_openai.settings import Settings

__all__ = ("Settings", "openheim_create_embedder", "openheim_create_provider")


@hookimpl
def openheim_create_provider(kind: str, settings: ProviderSettings, http: HttpClient) -> Provider | None:
    from openheim_provider_openai.provider import OpenAIProvider

    return OpenAIProvider(kind, settings, http)


@hookimpl
def openheim_create_embedder(kind: str, settings: ProviderSettings, model: str, http: HttpClient) -> Embedder | None:
    from openheim_provider_openai.embeddings import OpenAIEmbedder

    return OpenAIEmbedder(kind, settings, model, http)


def __getattr__(name: str) -> Any:
    # Settings are a pydantic model, and most runs with this plugin have no settings of its own to check.
    if name == "Settings":
        from openheim_provider_openai.settings import Settings

        return Settings
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
