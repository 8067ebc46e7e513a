"""Layers of settings: each comes from one source, and a later one wins key by key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("Layer", "Place", "merge_layers", "place_of")


@dataclass(frozen=True, slots=True)
class Layer:
    """Settings from one source. ``name`` says which: ``user``, ``environment``, ``flags``."""

    name: str
    # May hold keys, so they are not shown.
    values: Mapping[str, Any] = field(repr=False)
    file: Path | None = None


class Place(NamedTuple):
    """Where a value was given: a file and line, a variable, or words for settings that a program passes in."""

    source: str
    line: int | None = None

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}, line {self.line}"


def merge_layers(layers: Sequence[Layer]) -> dict[str, Any]:
    """The values of all layers, the last one winning. Tables are merged, everything else is replaced."""
    merged: dict[str, Any] = {}
    for layer in layers:
        _merge(merged, layer.values)
    return merged


def _merge(into: dict[str, Any], values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        known = into.get(key)
        if isinstance(value, Mapping):
            if not isinstance(known, dict):
                known = into[key] = {}
            _merge(known, value)
        else:
            into[key] = value


def place_of(layers: Sequence[Layer], path: Sequence[str | int]) -> Place | None:
    """Where the value at ``path`` comes from, or the innermost table on the way to it; None if nobody gave either."""
    keys = [part for part in path if isinstance(part, str)]
    while keys:
        for layer in reversed(layers):
            value = _value_at(layer.values, keys)
            if value is None:
                continue
            if layer.file is not None:
                from openheim.config.lines import line_of

                return Place(str(layer.file), line_of(layer.file, keys))
            if layer.name != "environment":
                return Place("the settings given")
            is_table = isinstance(value, Mapping)
            return Place("the environment" if is_table else f"OPENHEIM_{'__'.join(keys).upper()}")
        keys.pop()
    return None


def _value_at(values: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        if not isinstance(values, Mapping):
            return None
        values = values.get(key)
    return values
