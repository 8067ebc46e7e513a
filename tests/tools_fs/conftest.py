from __future__ import annotations

from pathlib import Path

import pytest

from openheim.testing import FakeTurn


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    return work


@pytest.fixture
def turn(work: Path) -> FakeTurn:
    return FakeTurn(work)
