"""What stands at the entry point ``demo`` of group ``openheim.providers``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openheim import hookimpl

if TYPE_CHECKING:
    from openheim import Provider

__all__ = ("openheim_create_provider",)


@hookimpl
def openheim_create_provider(kind: str) -> Provider | None:
    from openheim_provider_demo.provider import DemoProvider

    return DemoProvider() if kind == "demo" else None
