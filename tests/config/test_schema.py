"""The published schema and the typed settings say the same."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

import pytest

from openheim.config.models import Config, HttpSection, PermissionsSection, PriceSection, ProviderEntry
from openheim.config.schema import PROVIDER_SCHEMA, SCHEMA

PAIRS = [
    (SCHEMA, Config),
    (PROVIDER_SCHEMA, ProviderEntry),
    (PROVIDER_SCHEMA["properties"]["price"], PriceSection),
    (SCHEMA["properties"]["http"], HttpSection),
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
