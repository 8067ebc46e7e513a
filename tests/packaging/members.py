"""The distributions of this checkout."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]

#: Folders, from the checkout's root. A folder is named as its distribution.
MEMBERS = sorted(
    path.parent.relative_to(CHECKOUT)
    for pattern in ("openheim-*/pyproject.toml", "openheim-*/openheim-*/pyproject.toml")
    for path in CHECKOUT.glob(pattern)
)
PLUGINS = [member for member in MEMBERS if member.name != "openheim-core"]


def toml(path: str | Path) -> dict[str, Any]:
    return tomllib.loads((CHECKOUT / path).read_text(encoding="utf-8"))


def import_name(member: Path) -> str:
    return "openheim" if member.name == "openheim-core" else member.name.replace("-", "_")
