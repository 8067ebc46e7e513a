from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import Command


@pytest.fixture
def openheim(tmp_path: Path, own_environment: Path) -> Command:
    """The command, in an empty folder."""
    folder = tmp_path / "work"
    folder.mkdir()
    return Command(folder, own_environment)
