"""The modes of sessions, by name."""

from __future__ import annotations

from openheim.config.models import resolve_mode
from openheim.config.schema import MODES
from openheim.errors import ConfigError

__all__ = ("known_mode",)


def known_mode(name: str) -> str:
    """The stored name of a mode; ``code`` and ``architect`` are older names of two.

    Raises:
        ConfigError: there is no such mode.
    """
    mode = resolve_mode(name)
    if mode is None:
        from openheim.config.masking import without_keys

        raise ConfigError(f"unknown mode {without_keys(name)!r}", hint=f"choose one of {', '.join(MODES)}")
    return mode
