"""Where the service is and how it is spoken to: what the provider and the embedder have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim.service import HttpService

if TYPE_CHECKING:
    from openheim import HttpClient, ProviderSettings

__all__ = ("answer_object", "resource_path", "service_of")

_BASE = "https://generativelanguage.googleapis.com/v1beta"


def service_of(settings: ProviderSettings, http: HttpClient) -> HttpService:
    """The service of an entry of kind ``gemini``. The key goes into a header: addresses end up in logs and in errors.

    Raises:
        ConfigError: as :class:`~openheim.service.HttpService` does.
    """
    return HttpService(settings, http, base=_BASE, key_variable="GEMINI_API_KEY", key_header="x-goog-api-key")


def answer_object(payload: Any) -> dict[str, Any] | None:
    """The object that a decoded answer is; None if it is none, or an error."""
    return payload if isinstance(payload, dict) and not payload.get("error") else None


def resource_path(model: str) -> str:
    """A model in an address: ``models/NAME``, or as it is where it says its kind itself (``tunedModels/NAME``)."""
    from urllib.parse import quote

    return quote(model if "/" in model else f"models/{model}", safe="/")
