"""Which provider and model a session uses: providers are made once and shared."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from openheim.agent.cancellation import slip_in_words, slipped
from openheim.config.selection import check_model, select_provider
from openheim.runtime.session import GIVEN_PROVIDER, ModelBinding

if TYPE_CHECKING:
    from collections.abc import Callable

    from openheim.config.load import LoadedConfig
    from openheim.config.selection import Selection
    from openheim.http import HttpClient
    from openheim.plugins.host import PluginHost
    from openheim.providers import Provider, ProviderSettings

__all__ = ("BoundProviders",)

#: Selections that are remembered: entries and models by name.
_KEPT = 256

_log = logging.getLogger(__name__)


class BoundProviders:
    """The providers in use.

    Args:
        http: gives the client that all share.
        report: told what a person should know about a choice, one line at a time.
    """

    def __init__(
        self, loaded: LoadedConfig, host: PluginHost, http: Callable[[], HttpClient], report: Callable[[str], None]
    ) -> None:
        self._loaded = loaded
        self._host = host
        self._http = http
        self._report = report
        self._providers: dict[str, tuple[Provider, ProviderSettings]] = {}
        self._selected: dict[tuple[str | None, str | None], tuple[str, str]] = {}
        #: Keys of the providers in use, which no child process may be given.
        self.secrets: set[str] = set()

    def bind(self, provider: str | Provider | None, model: str | None) -> ModelBinding:
        """Provider and model for a session. Raises as :meth:`openheim.Runtime.new_session` does."""
        if provider is not None and not isinstance(provider, str):
            return ModelBinding(provider, GIVEN_PROVIDER, _checked_model(provider, model, GIVEN_PROVIDER))
        selected = self._selected.get((provider, model)) or self._select(provider, model)
        name, chosen = selected
        created, settings = self._providers[name]
        return ModelBinding(created, name, chosen, settings.max_tokens, settings.thinking, settings.context_window)

    async def aclose(self) -> None:
        """Closes the providers that can be closed."""
        for name, (provider, _settings) in self._providers.items():
            close = getattr(provider, "aclose", None)
            if close is not None:
                try:
                    await close()
                except BaseException as err:
                    if not slipped(err):
                        raise
                    _log.warning("provider %s, being closed, %s", name, slip_in_words(err))

    def _select(self, provider: str | None, model: str | None) -> tuple[str, str]:
        selection = select_provider(
            self._loaded.config, provider=provider, model=model, installed=lambda: self._host.names("providers")
        )
        if selection.notice:
            self._report(selection.notice)
        name = selection.settings.name
        if name not in self._providers:
            settings = self._with_options(selection)
            if settings.api_key:
                self.secrets.add(settings.api_key)
            self._providers[name] = (self._host.create_provider(settings.kind, settings, self._http()), settings)
        selected = name, _checked_model(self._providers[name][0], selection.model, name)
        if not selection.notice and len(self._selected) < _KEPT:
            self._selected[provider, model] = selected
        return selected

    def _with_options(self, selection: Selection) -> ProviderSettings:
        """The entry with the plugin's own settings: checked now if the user gave some, else made when asked for."""
        settings = selection.settings

        def validated() -> Any:
            where = f"[providers.{settings.name}]"
            return self._host.validate_settings("providers", settings.kind, selection.options, where=where)

        given = validated() if selection.options else None
        return settings.with_options(given, validated)


def _checked_model(provider: Provider, model: str | None, name: str) -> str:
    """The model asked for, or the provider's default; refused if the provider says which it has and this is none."""
    model = model or provider.default_model
    known = getattr(provider, "known_models", ())
    if known:
        check_model(model, known, name)
    return model
