"""Checks values against the parts of JSON Schema that tool arguments and settings are described with.

Type, required, properties, additionalProperties, items, enum, const, bounds and lengths, anyOf, and the schemas
``true`` and ``false``. A keyword beyond these is left to whoever uses the value, so a schema is never stricter here
than it says. A full validator would cost more time at start than everything else that is imported.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ("Path", "problems", "shown_path")

#: Keys and indexes that lead to a value.
Path: TypeAlias = "tuple[str | int, ...]"

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
}

#: Levels of nesting, of values and of alternatives, that are checked.
_MAX_DEPTH = 32


def shown_path(path: Path) -> str:
    """``("a", "b", 0)`` as ``a.b[0]``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def problems(value: Any, schema: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """What is wrong with ``value``: the path to it and a phrase such as ``must be integer, not string``.

    Args:
        schema: a mapping, or ``True`` or ``False`` for anything and nothing. What is neither, here or in a keyword
            below, says nothing; it is never an error.
    """
    yield from _problems(value, schema, path, 0)


def _problems(value: Any, schema: Any, path: Path, depth: int) -> Iterator[tuple[Path, str]]:
    if schema is False:
        yield path, "is not allowed"
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return
    alternatives = schema.get("anyOf")
    if isinstance(alternatives, list) and alternatives:
        tried = [list(_problems(value, alternative, path, depth + 1)) for alternative in alternatives]
        if all(tried):
            yield from tried[0]
        return
    choices = schema.get("enum")
    if wrong_type := _type_problem(value, schema.get("type")):
        yield path, wrong_type
    elif isinstance(choices, list | tuple) and value not in choices:
        yield path, f"must be one of {', '.join(map(_shown, choices))}"
    elif "const" in schema and value != schema["const"]:
        yield path, f"must be {_shown(schema['const'])}"
    elif isinstance(value, dict):
        yield from _object_problems(value, schema, path, depth)
    elif isinstance(value, list | tuple):
        first = schema.get("prefixItems")
        described = len(first) if isinstance(first, list | tuple) else 0
        for index, item in enumerate(value):
            if index >= described:
                yield from _problems(item, schema.get("items"), (*path, index), depth + 1)
    else:
        yield from ((path, problem) for problem in _bound_problems(value, schema))


def _object_problems(
    value: dict[str, Any], schema: Mapping[str, Any], path: Path, depth: int
) -> Iterator[tuple[Path, str]]:
    known = schema.get("properties")
    known = known if isinstance(known, dict) else {}
    required = schema.get("required")
    for name in required if isinstance(required, list | tuple) else ():
        if isinstance(name, str) and name not in value:
            yield (*path, name), "is missing"
    # A pattern may describe any of the others, and patterns are not looked at here.
    others = True if "patternProperties" in schema else schema.get("additionalProperties")
    for name, item in value.items():
        yield from _problems(item, known.get(name, others), (*path, name), depth + 1)


def _type_problem(value: Any, wanted: Any) -> str | None:
    names = [wanted] if isinstance(wanted, str) else wanted if isinstance(wanted, list) else []
    if not names or any(_is_of_type(value, name) for name in names):
        return None
    found = next((name for name in _TYPES if _is_of_type(value, name)), type(value).__name__)
    return f"must be {' or '.join(map(str, names))}, not {found}"


def _is_of_type(value: Any, name: Any) -> bool:
    kinds = _TYPES.get(name) if isinstance(name, str) else None
    if kinds is None:
        return True
    if isinstance(value, bool):
        return bool(name == "boolean")
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, kinds)


def _bound_problems(value: Any, schema: Mapping[str, Any]) -> Iterator[str]:
    def bound(key: str) -> float | None:
        limit = schema.get(key)
        return limit if isinstance(limit, int | float) and not isinstance(limit, bool) else None

    if isinstance(value, int | float) and not isinstance(value, bool):
        if (least := bound("minimum")) is not None and not value >= least:
            yield f"must be at least {least}"
        if (least := bound("exclusiveMinimum")) is not None and not value > least:
            yield f"must be more than {least}"
        if (most := bound("maximum")) is not None and not value <= most:
            yield f"must be at most {most}"
    if isinstance(value, str):
        if (least := bound("minLength")) is not None and len(value) < least:
            yield f"must have at least {least} characters"
        if (most := bound("maxLength")) is not None and len(value) > most:
            yield f"must have at most {most} characters"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)
