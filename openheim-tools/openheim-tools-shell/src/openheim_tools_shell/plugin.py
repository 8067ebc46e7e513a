"""What stands at the entry point ``shell`` of group ``openheim.tools``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openheim import hookimpl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openheim import Tool

__all__ = ("openheim_tools",)


@hookimpl
def openheim_tools() -> Sequence[Tool]:
    return []
