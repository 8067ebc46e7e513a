"""Every setting with its value and where that comes from, fit to be shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openheim.config.layers import Origin, merge_layers, origin_of, settings_in
from openheim.config.masking import masked
from openheim.config.schema import SCHEMA

if TYPE_CHECKING:
    from openheim.config.load import LoadedConfig

__all__ = ("Described", "described")


@dataclass(frozen=True, slots=True)
class Described:
    """One setting. ``value`` is masked where it may be a secret; None is for one that is not set and has no default."""

    path: tuple[str, ...]
    value: Any
    origin: Origin


def described(loaded: LoadedConfig) -> Iterator[Described]:
    """The settings in force by their names: what some layer says, and the defaults of what none does."""
    values = merge_layers(loaded.layers)
    found = dict(settings_in(values))
    for path, default in _defaults(SCHEMA, values, ()):
        # A table that is empty stands for the keys that it could have.
        if not any(given[: len(path)] == path for given in found):
            found[path] = default
    for path in sorted(found):
        yield Described(path, masked(path, found[path]), origin_of(loaded.layers, path))


def _defaults(
    schema: Mapping[str, Any], values: Any, path: tuple[str, ...], *, chosen: bool = False
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Defaults of the core's keys. Under a name that somebody chose only those that are something."""
    for key, inner in schema.get("properties", {}).items():
        here = (*path, key)
        given = values.get(key) if isinstance(values, Mapping) else None
        others = inner.get("additionalProperties")
        if "properties" in inner and not chosen:
            yield from _defaults(inner, given, here)
        elif isinstance(others, dict) and "properties" in others and isinstance(given, Mapping):
            for name, table in given.items():
                yield from _defaults(others, table, (*here, name), chosen=True)
        elif inner.get("type") != "object" and (inner.get("default") or not chosen):
            yield here, inner.get("default")
