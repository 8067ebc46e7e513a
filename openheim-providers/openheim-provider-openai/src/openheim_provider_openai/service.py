"""The service of one entry of this plugin: the base of all wires, with its dialect and Azure's ways."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openheim import ConfigError
from openheim.service import HttpService
from openheim_provider_openai.dialect import dialect_of

if TYPE_CHECKING:
    from openheim import HttpClient, ProviderSettings
    from openheim_provider_openai.settings import Settings

__all__ = ("Service",)

_OPENAI_BASE = "https://api.openai.com/v1"


class Service(HttpService):
    """What the provider and the embedder of an entry have in common.

    Raises:
        ConfigError: as the base does, or Azure is asked without the version that its address needs.
    """

    options: Settings | None

    def __init__(self, kind: str, settings: ProviderSettings, http: HttpClient) -> None:
        own = _OPENAI_BASE if kind == "openai" or settings.api_base else ""
        options: Settings | None = settings.options if settings.has_own_options else None
        self.dialect = dialect_of(kind, settings.api_base.rstrip("/") or own, options)
        key_header = self.dialect.key_header
        is_openai = kind == "openai" or settings.api_base.rstrip("/") == _OPENAI_BASE
        variable = "OPENAI_API_KEY" if is_openai else ""
        super().__init__(settings, http, base=own, key_variable=variable, key_header=key_header)
        version = options.api_version if options is not None else None
        if "/openai/deployments/" in self.base and not version and key_header == "api-key":
            raise ConfigError(
                f"provider {settings.name!r} has the address of an Azure deployment and no api_version",
                hint=f'set api_version in [providers.{settings.name}], such as "2024-10-21", or use the address that '
                "ends in /openai/v1",
            )
        self._query = f"?api-version={version}" if version else ""

    def url(self, path: str) -> str:
        """See the base."""
        return f"{self.base}{path}{self._query}"
