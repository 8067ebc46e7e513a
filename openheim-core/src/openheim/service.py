"""The service of one provider entry: where it is, what every request to it carries, and what its refusals mean.

What all wires over HTTP have in common before and behind the wire itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from openheim.errors import ConfigError
from openheim.provider_errors import classify
from openheim.receiving import read_document

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from openheim.errors import ProviderError
    from openheim.http import HttpClient, HttpResponse
    from openheim.providers import ProviderSettings

__all__ = ("HttpService",)

T = TypeVar("T")


class HttpService:
    """Makes the requests of an entry whose plugin's settings build on
    :class:`~openheim.service_settings.ServiceSettings`.

    Args:
        settings: the entry.
        http: what all providers share.
        base: address of the plugin's own service, for entries without ``api_base``. That service wants a key.
            ``""`` for none.
        key_variable: the variable that usually holds the key for it.
        key_header: the header that carries the key, in lower case; ``authorization`` carries it as a bearer's.
        headers: of every request besides, with names in lower case. Those of the entry win over them.

    Attributes:
        settings: the entry.
        options: the plugin's own settings, or None if the entry has no such keys.
        base: the address, without a slash at its end.

    Raises:
        ConfigError: the entry has no address, the plugin's own service is asked without a key, or ``extra_headers``
            would send a credential over plain http.
    """

    def __init__(
        self,
        settings: ProviderSettings,
        http: HttpClient,
        *,
        base: str = "",
        key_variable: str = "",
        key_header: str = "authorization",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        where = f"[providers.{settings.name}]"
        self.settings = settings
        self.options: Any = settings.options if settings.has_own_options else None
        self.base = settings.api_base.rstrip("/") or base
        if not self.base:
            raise ConfigError(
                f"provider {settings.name!r} has no api_base",
                hint=f'set it in {where}, such as "http://localhost:8000/v1"',
            )
        self._http = http
        # Another service gets no key from it; where none was given at all, that is worth telling.
        is_told = self.base == base or not settings.api_key
        self._key_variable = settings.key_variable or (key_variable if is_told else "")
        if self.base == base and not settings.api_key:
            raise ConfigError(
                f"provider {settings.name!r} has no key",
                hint=f"set {self._key_variable}, or env_var or api_key in {where}",
            )
        self._headers = {"content-type": "application/json", "accept": "text/event-stream", **(headers or {})}
        if settings.api_key:
            self._headers[key_header] = ("Bearer " if key_header == "authorization" else "") + settings.api_key
        if self.options is not None and self.options.extra_headers:
            self._headers |= self._own_headers(self.options.extra_headers)

    @property
    def extra_body(self) -> Mapping[str, Any]:
        """The entry's own fields of requests for replies."""
        return self.options.extra_body if self.options is not None else {}

    def url(self, path: str) -> str:
        """The address of a path, which begins with a slash and may have a query."""
        return self.base + path

    def post(self, path: str, content: bytes, *, accept: str = "") -> AbstractAsyncContextManager[HttpResponse]:
        """An exchange: a request for a stream, or for what ``accept`` says."""
        headers = self._headers | {"accept": accept} if accept else self._headers
        return self._http.stream(
            "POST", self.url(path), headers=headers, content=content, timeout_secs=self.settings.timeout_secs
        )

    async def get(self, path: str, read: Callable[[Any], T | None]) -> T:
        """What the document at a path says; see :meth:`document`."""
        headers = {name: value for name, value in self._headers.items() if name != "content-type"}
        headers["accept"] = "application/json"
        timeout = self.settings.timeout_secs
        async with self._http.stream("GET", self.url(path), headers=headers, timeout_secs=timeout) as response:
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
        return classify(
            response.status, response.headers, body, settings=self.settings, key_variable=self._key_variable
        )

    def _own_headers(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        if self.base.lower().startswith("http:"):
            from openheim.headers import credential_headers

            if secret := credential_headers(headers):
                raise ConfigError(
                    f"provider {self.settings.name!r} would send {', '.join(secret)} over plain http, in clear",
                    hint="use an https address, or take them out of extra_headers in "
                    f"[providers.{self.settings.name}] for a local server",
                )
        return headers
