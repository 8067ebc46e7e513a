"""Checks the settings of all layers: unknown keys, wrong values, rules that several keys make together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from openheim._jsonschema import problems
from openheim._slips import closest
from openheim.config.findings import Finding
from openheim.config.keys import shown_key
from openheim.config.layers import Layer, merge_layers, place_of
from openheim.config.models import Config
from openheim.config.paths import checked_path, expanded_path
from openheim.config.rules import Broken, broken_rules, doubts
from openheim.config.schema import PROVIDER_SCHEMA, SCHEMA, schema_at
from openheim.errors import ConfigError, UsageError

__all__ = ("Checked", "check_layers", "finding_at", "finding_of")

#: How alike a plugin's key and one of the core's must be to be called a slip.
_SLIP = 0.85


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of a check.

    Args:
        values: those of all layers together.
        config: the same with types, or None where an error stands in the way of that.
    """

    values: dict[str, Any]
    config: Config | None
    errors: list[Finding]
    warnings: list[Finding]


def check_layers(layers: Sequence[Layer]) -> Checked:
    """Puts the layers together and says what is wrong with them."""
    errors = [
        finding_at([layer], path, f"{shown_key(path)} {problem}", _hint(problem))
        for layer in layers
        for path, problem in problems(layer.values, SCHEMA)
        if _is_known(path)
    ]
    warnings = [finding for layer in layers for finding in _unknown_keys(layer)]
    values = merge_layers(layers)
    if errors:
        return Checked(values, None, errors, warnings)
    config = Config.from_values(values, partial(place_of, tuple(layers)))
    errors = [finding_of(layers, broken) for broken in broken_rules(config)]
    sound = not errors
    errors += [finding for layer in layers for finding in _unreadable_rules(layer)]
    errors += _unusable_values(layers, config)
    warnings += [finding_of(layers, broken) for broken in doubts(config)]
    warnings += _slips(layers, config)
    return Checked(values, config if sound else None, errors, warnings)


def _is_known(path: Sequence[str | int]) -> bool:
    """Whether there is such a setting. One that there is not is ignored, with a warning."""
    return schema_at([part for part in path if isinstance(part, str)]) is not None


def finding_of(layers: Sequence[Layer], broken: Broken) -> Finding:
    """A broken rule, with its place."""
    return finding_at(layers, broken.path, f"{shown_key(broken.path)} {broken.message}", broken.hint)


def finding_at(layers: Sequence[Layer], path: Sequence[str | int], message: str, hint: str = "") -> Finding:
    """A finding about the value at ``path``, placed in the last layer that has it, or what holds it."""
    key = shown_key(path)
    place = place_of(layers, path)
    if place is None:
        return Finding(message, key=key, hint=hint)
    if place.file is None:
        return Finding(message, key=key, source=place.source, hint=hint)
    return Finding(message, key=key, file=place.file, line=place.line, hint=hint)


def _hint(problem: str) -> str:
    if problem.startswith("must be array"):
        return 'write a list, such as ["one", "two"]'
    return "write true or false" if problem.startswith("must be boolean") else "correct that setting"


def _unreadable_rules(layer: Layer) -> Iterator[Finding]:
    """Permission rules that are none. Asked of each layer, since the lists of all are joined."""
    permissions = layer.values.get("permissions", {})
    for key in ("allow", "deny"):
        for index, text in enumerate(permissions.get(key, ())):
            from openheim.permissions.rules import parse_rule

            try:
                parse_rule(text)
            except UsageError as err:
                path = ("permissions", key)
                yield finding_at([layer], path, f"{shown_key((*path, index))}: {err.message}", err.hint)


def _unusable_values(layers: Sequence[Layer], config: Config) -> Iterator[Finding]:
    """Paths and addresses that cannot be written like that."""
    tests: list[tuple[tuple[str, ...], str | None, Callable[[str, str], object]]] = [
        (("work_dir",), config.work_dir, checked_path),
        (("data_dir",), config.data_dir, expanded_path),
        (("memory", "db_path"), config.memory.db_path, checked_path),
        (("http", "ca_file"), config.http.ca_file, expanded_path),
        (("http", "proxy"), config.http.proxy, _checked_proxy),
    ]
    for path, value, test in tests:
        if value:
            try:
                test(value, shown_key(path))
            except ConfigError as err:
                yield finding_at(layers, path, err.message, err.hint)


def _checked_proxy(address: str, where: str) -> object:
    from openheim._http.proxies import checked_proxy

    return checked_proxy(address, where)


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
