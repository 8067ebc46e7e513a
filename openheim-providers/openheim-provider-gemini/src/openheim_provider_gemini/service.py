"""Where the service is and how it is spoken to: what the provider and the embedder have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim import ConfigError, classify_error, read_document
from openheim.headers import credential_headers

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractAsyncContextManager

    from openheim import HttpClient, HttpResponse, ProviderError, ProviderSettings
    from openheim_provider_gemini.settings import Settings

__all__ = ("Service", "resource_path")

_BASE = "https://generativelanguage.googleapis.com/v1beta"
_KEY_VARIABLE = "GEMINI_API_KEY"


class Service:
    """One entry of kind ``gemini``.

    The key goes into a header: addresses end up in logs and in errors.

    Raises:
        ConfigError: Google itself is asked without a key, or ``extra_headers`` would send a credential over plain http.
    """

    def __init__(self, settings: ProviderSettings, http: HttpClient) -> None:
        options: Settings | None = settings.options if settings.has_own_options else None
        where = f"[providers.{settings.name}]"
        self.settings = settings
        self.base = settings.api_base.rstrip("/") or _BASE
        self.extra_body: Mapping[str, Any] = {}
        self._http = http
        self._key_variable = settings.key_variable or (_KEY_VARIABLE if self.base == _BASE else "")
        if self.base == _BASE and not settings.api_key:
            raise ConfigError(
                f"provider {settings.name!r} has no key",
                hint=f"set {self._key_variable}, or env_var or api_key in {where}",
            )
        self._headers = {"content-type": "application/json", "accept": "application/json"}
        if settings.api_key:
            self._headers["x-goog-api-key"] = settings.api_key
        if options is not None:
            if self.base.lower().startswith("http:") and (secret := credential_headers(options.extra_headers)):
                raise ConfigError(
                    f"provider {settings.name!r} would send {', '.join(secret)} over plain http, in clear",
                    hint=f"use an https address, or take them out of extra_headers in {where} for a local server",
                )
            self._headers |= options.extra_headers
            self.extra_body = options.extra_body

    def post(
        self, path: str, content: bytes, *, accept: str = "application/json"
    ) -> AbstractAsyncContextManager[HttpResponse]:
        """A request with a body; entered with ``async with``."""
        headers = self._headers | {"accept": accept}
        timeout = self.settings.timeout_secs
        return self._http.stream("POST", f"{self.base}/{path}", headers=headers, content=content, timeout_secs=timeout)

    def get(self, path: str) -> AbstractAsyncContextManager[HttpResponse]:
        """A request without one."""
        headers = {name: value for name, value in self._headers.items() if name != "content-type"}
        timeout = self.settings.timeout_secs
        return self._http.stream("GET", f"{self.base}/{path}", headers=headers, timeout_secs=timeout)

    async def document(self, exchange: AbstractAsyncContextManager[HttpResponse]) -> dict[str, Any]:
        """The object that is the answer to a request.

        Raises:
            ProviderError: there is none.
        """
        async with exchange as response:
            return await read_document(response, _object, self.classified, entry=self.settings.name)

    def classified(self, response: HttpResponse, body: bytes) -> ProviderError:
        """The error that an answer stands for."""
        return classify_error(
            response.status, response.headers, body, settings=self.settings, key_variable=self._key_variable
        )


def _object(payload: Any) -> dict[str, Any] | None:
    return payload if isinstance(payload, dict) and not payload.get("error") else None


def resource_path(model: str) -> str:
    """A model in an address: ``models/NAME``, or as it is where it says its kind itself (``tunedModels/NAME``)."""
    from urllib.parse import quote

    return quote(model if "/" in model else f"models/{model}", safe="/")
