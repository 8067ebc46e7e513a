"""The reference pages name what there is, and nothing else."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

import openheim
from openheim import errors
from openheim.config.schema import SCHEMA
from openheim.plugins import hookspecs
from openheim.plugins.policy import unknown_keys
from openheim_tools_shell.settings import Settings as ShellSettings
from tests.docs.pages import CHECKOUT


def page(name: str) -> str:
    return (CHECKOUT / "docs" / "reference" / name).read_text(encoding="utf-8")


def keys_of(schema: dict[str, Any]) -> Iterator[str]:
    for name, inner in schema.get("properties", {}).items():
        yield name
        yield from keys_of(inner)
        others = inner.get("additionalProperties")
        yield from keys_of(others if isinstance(others, dict) else {})


@pytest.mark.parametrize("key", sorted(set(keys_of(SCHEMA))))
def test_every_setting_is_named(key: str) -> None:
    assert re.search(rf"[`\[]{key}[`\].]", page("configuration.md"))


def test_the_table_of_shell_commands_is_that_of_the_settings() -> None:
    """With their defaults, and the README says the same."""
    readme = (CHECKOUT / "openheim-tools" / "openheim-tools-shell" / "README.md").read_text(encoding="utf-8")
    for text in (page("configuration.md").split("### `[tools.shell]`")[1].split("\n### ")[0], readme):
        told = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", text.split("| key ")[1], re.MULTILINE))
        assert told == {name: shown(field.default) for name, field in ShellSettings.model_fields.items()}


def shown(default: object) -> str:
    if default == ():
        return "none"
    text = json.dumps(default).removesuffix(".0")
    return f"`{text}`" if isinstance(default, str) else text


def test_the_table_of_plugins_is_that_of_the_policy() -> None:
    table = page("configuration.md").split("## `[plugins]`")[1].split("\n## ")[0]
    named = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert len(named) == 5
    assert unknown_keys(dict.fromkeys(named)) == []


def test_types_of_hooks_come_from_where_the_page_says() -> None:
    functions = [member for name, member in inspect.getmembers(hookspecs) if name.startswith("openheim_")]
    annotations = " ".join(str(inspect.signature(function)) for function in functions)
    names = set(re.findall(r"\b[A-Z]\w+", annotations)) - {"None"}
    assert names - set(openheim.__all__) == {"Any", "Mapping", "Sequence"}


def test_errors_on_the_page_of_hooks_are_those_of_openheim() -> None:
    named = set(re.findall(r"`(\w+Error)`", page("hooks.md")))
    assert named
    assert named <= set(errors.__all__)
