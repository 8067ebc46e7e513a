"""Which provider and model a session uses, and what makes embeddings: each is made once and shared."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio

from openheim.agent.cancellation import slip_in_words, slipped
from openheim.config.selection import check_model, fallback_pairs, select_provider
from openheim.errors import ConfigError, PluginError
from openheim.messages import GIVEN_PROVIDER
from openheim.providers import ModelInfo

if TYPE_CHECKING:
    from collections.abc import Callable

    from openheim.config.load import LoadedConfig
    from openheim.config.selection import Selection
    from openheim.embeddings import Embedder
    from openheim.http import HttpClient
    from openheim.plugins.host import PluginHost
    from openheim.pricing import Price
    from openheim.providers import Provider, ProviderSettings

__all__ = (
    "BoundProviders",
    "ModelBinding",
)

#: How long one plugin may take to close what it has open.
CLOSE_SECS = 5.0

#: Selections that are remembered: entries and models by name.
_KEPT = 256

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class ModelBinding:
    """The provider and model of a session.

    Args:
        context_window: of the settings, else as the service lists it; None if neither says.
        max_output_tokens: what the model can write at most, as the service lists it, or None.
        price: what its tokens cost, if the settings say.
        cache: the provider's place for bytes made from the session's messages.
        fallbacks: who answers in its place, in this order, when it cannot.
    """

    provider: Provider
    provider_name: str
    model: str
    max_tokens: int | None = None
    thinking: str | int | None = None
    context_window: int | None = None
    max_output_tokens: int | None = None
    price: Price | None = None
    cache: dict[str, Any] = field(default_factory=dict)
    fallbacks: tuple[ModelBinding, ...] = ()


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
        self._embedder: Embedder | None = None
        self._listed: dict[str, dict[str, ModelInfo]] = {}
        self._selected: dict[tuple[str | None, str | None], tuple[str, str]] = {}
        #: Keys and other secrets of the providers in use, which no child process may be given.
        self.secrets: set[str] = set()

    def bind(self, provider: str | Provider | None, model: str | None) -> ModelBinding:
        """Provider and model for a session. Raises as :meth:`openheim.Runtime.new_session` does."""
        if provider is not None and not isinstance(provider, str):
            return ModelBinding(provider, GIVEN_PROVIDER, _checked_model(provider, model, GIVEN_PROVIDER))
        binding = self._bound(provider, model)
        pairs = fallback_pairs(self._loaded.config, binding.provider_name)
        if pairs:
            # The list is the entry's, whichever of its models is used; one that is used need not stand in for itself.
            own = binding.provider_name, binding.model
            binding.fallbacks = tuple(self._fallback(binding, *pair) for pair in pairs if pair != own)
        return binding

    def _bound(self, provider: str | None, model: str | None) -> ModelBinding:
        name, chosen = self._selected.get((provider, model)) or self._select(provider, model)
        created, settings = self._providers[name]
        listed = self._listed_model(name, chosen, settings)
        entry = self._loaded.config.providers.get(name)
        return ModelBinding(
            created,
            name,
            chosen,
            settings.max_tokens,
            entry.thinking_of(chosen) if entry is not None else None,
            settings.context_window if settings.context_window is not None else listed.context_window,
            listed.max_output_tokens,
            entry.price if entry is not None else None,
        )

    def _listed_model(self, name: str, model: str, settings: ProviderSettings) -> ModelInfo:
        """What the service has said of a model, when it was last asked."""
        if name not in self._listed:
            self._listed[name] = self._read_list(settings)
        return self._listed[name].get(model) or ModelInfo(model)

    def _read_list(self, settings: ProviderSettings) -> dict[str, ModelInfo]:
        if not (self._loaded.data_dir / "models").is_dir():
            return {}  # Nobody has ever asked, so that not even the module is needed.
        from openheim.runtime.model_lists import ListSource, read_models

        listed = read_models(self._loaded.data_dir, ListSource(settings.name, settings.kind, settings.api_base))
        return listed.models if listed is not None else {}

    def _fallback(self, binding: ModelBinding, provider: str, model: str) -> ModelBinding:
        try:
            return self._bound(provider, model)
        except (ConfigError, PluginError) as err:
            err.message = f"fallback of provider {binding.provider_name!r}: {err.message}"
            raise

    def provider(self, name: str) -> tuple[Provider, ProviderSettings]:
        """An entry's provider, whether or not a model is named for it. Raises as :meth:`bind`."""
        return self._made(select_provider(self._loaded.config, provider=name, installed=self._installed))

    def _installed(self) -> list[str]:
        return self._host.names("providers")

    def embedder(self) -> Embedder | None:
        """What makes embeddings, or None if the settings name nothing. Raises as :meth:`bind`."""
        memory = self._loaded.config.memory
        name, model = ((value or "").strip() for value in (memory.embedding_provider, memory.embedding_model))
        if self._embedder is None and name and model:
            selection = select_provider(
                self._loaded.config, provider=name, model=model, installed=lambda: self._host.names("providers")
            )
            settings = self._with_options(selection, "embeddings")
            self.secrets.update(settings.secrets)
            self._embedder = self._host.create_embedder(settings.kind, settings, model, self._http())
        return self._embedder

    async def aclose(self) -> None:
        """Closes the providers that can be closed, and the embedder."""
        closing: list[tuple[str, object]] = [
            (f"provider {name}", provider) for name, (provider, _settings) in self._providers.items()
        ]
        for what, one in [*closing, ("the embedder", self._embedder)]:
            close = getattr(one, "aclose", None)
            if close is not None:
                try:
                    with anyio.move_on_after(CLOSE_SECS) as waiting:
                        await close()
                    if waiting.cancelled_caught:
                        _log.warning("%s was not closed within %g s and is left behind", what, CLOSE_SECS)
                except BaseException as err:
                    if not slipped(err):
                        raise
                    _log.warning("%s, being closed, %s", what, slip_in_words(err))

    def _select(self, provider: str | None, model: str | None) -> tuple[str, str]:
        selection = select_provider(self._loaded.config, provider=provider, model=model, installed=self._installed)
        if selection.notice:
            self._report(selection.notice)
        name = selection.settings.name
        created, _settings = self._made(selection)
        selected = name, _checked_model(created, selection.model, name)
        if not selection.notice and len(self._selected) < _KEPT:
            self._selected[provider, model] = selected
        return selected

    def _made(self, selection: Selection) -> tuple[Provider, ProviderSettings]:
        name = selection.settings.name
        if name not in self._providers:
            settings = self._with_options(selection, "providers")
            self.secrets.update(settings.secrets)
            self._providers[name] = (self._host.create_provider(settings.kind, settings, self._http()), settings)
        return self._providers[name]

    def _with_options(self, selection: Selection, group: str) -> ProviderSettings:
        """The entry with the plugin's own settings: checked now if the user gave some, else made when asked for."""
        settings = selection.settings

        def validated() -> Any:
            where = f"[providers.{settings.name}]"
            return self._host.validate_settings(group, settings.kind, selection.options, where=where)

        given = validated() if selection.options else None
        return settings.with_options(given, validated)


def _checked_model(provider: Provider, model: str | None, name: str) -> str:
    """The model asked for, or the provider's default; refused if the provider says which it has and this is none."""
    model = model or provider.default_model
    if not model:
        raise ConfigError(
            f"no model is named for provider {name!r}, which has no default",
            hint=f"set default_model in [providers.{name}]; openheim models --refresh lists those that it has",
        )
    known = getattr(provider, "known_models", ())
    if known:
        check_model(model, known, name)
    return model
