"""Arguments made from a tool's schema: wrong ones, and ones that nobody expects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ("good_arguments", "odd_arguments", "types_of", "wrong_arguments")

_ODD_VALUES: dict[str, tuple[Any, ...]] = {
    "string": ("", " ", "\0", "../../outside", "é😀", "x" * 5000, "(", "-rf"),
    "integer": (0, -1, 2**31, 2**63),
    "number": (0.0, -1.5, 1e308),
    "boolean": (True, False),
    "array": ([],),
    "object": ({},),
}

_PLAIN_VALUES: dict[str, Any] = {
    "string": "x",
    "integer": 1,
    "number": 1.0,
    "boolean": False,
    "array": [],
    "object": {},
    "null": None,
}


def wrong_arguments(schema: Mapping[str, Any], sample: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Calls that cannot be right: required arguments left out or null, and each argument with one of a wrong type."""
    good = good_arguments(schema, sample)
    for name in schema.get("required", ()):
        yield {other: value for other, value in good.items() if other != name}
        types = types_of(schema.get("properties", {}).get(name, {}))
        if types and "null" not in types:
            yield {**good, name: None}
    for name, details in schema.get("properties", {}).items():
        types = types_of(details)
        # Where the schema states no type, the tool has to find out what it got: it is given an object.
        wrong = next((kind for kind in ("object", "array", "string") if kind not in types), None)
        if wrong is not None:
            yield {**good, name: {"unexpected": [1]} if wrong == "object" else _PLAIN_VALUES[wrong]}


def odd_arguments(schema: Mapping[str, Any], sample: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Calls of the right types with values at the edges, one odd value at a time."""
    good = good_arguments(schema, sample)
    for name, details in schema.get("properties", {}).items():
        for kind in types_of(details):
            for value in _ODD_VALUES.get(kind, ()):
                yield {**good, name: value}


def good_arguments(schema: Mapping[str, Any], sample: Mapping[str, Any]) -> dict[str, Any]:
    """The sample, or without one a value of the right type for each required argument."""
    if sample:
        return dict(sample)
    properties = schema.get("properties", {})
    return {name: _plain_value(properties.get(name, {})) for name in schema.get("required", ())}


def _plain_value(details: Mapping[str, Any]) -> Any:
    if details.get("enum"):
        return details["enum"][0]
    return _PLAIN_VALUES.get(next(iter(types_of(details)), "string"))


def types_of(details: Mapping[str, Any]) -> tuple[str, ...]:
    """The types that a property allows, or none where its schema does not say so in a simple way."""
    stated = details.get("type")
    if isinstance(stated, str):
        return (stated,)
    if isinstance(stated, list):
        return tuple(stated)
    return tuple(kind for choice in details.get("anyOf", ()) for kind in types_of(choice))
