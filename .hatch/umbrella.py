"""Fills in the version, the dependencies and the extras of the umbrella distribution ``openheim``.

The extras stay readable in ``[tool.openheim.extras]`` of ``pyproject.toml``. What they turn into depends on the place:

- in a checkout each first-party distribution is a folder beside this one, and becomes ``name @ file://…``, so that
  ``pip install '.[all]'`` takes the checkout's own code and asks the index for none of these names;
- in a release (``OPENHEIM_RELEASE`` set to anything but ``0``) it becomes ``name==version``.

An sdist keeps what it was built with, so this hook has nothing to do there.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

VERSION_FILE = "openheim-core/src/openheim/__init__.py"


class UmbrellaMetadata(MetadataHookInterface):
    """One version for all first-party distributions, so every pin is the version of the core."""

    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        table = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["openheim"]
        version = core_version(root)
        folders = {} if os.environ.get("OPENHEIM_RELEASE", "0") not in ("", "0") else member_folders(root)

        def requirements(entries: list[str]) -> list[str]:
            return [requirement(entry, version, folders) for entry in entries]

        metadata["version"] = version
        metadata["dependencies"] = requirements(table["dependencies"])
        metadata["optional-dependencies"] = {name: requirements(entries) for name, entries in table["extras"].items()}


def core_version(root: Path) -> str:
    """The version that the core's package states."""
    found = re.search(r'^__version__ = "([^"]+)"$', (root / VERSION_FILE).read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise ValueError(f"{VERSION_FILE} states no __version__")
    return found[1]


def member_folders(root: Path) -> dict[str, Path]:
    """The folder of each first-party distribution in the checkout; a folder is named as its distribution."""
    found = [*root.glob("openheim-*/pyproject.toml"), *root.glob("openheim-*/openheim-*/pyproject.toml")]
    return {path.parent.name: path.parent for path in found}


def requirement(entry: str, version: str, folders: dict[str, Path]) -> str:
    """``entry`` is a distribution's name, with extras or without: ``openheim-tools-fs[re2]``."""
    folder = folders.get(entry.partition("[")[0])
    return f"{entry}=={version}" if folder is None else f"{entry} @ {folder.as_uri()}"
