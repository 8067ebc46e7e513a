from __future__ import annotations

from pathlib import Path

import pytest

from openheim.testing import FakeTurn
from openheim_tools_fs import matching


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    return work


@pytest.fixture
def turn(work: Path) -> FakeTurn:
    return FakeTurn(work)


@pytest.fixture(params=["re2", "re"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Everything holds with google-re2, and with Python's re where that is missing."""
    if request.param == "re":
        monkeypatch.setattr(matching, "_re2_module", lambda: None)
    else:
        pytest.importorskip("re2", reason="install openheim-tools-fs[re2]")
    return str(request.param)
