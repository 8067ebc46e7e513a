"""Checks the settings of all layers: unknown keys, wrong values, rules that several keys make together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from openheim._jsonschema import problems
from openheim.config.findings import Finding
from openheim.config.keys import shown_key
from openheim.config.layers import Layer, lookup, merge_layers
from openheim.config.models import Config
from openheim.config.rules import Broken, broken_rules, doubts
from openheim.config.schema import PROVIDER_SCHEMA, SCHEMA

__all__ = ("check_layers", "closest", "finding_at", "finding_of")

#: How alike a plugin's key and one of the core's must be to be called a slip.
_SLIP = 0.85


def check_layers(layers: Sequence[Layer]) -> tuple[dict[str, Any], list[Finding], list[Finding]]:
    """The values of all layers together, the errors in them, and the warnings."""
    errors = [
        finding_at([layer], path, f"{shown_key(path)} {problem}", _hint(problem))
        for layer in layers
        for path, problem in problems(layer.values, SCHEMA)
    ]
    warnings = [finding for layer in layers for finding in _unknown_keys(layer)]
    values = merge_layers(layers)
    if not errors:
        config = Config.from_values(values)
        errors += [finding_of(layers, broken) for broken in broken_rules(config)]
        warnings += [finding_of(layers, broken) for broken in doubts(config)]
        warnings += _slips(layers, config)
    return values, errors, warnings


def finding_of(layers: Sequence[Layer], broken: Broken) -> Finding:
    """A broken rule, with its place."""
    return finding_at(layers, broken.path, f"{shown_key(broken.path)} {broken.message}", broken.hint)


def finding_at(layers: Sequence[Layer], path: Sequence[str | int], message: str, hint: str = "") -> Finding:
    """A finding about the value at ``path``, placed in the last layer that has it, or what holds it."""
    keys = [part for part in path if isinstance(part, str)]
    key = shown_key(path)
    for length in range(len(keys), 0, -1):
        for layer in reversed(layers):
            try:
                lookup(layer.values, keys[:length])
            except KeyError:
                continue
            if layer.file is not None:
                from openheim.config.lines import line_of

                return Finding(message, key=key, file=layer.file, line=line_of(layer.file, keys), hint=hint)
            return Finding(message, key=key, source=_source(layer, keys[:length]), hint=hint)
    return Finding(message, key=key, hint=hint)


def _source(layer: Layer, keys: Sequence[str]) -> str:
    if layer.name != "environment":
        return f"the {layer.name}"
    from openheim.config.environment import variable_of

    return variable_of(keys)


def _hint(problem: str) -> str:
    if problem.startswith("must be array"):
        return 'write a list, such as ["one", "two"]'
    return "write true or false" if problem.startswith("must be boolean") else "correct that setting"


def closest(key: str, known: Sequence[str], cutoff: float = 0.6) -> str | None:
    """The known key that ``key`` is most likely a slip for."""
    from difflib import get_close_matches

    found = get_close_matches(key, known, 1, cutoff)
    return found[0] if found else None


def _unknown_keys(layer: Layer) -> Iterator[Finding]:
    def unknown(schema: Mapping[str, Any], values: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Finding]:
        known = schema.get("properties", {})
        others = schema.get("additionalProperties")
        for key, value in values.items():
            here = (*path, key)
            inner = known.get(key, others)
            if inner is False:
                near = closest(key, list(known))
                hint = f"did you mean {near}?" if near else ""
                yield finding_at([layer], here, f"unknown setting {shown_key(here)} is ignored", hint)
            elif isinstance(inner, Mapping) and isinstance(value, Mapping):
                yield from unknown(inner, value, here)

    return unknown(SCHEMA, layer.values, ())


def _slips(layers: Sequence[Layer], config: Config) -> Iterator[Finding]:
    """Keys of provider entries that the plugin is to answer for, and that look like one of the core's."""
    for name, entry in config.providers.items():
        for key in entry.options:
            near = closest(key, list(PROVIDER_SCHEMA["properties"]), _SLIP)
            if near is not None:
                path = ("providers", name, key)
                yield finding_at(layers, path, f"{shown_key(path)} is left to the plugin", f"did you mean {near}?")
