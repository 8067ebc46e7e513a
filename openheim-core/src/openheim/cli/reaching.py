"""Whether the configured providers can be used and answer, for ``openheim doctor``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import anyio

from openheim.config.masking import without_keys
from openheim.config.selection import resolve_entry
from openheim.errors import AuthError, BillingError, OpenheimError, ProviderError, ServerError
from openheim.findings import Finding
from openheim.masking import mask_secrets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openheim.providers import Provider, ProviderSettings
    from openheim.runtime import Runtime

__all__ = ("examine_providers",)

#: Seconds that an answer of a provider may take.
REACH_TIMEOUT_SECS = 10.0


def examine_providers(runtime: Runtime, names: Sequence[str], *, offline: bool) -> list[Finding]:
    """One finding for each provider, in the order of ``names``. They are asked at the same time, unless ``offline``."""
    found: dict[str, Finding] = {}
    ready: dict[str, tuple[ProviderSettings, Provider]] = {}
    for name in names:
        settings = None
        try:
            settings, _options = resolve_entry(runtime.loaded.config, name, os.environ)
            provider, settings = runtime.provider(name)
            ready[name] = settings, provider
        except OpenheimError as err:
            found[name] = Finding(f"provider {name}", "problem", mask_secrets(str(err), settings))
    if offline:
        for name, (settings, _provider) in ready.items():
            found[name] = Finding(f"provider {name}", "ok", f"{_described(settings)}, not tried")
    elif ready:

        async def ask(name: str) -> None:
            found[name] = await _ask(runtime, *ready[name])

        async def ask_all() -> None:
            async with runtime, anyio.create_task_group() as group:
                for name in ready:
                    group.start_soon(ask, name)

        anyio.run(ask_all)
    return [found[name] for name in names]


def _described(settings: ProviderSettings) -> str:
    return f"kind {without_keys(settings.kind)}, {'key found' if settings.api_key else 'no key'}"


async def _ask(runtime: Runtime, settings: ProviderSettings, provider: Provider) -> Finding:
    subject, described = f"provider {settings.name}", _described(settings)
    try:
        with anyio.fail_after(REACH_TIMEOUT_SECS):
            if hasattr(provider, "models"):
                model = settings.default_model or provider.default_model
                finding = await _ask_for_models(subject, described, provider, model)
            elif settings.api_base:
                finding = await _ask_without_key(subject, described, runtime, settings.api_base)
            else:
                finding = Finding(subject, "note", f"{described}, not tried: it cannot be asked without a prompt")
    except TimeoutError:
        finding = Finding(subject, "problem", f"{described}, no answer within {REACH_TIMEOUT_SECS:g} s")
    except OpenheimError as err:
        finding = _failed(subject, described, err)
    except (Exception, SystemExit) as err:  # whatever a plugin raises is what is wrong with it
        finding = Finding(subject, "problem", f"{described}, its plugin failed: {type(err).__name__}: {err}")
    return Finding(subject, finding.status, mask_secrets(finding.detail, settings))


async def _ask_for_models(subject: str, described: str, provider: Provider, model: str) -> Finding:
    listed = [info.id for info in await provider.models()]  # type: ignore[attr-defined]  # optional, and it is there
    detail = f"{described}, reached, {len(listed)} model{'' if len(listed) == 1 else 's'}"
    if not model:
        return Finding(subject, "note", f"{detail}, no default_model: each session has to name one")
    if listed and model not in listed:
        # Some servers take any name, and some do not list all that they have.
        return Finding(subject, "note", f"{detail}, {model!r} not among them")
    return Finding(subject, "ok", detail)


async def _ask_without_key(subject: str, described: str, runtime: Runtime, address: str) -> Finding:
    # Any answer shows that the service is there.
    async with runtime.http.stream("GET", f"{address}/models", timeout_secs=REACH_TIMEOUT_SECS) as response:
        return Finding(subject, "ok", f"{described}, reached (HTTP {response.status} without a key)")


def _failed(subject: str, described: str, err: OpenheimError) -> Finding:
    if isinstance(err, AuthError | BillingError | ServerError):
        return Finding(subject, "problem", f"{described}, reached, and refused: {err}")
    if isinstance(err, ProviderError) and err.status is not None:
        # Not every service lists its models, and a busy one is there.
        return Finding(subject, "note", f"{described}, reached, without a list of models: {err}")
    return Finding(subject, "problem", f"{described}, not reached: {err}")
