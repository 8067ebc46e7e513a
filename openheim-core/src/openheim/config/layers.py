"""Settings from several sources, one over the other.

A later layer wins key by key: tables are merged, everything else is replaced. Two things differ. Lists that grant or
refuse (:data:`JOINED`) are joined, so that no layer takes away what another one denies. And a key's source
(``api_key``) is replaced as a whole, since half of one and half of another would be neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("JOINED", "Layer", "Origin", "Place", "lookup", "merge_layers", "origin_of", "place_of", "settings_in")

#: Lists that are joined over all layers.
JOINED = frozenset((("permissions", "allow"), ("permissions", "deny"), ("plugins", "disable")))

_WHOLE = "api_key"


@dataclass(frozen=True, slots=True)
class Layer:
    """Settings from one source.

    Args:
        name: ``user``, ``project``, ``local``, ``environment``, ``flags`` or ``policy``.
        values: nested tables, as TOML has them.
        file: where they were read, if from a file.
    """

    name: str
    values: Mapping[str, Any] = field(repr=False)
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from. ``layer`` is ``default`` for one that nobody set."""

    layer: str
    file: Path | None = None
    line: int | None = None


class Place(NamedTuple):
    """Where a value was given, for messages.

    Args:
        source: a file's path, a variable, or the layer's name in words.
        line: in the file, as far as that is known.
        file: the file itself, if it is one.
    """

    source: str
    line: int | None = None
    file: Path | None = None

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}, line {self.line}"


def merge_layers(layers: Sequence[Layer]) -> dict[str, Any]:
    """The values of all layers."""
    merged: dict[str, Any] = {}
    for layer in layers:
        _merge(merged, layer.values, ())
    return merged


def _merge(into: dict[str, Any], values: Mapping[str, Any], path: tuple[str, ...]) -> None:
    for key, value in values.items():
        known = into.get(key)
        here = (*path, key)
        if isinstance(value, Mapping) and key != _WHOLE:
            if not isinstance(known, dict):
                known = into[key] = {}
            _merge(known, value, here)
        elif here in JOINED and isinstance(value, list) and isinstance(known, list):
            into[key] = known + [item for item in value if item not in known]
        else:
            into[key] = value


def lookup(values: Mapping[str, Any], path: Sequence[str]) -> Any:
    """The value at ``path``.

    Raises:
        KeyError: there is none.
    """
    node: Any = values
    for key in path:
        if not isinstance(node, Mapping):
            raise KeyError(key)
        node = node[key]
    return node


def settings_in(values: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Path and value of everything that is no table, and of tables that are empty."""
    for key, value in values.items():
        here = (*path, key)
        if isinstance(value, Mapping) and value:
            yield from settings_in(value, here)
        else:
            yield here, value


def origin_of(layers: Sequence[Layer], path: Sequence[str]) -> Origin:
    """Where the value at ``path`` comes from: the last layer that has it."""
    for layer in reversed(layers):
        try:
            lookup(layer.values, path)
        except KeyError:
            continue
        if layer.file is None:
            return Origin(layer.name)
        from openheim.config.lines import line_of

        return Origin(layer.name, layer.file, line_of(layer.file, path))
    return Origin("default")


def place_of(layers: Sequence[Layer], path: Sequence[str | int]) -> Place | None:
    """Where the value at ``path`` was given, in the last layer that has it, or else what holds it; None if nobody did.

    Places in lists count as the list.
    """
    keys = [part for part in path if isinstance(part, str)]
    for length in range(len(keys), 0, -1):
        for layer in reversed(layers):
            try:
                lookup(layer.values, keys[:length])
            except KeyError:
                continue
            return _place(layer, keys, length)
    return None


def _place(layer: Layer, keys: Sequence[str], given: int) -> Place:
    if layer.file is not None:
        from openheim.config.lines import line_of

        return Place(str(layer.file), line_of(layer.file, keys), layer.file)
    if layer.name != "environment":
        return Place(f"the {layer.name}")
    from openheim.config.environment import variable_of

    return Place(variable_of(keys[:given]))
