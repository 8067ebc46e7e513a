"""Trees of files, and searching them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from openheim.testing import FakeTurn
from tests.tools_fs.calls import call

__all__ = ("found", "write_tree")


def write_tree(work: Path, tree: Mapping[str, str | bytes]) -> None:
    for name, content in tree.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


async def found(turn: FakeTurn, pattern: str, **arguments: Any) -> list[str]:
    return (await call(turn, "search", pattern=pattern, **arguments)).splitlines()
