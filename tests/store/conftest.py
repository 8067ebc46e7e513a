from __future__ import annotations

from pathlib import Path

import pytest

from openheim.store import HistoryStore
from tests.store.stores import made_store


@pytest.fixture
def store(tmp_path: Path) -> HistoryStore:
    return made_store(tmp_path)
