"""What is wrong with a JSON Schema itself, as far as its keywords are used here: a slip would let everything pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from openheim._jsonschema import Path

__all__ = ("schema_faults",)

_TYPE_NAMES = ("string", "integer", "number", "boolean", "array", "object", "null")

_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")

#: Keywords whose value is a schema, a list of schemas, or schemas by name.
_SCHEMAS = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_TABLES = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")

#: Levels that are looked at.
_MAX_DEPTH = 64


def schema_faults(schema: Any) -> Iterator[tuple[Path, str]]:
    """The path to each fault and a phrase such as ``must be an object``. Keywords that are not known say nothing."""
    yield from _faults(schema, schema, (), 0)


def _faults(schema: Any, root: Any, path: Path, depth: int) -> Iterator[tuple[Path, str]]:
    if isinstance(schema, bool) or depth > _MAX_DEPTH:
        return
    if not isinstance(schema, dict):
        yield path, "must be a schema: an object, true or false"
        return
    for keyword, (fits, words) in _SHAPES.items():
        if keyword in schema and not fits(schema[keyword]):
            yield (*path, keyword), words
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#") and not _leads_somewhere(reference, root):
        yield (*path, "$ref"), f"leads nowhere: {reference[:100]}"
    for keyword in _SCHEMAS:
        if keyword in schema and not (keyword == "items" and isinstance(schema[keyword], list)):
            yield from _faults(schema[keyword], root, (*path, keyword), depth + 1)
    for keyword in _LISTS:
        if isinstance(inner := schema.get(keyword), list):
            for index, item in enumerate(inner):
                yield from _faults(item, root, (*path, keyword, index), depth + 1)
    for keyword in _TABLES:
        if isinstance(inner := schema.get(keyword), dict):
            for name, item in inner.items():
                yield from _faults(item, root, (*path, keyword, name), depth + 1)


def _leads_somewhere(reference: str, root: Any) -> bool:
    """Whether a JSON Pointer (RFC 6901) finds something. Anchors (``#name``) are not looked for."""
    if reference == "#" or not reference.startswith("#/"):
        return True
    from urllib.parse import unquote

    place = root
    for part in unquote(reference[2:]).split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(place, dict) and name in place:
            place = place[name]
        elif isinstance(place, list) and name.isdecimal() and int(name) < len(place):
            place = place[int(name)]
        else:
            return False
    return True


def _is_type(value: Any) -> bool:
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and name in _TYPE_NAMES for name in names)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


_SHAPES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "type": (_is_type, f"must be one or several of {', '.join(_TYPE_NAMES)}"),
    "required": (_are_names, "must be a list of names"),
    "enum": (lambda value: isinstance(value, list), "must be a list of values"),
    "$ref": (lambda value: isinstance(value, str), "must be text"),
    **dict.fromkeys(_NUMBERS, (_is_number, "must be a number")),
    **dict.fromkeys(_COUNTS, (_is_count, "must be a number, 0 or more")),
    **dict.fromkeys(_LISTS, (_is_list, "must be a list of schemas")),
    **{keyword: (lambda value: isinstance(value, dict), "must be schemas by name") for keyword in _TABLES},
}
