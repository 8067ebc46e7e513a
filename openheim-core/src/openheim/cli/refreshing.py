"""Asks services for their models, for ``openheim models --refresh``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from openheim.cli.failures import warn
from openheim.cli.starting import note
from openheim.errors import OpenheimError
from openheim.masking import mask_secrets
from openheim.runtime.model_lists import ListSource, ask_for_models, store_models

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openheim.runtime import Runtime

__all__ = ("refresh_models",)

#: Seconds that a service may take to list its models.
REFRESH_TIMEOUT_SECS = 30.0


def refresh_models(runtime: Runtime, names: Sequence[str]) -> bool:
    """Asks the providers at the same time and keeps what they say; of one that does not answer, the old list stays.

    Returns:
        Whether all went well. What did not is told on stderr.
    """
    failed: list[str] = []

    async def refresh(name: str) -> None:
        settings = None
        try:
            provider, settings = runtime.provider(name)
            with anyio.fail_after(REFRESH_TIMEOUT_SECS):
                models = await ask_for_models(provider, name, warn)
            if models is None:
                note(f"provider {name!r} does not list its models")
                return
            source = ListSource(name, settings.kind, settings.api_base)
            store_models(runtime.loaded.data_dir, source, models, runtime.timestamp())
        except TimeoutError:
            failed.append(name)
            warn(f"provider {name!r}: no answer within {REFRESH_TIMEOUT_SECS:g} s")
        except OpenheimError as err:
            failed.append(name)
            warn(mask_secrets(f"provider {name!r}: {err}", settings))

    async def refresh_all() -> None:
        async with runtime, anyio.create_task_group() as group:
            for name in names:
                group.start_soon(refresh, name)

    anyio.run(refresh_all)
    return not failed
