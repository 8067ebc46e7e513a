"""The service of one entry: where it is, what every request to it carries, and what its refusals mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from openheim import ConfigError, classify_error, read_document
from openheim.headers import credential_headers
from openheim_provider_openai.dialect import dialect_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from openheim import HttpClient, HttpResponse, ProviderError, ProviderSettings
    from openheim_provider_openai.settings import Settings

__all__ = ("Service",)

T = TypeVar("T")

_OPENAI_BASE = "https://api.openai.com/v1"
_KEY_VARIABLE = "OPENAI_API_KEY"


class Service:
    """What the provider and the embedder of an entry have in common.

    Raises:
        ConfigError: an entry of kind ``openai_compatible`` has no address, OpenAI itself is asked without a key, Azure
            without the version that its address needs, or ``extra_headers`` would send a credential over plain http.
    """

    def __init__(self, kind: str, settings: ProviderSettings, http: HttpClient) -> None:
        options: Settings | None = settings.options if settings.has_own_options else None
        base = settings.api_base.rstrip("/") or (_OPENAI_BASE if kind == "openai" else "")
        where = f"[providers.{settings.name}]"
        if not base:
            raise ConfigError(
                f"provider {settings.name!r} has no api_base",
                hint=f'set it in {where}, such as "http://localhost:8000/v1"',
            )
        self.key_variable = settings.key_variable or (_KEY_VARIABLE if base == _OPENAI_BASE else "")
        if base == _OPENAI_BASE and not settings.api_key:
            raise ConfigError(
                f"provider {settings.name!r} has no key",
                hint=f"set {self.key_variable}, or env_var or api_key in {where}",
            )
        self.settings = settings
        self.options = options
        self.dialect = dialect_of(kind, base, options)
        self._http = http
        self._base = base
        version = options.api_version if options is not None else None
        if "/openai/deployments/" in base and not version and self.dialect.key_header == "api-key":
            raise ConfigError(
                f"provider {settings.name!r} has the address of an Azure deployment and no api_version",
                hint=f'set api_version in {where}, such as "2024-10-21", or use the address that ends in /openai/v1',
            )
        self._query = f"?api-version={version}" if version else ""
        self._headers = {"content-type": "application/json", "accept": "text/event-stream"}
        if settings.api_key:
            header = self.dialect.key_header
            bearer = header == "authorization"
            self._headers[header] = f"Bearer {settings.api_key}" if bearer else settings.api_key
        if options is not None:
            if base.lower().startswith("http:") and (secret := credential_headers(options.extra_headers)):
                raise ConfigError(
                    f"provider {settings.name!r} would send {', '.join(secret)} over plain http, in clear",
                    hint=f"use an https address, or take them out of extra_headers in {where} for a local server",
                )
            self._headers |= options.extra_headers

    def post(self, path: str, content: bytes, *, accept: str = "") -> AbstractAsyncContextManager[HttpResponse]:
        """An exchange: a request for a stream, or for what ``accept`` says."""
        headers = self._headers | {"accept": accept} if accept else self._headers
        return self._http.stream(
            "POST", self._url(path), headers=headers, content=content, timeout_secs=self.settings.timeout_secs
        )

    async def get(self, path: str, read: Callable[[Any], T | None]) -> T:
        """What the document at a path says; see :meth:`document`."""
        headers = {name: value for name, value in self._headers.items() if name != "content-type"}
        headers["accept"] = "application/json"
        timeout = self.settings.timeout_secs
        async with self._http.stream("GET", self._url(path), headers=headers, timeout_secs=timeout) as response:
            return await self.document(response, read)

    async def document(self, response: HttpResponse, read: Callable[[Any], T | None]) -> T:
        """What an answer in one document says.

        Args:
            read: takes the decoded body; returns None if it is not what was asked for.

        Raises:
            ProviderError: the service refused, or answered with something else.
        """
        return await read_document(response, read, self.classified, entry=self.settings.name)

    def classified(self, response: HttpResponse, body: bytes) -> ProviderError:
        """The error that an answer stands for."""
        return classify_error(
            response.status, response.headers, body, settings=self.settings, key_variable=self.key_variable
        )

    def _url(self, path: str) -> str:
        return f"{self._base}{path}{self._query}"
