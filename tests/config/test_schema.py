"""The published schema and the typed settings say the same."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

from openheim.config.models import (
    Config,
    ContextSection,
    HttpSection,
    McpServerEntry,
    MemorySection,
    PermissionsSection,
    PriceSection,
    ProviderEntry,
    SessionsSection,
    TuiSection,
)
from openheim.config.schema import MCP_SERVER_SCHEMA, PROVIDER_SCHEMA, SCHEMA
from tests.cli.command import Command

PUBLISHED = Path(__file__).parents[2] / "docs" / "reference" / "config.schema.json"

PAIRS = [
    (SCHEMA, Config),
    (PROVIDER_SCHEMA, ProviderEntry),
    (PROVIDER_SCHEMA["properties"]["price"], PriceSection),
    (MCP_SERVER_SCHEMA, McpServerEntry),
    (SCHEMA["properties"]["http"], HttpSection),
    (SCHEMA["properties"]["context"], ContextSection),
    (SCHEMA["properties"]["sessions"], SessionsSection),
    (SCHEMA["properties"]["memory"], MemorySection),
    (SCHEMA["properties"]["tui"], TuiSection),
    (SCHEMA["properties"]["permissions"], PermissionsSection),
]


@pytest.mark.parametrize(("schema", "kind"), PAIRS, ids=lambda value: getattr(value, "__name__", ""))
def test_the_same_keys_and_defaults(schema: dict[str, Any], kind: Any) -> None:
    properties = schema["properties"]
    known = {one.name: one.default for one in fields(kind)}
    known.pop("options", None)
    assert set(properties) == set(known)
    for name, default in known.items():
        said = properties[name].get("default")
        assert default is MISSING or default == (tuple(said) if isinstance(said, list) else said), name
        assert properties[name]["description"]


def test_the_sections_that_have_no_class_are_those_of_plugins() -> None:
    from openheim.plugins.policy import unknown_keys

    assert unknown_keys(SCHEMA["properties"]["plugins"]["properties"]) == []


def test_the_published_schema_is_the_command_s(openheim: Command) -> None:
    ended = openheim("config", "schema")
    assert (ended.code, ended.err) == (0, "")
    assert ended.json == json.loads(PUBLISHED.read_text(encoding="utf-8"))
    assert ended.out == PUBLISHED.read_text(encoding="utf-8"), (
        "openheim config schema > docs/reference/config.schema.json"
    )


def keywords(schema: Any) -> set[str]:
    if not isinstance(schema, dict):
        return set()
    inner = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return set(schema).union(*map(keywords, inner))


def test_the_schema_says_nothing_that_is_not_checked() -> None:
    # openheim._jsonschema knows these; what is beyond it is for editors, and openheim.config.rules checks it.
    checked = {"type", "properties", "additionalProperties", "items", "enum", "minimum", "maximum", "exclusiveMinimum"}
    said = {"$schema", "title", "description", "default"}
    assert keywords(SCHEMA) - checked - said == {"minProperties", "maxProperties"}
