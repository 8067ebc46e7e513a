"""JSON Schemas in the form that OpenAI takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("is_strict", "object_schema")

#: What OpenAI refuses at the top of a schema of parameters.
_COMBINING = ("anyOf", "oneOf", "allOf", "not", "enum")


def object_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """``schema`` as OpenAI takes it for parameters: an object, with properties, and no alternatives at the top.

    Alternatives are told as optional properties. Arguments are checked against the schema itself in any case.
    """
    reduced = {key: value for key, value in schema.items() if key not in _COMBINING}
    reduced["type"] = "object"
    properties = dict(reduced.get("properties") or {})
    for key in ("allOf", "anyOf", "oneOf"):
        for variant in schema.get(key) or ():
            inner = variant.get("properties") if isinstance(variant, dict) else None
            if isinstance(inner, dict):
                properties = {**inner, **properties}
    reduced["properties"] = properties
    return reduced


#: What a strict schema may hold. The service knows some more; a schema with these only is surely taken.
_STRICT_WORDS = frozenset(
    (
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "const",
        "description",
        "title",
        "anyOf",
    )
)

_DEEPEST = 5


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Whether a schema is one that the service can hold a reply to.

    That is an object at the top, with every property required and no others, and nothing out of the ordinary. Any
    other schema is only told to the model.
    """
    return schema.get("type") == "object" and _is_strict(schema, 1)


def _is_strict(schema: Any, depth: int) -> bool:
    if not isinstance(schema, dict) or depth > _DEEPEST or not schema.keys() <= _STRICT_WORDS:
        return False
    if schema.get("type") == "object" or "properties" in schema:
        properties = schema.get("properties")
        if not isinstance(properties, dict) or schema.get("additionalProperties") is not False:
            return False
        if set(schema.get("required") or ()) != properties.keys():
            return False
        return all(_is_strict(inner, depth + 1) for inner in properties.values())
    if schema.get("type") == "array" or "items" in schema:
        return _is_strict(schema.get("items"), depth + 1)
    if "anyOf" in schema:
        return all(_is_strict(inner, depth + 1) for inner in schema["anyOf"])
    return bool({"type", "enum", "const"} & schema.keys())
