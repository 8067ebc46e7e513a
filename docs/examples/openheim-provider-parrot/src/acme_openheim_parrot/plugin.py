from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim import hookimpl

if TYPE_CHECKING:
    from openheim import Provider, ProviderSettings


@hookimpl
def openheim_create_provider(settings: ProviderSettings) -> Provider:
    from acme_openheim_parrot.provider import Parrot

    return Parrot(settings.options.times)


def __getattr__(name: str) -> Any:
    # The settings model takes pydantic, so it is imported when openheim asks for it and not with the plugin.
    if name == "Settings":
        from acme_openheim_parrot.settings import ParrotSettings

        return ParrotSettings
    raise AttributeError(name)
