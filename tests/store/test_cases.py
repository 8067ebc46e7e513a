"""The cases of ``tests/cases/history``: session files as crashes and other programs leave them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from openheim.store import HistoryStore
from tests.store.contenders import run_workers
from tests.store.stores import ID, texts, user

FOLDER = Path(__file__).parents[1] / "cases" / "history"
CASES = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
FILES = {name: case for name, case in CASES.items() if "jsonl" in case}


@pytest.mark.parametrize("name", FILES)
def test_case(name: str, store: HistoryStore) -> None:
    case = FILES[name]
    expect: dict[str, Any] = case["expect"]
    path = store.log_path(ID)
    shutil.copy(FOLDER / case["jsonl"], path)
    store.write_meta(store.load(ID).meta)
    before = path.read_bytes()
    loaded = store.load(ID)
    shown = [message.text for message in loaded.messages]
    assert expect["loadable"]
    assert shown == expect.get("loaded_text", shown)
    assert set(expect.get("loaded_text_includes", ())) <= set(shown)
    if "warns" in expect:
        assert bool(loaded.warnings) == expect["warns"]
    assert path.read_bytes() == before, "reading changed the file"
    store.log(ID).append(user("APPENDED"))
    assert texts(store) == expect.get("after_append_loadable_text", [*shown, "APPENDED"])
    assert path.read_bytes().startswith(before[: loaded.position.end]), "whole lines were rewritten"


def test_two_writers_at_once(store: HistoryStore) -> None:
    """Case hi10: a writer that finds the session in use is refused and tries again, and no line is lost."""
    scenario = CASES["hi10"]["scenario"]
    writers, each = scenario["writers"], scenario["messages_each"]
    run_workers("append", store.folder, writers, str(each))
    lines = store.log_path(ID).read_bytes().splitlines()
    assert sorted(json.loads(line)["id"] for line in lines) == sorted(
        f"{writer}-{number}" for writer in range(writers) for number in range(each)
    )
    assert not store.lock_path(ID).exists()


def test_every_case_is_run() -> None:
    assert set(CASES) - set(FILES) == {"hi10"}
