from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from openheim.config import paths
from tests.cli.command import Command

Write = Callable[[str], Path]


@pytest.fixture
def write(own_environment: Path) -> Write:
    """Writes the user's config file."""

    def write(text: str) -> Path:
        own_environment.mkdir(parents=True, exist_ok=True)
        path = own_environment / "config.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """An empty repository."""
    root = tmp_path / "repository"
    (root / ".git").mkdir(parents=True)
    return root


@pytest.fixture
def openheim(tmp_path: Path, own_environment: Path) -> Command:
    """The command, in an empty folder."""
    folder = tmp_path / "work"
    folder.mkdir()
    return Command(folder, own_environment)


@pytest.fixture(autouse=True)
def no_system_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine may have a policy; it is not what these tests are about."""
    monkeypatch.setattr(paths, "SYSTEM_POLICY", None)


def put(path: Path, text: str) -> Path:
    """Writes a file, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
