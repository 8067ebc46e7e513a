"""Config files that broke other agents, in real processes: ``tests/cases/config``."""

from __future__ import annotations

import base64
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Command

CASES = sorted((Path(__file__).parent.parent / "cases" / "config").glob("*.json"))


def values(openheim: Command) -> dict[str, Any]:
    ended = openheim("config", "show", "--json")
    assert ended.code == 0, ended.err
    return {key: entry["value"] for key, entry in ended.json["values"].items()}


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path, openheim: Command) -> None:
    case = json.loads(path.read_text())
    expect = case["expect"]
    file = openheim.home / "config.toml"
    handled: set[str] = set()

    def expected(*names: str) -> bool:
        handled.update(names)
        return names[0] in expect

    if expected("mode_after_create", "dir_mode_after_create", "under_umask"):
        # The keys of the file are set one by one, in a home folder that is not there yet.
        before = os.umask(int(expect["under_umask"], 8))
        try:
            for key, value in (("default_provider", "a"), ("providers.a.kind", "openai"), ("providers.a.api_key", "k")):
                assert openheim("config", "set", key, value).code == 0
        finally:
            os.umask(before)
        assert 'api_key = "k"' in file.read_text()
        assert stat.S_IMODE(file.stat().st_mode) == int(expect["mode_after_create"], 8)
        assert stat.S_IMODE(openheim.home.stat().st_mode) == int(expect["dir_mode_after_create"], 8)

    openheim.configure("")
    file.write_bytes(base64.b64decode(case["file_b64"]))

    if expected("loads"):
        assert openheim("config", "check").code == 0
    if expected("values"):
        found = values(openheim)
        assert {key: found[key] for key in expect["values"]} == expect["values"]
    if expected("warning_contains_all", "also_in_json_mode"):
        for arguments in (["config", "show"], ["run", "--provider", "demo", "--output", "json", "hello"]):
            ended = openheim(*arguments)
            assert ended.code == 0
            (warning,) = [line for line in ended.err.splitlines() if line.startswith("warning: ")]
            assert all(word in warning for word in expect["warning_contains_all"])
            assert "line 3" in warning
        assert ended.json["status"] == "completed"
    if expected("other_values_kept"):
        found = values(openheim)
        assert (found["default_provider"], found["providers.a.default_model"]) == ("a", "m")
        assert found["max_iterations"] == 10
    if expected("after_set", "file_equals_b64"):
        change = expect["after_set"]
        assert openheim("config", "set", change["key"], str(change["value"])).code == 0
        assert file.read_bytes() == base64.b64decode(expect["file_equals_b64"])
    if expected("plugins_and_config_commands_work"):
        for command in (["plugins", "list"], ["config", "show"], ["config", "check"], ["tools", "list"], ["models"]):
            assert openheim(*command).code == 0
        assert openheim("models", "--json").json["default_provider"] == "a"
    if expected("on_prompt_message_contains"):
        ended = openheim("run", "hello")
        assert ended.code == 2
        assert expect["on_prompt_message_contains"] in ended.error

    assert handled >= set(expect), f"not looked at: {set(expect) - handled}"
