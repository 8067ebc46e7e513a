"""JSON Schemas in the form that OpenAI takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("is_strict", "itemised", "object_schema", "reply_schema")

#: What OpenAI refuses at the top of a schema.
_COMBINING = ("anyOf", "oneOf", "allOf", "not", "enum")

#: Keywords whose value is a schema, a list of them, or a mapping from names to them.
_ONE = (
    *("additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"),
    *("unevaluatedItems", "unevaluatedProperties"),
)
_MANY = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")

#: What is deeper, and what comes after so many schemas, stays as it is. A schema made by a program may hold itself.
_DEEPEST = 64
_MOST_SCHEMAS = 5000


def itemised(schema: Mapping[str, Any]) -> dict[str, Any]:
    """``schema`` with ``items`` in every array, without which OpenAI refuses it. It means the same."""
    whole: dict[str, Any] = _Itemiser().of(dict(schema), 0)
    return whole


def object_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """``schema`` as OpenAI takes it for parameters: an object, with properties, and no alternatives at the top.

    Alternatives are told as optional properties. Arguments are checked against the schema itself in any case.
    """
    reduced = {key: value for key, value in schema.items() if key not in _COMBINING and key != "$ref"}
    properties, required = _Members(schema).of(dict(schema), 0)
    reduced |= {"type": "object", "properties": properties}
    own = [name for name in _list(schema.get("required")) if isinstance(name, str)]
    if required or "required" in reduced:
        reduced["required"] = [*own, *sorted(required.difference(own))]
    return itemised(reduced)


def reply_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """``schema`` as the service takes it for a reply, or None if its top is not plainly an object, which is refused."""
    for _ in range(_DEEPEST):
        if "$ref" not in schema:
            break
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**_target(schema, schema["$ref"]), **rest}
    if schema.get("type") != "object" or any(key in schema for key in (*_COMBINING, "$ref")):
        return None
    return itemised(schema)


class _Itemiser:
    def __init__(self) -> None:
        self._left = _MOST_SCHEMAS

    def of(self, schema: Any, depth: int) -> Any:
        self._left -= 1
        if not isinstance(schema, dict) or depth > _DEEPEST or self._left < 0:
            return schema
        whole = dict(schema)
        if isinstance(whole.get("items"), list):
            # One schema for each place, as older drafts have it.
            whole["items"] = {"anyOf": whole["items"]} if whole["items"] else {}
        elif "array" in _types(whole):
            whole.setdefault("items", {})
        for key in _ONE:
            if key in whole:
                whole[key] = self.of(whole[key], depth + 1)
        for key in _MANY:
            if isinstance(whole.get(key), list):
                whole[key] = [self.of(inner, depth + 1) for inner in whole[key]]
        for key in _NAMED:
            if isinstance(whole.get(key), dict):
                whole[key] = {name: self.of(inner, depth + 1) for name, inner in whole[key].items()}
        return whole


class _Members:
    """Gathers what an object may hold from all the schemas that it is combined of."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = _MOST_SCHEMAS

    def of(self, schema: Any, depth: int, within: tuple[str, ...] = ()) -> tuple[dict[str, Any], set[str]]:
        """The properties of a schema, and those required; ``within`` are the references that led to it."""
        self._left -= 1
        if not isinstance(schema, dict) or depth > _DEEPEST or self._left < 0:
            return {}, set()
        own = schema.get("properties")
        properties = dict(own) if isinstance(own, dict) else {}
        required = {name for name in _list(schema.get("required")) if isinstance(name, str)}
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference not in within:
            found, wanted = self.of(_target(self._root, reference), depth + 1, (*within, reference))
            properties, required = {**found, **properties}, required | wanted
        for part in _list(schema.get("allOf")):
            found, wanted = self.of(part, depth + 1, within)
            properties, required = {**found, **properties}, required | wanted
        for key in ("anyOf", "oneOf"):
            variants = [self.of(variant, depth + 1, within) for variant in _list(schema.get(key))]
            if variants:
                required |= set.intersection(*(wanted for _, wanted in variants))
                properties = {**_alternatives([found for found, _ in variants]), **properties}
        return properties, required


def _alternatives(variants: list[dict[str, Any]]) -> dict[str, Any]:
    """The properties of all variants. One that differs between them may be any of what it is there."""
    gathered: dict[str, list[Any]] = {}
    for variant in variants:
        for name, schema in variant.items():
            known = gathered.setdefault(name, [])
            if schema not in known:
                known.append(schema)
    return {name: known[0] if len(known) == 1 else {"anyOf": known} for name, known in gathered.items()}


def _target(root: Mapping[str, Any], reference: Any) -> Mapping[str, Any]:
    """What a reference within the document stands for; nothing, if there is no such thing."""
    found: Any = dict(root)
    if not isinstance(reference, str) or not reference.startswith("#"):
        return {}
    for step in reference[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isdecimal() and len(name) < 10 and int(name) < len(found):
            found = found[int(name)]
        else:
            found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


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

_DEEPEST_STRICT = 5


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Whether a schema is one that the service can hold a reply to.

    That is an object at the top, with every property required and no others, and nothing out of the ordinary. Any
    other schema is only told to the model.
    """
    return schema.get("type") == "object" and "anyOf" not in schema and _is_strict(schema, 1)


def _is_strict(schema: Any, depth: int) -> bool:
    if not isinstance(schema, dict) or depth > _DEEPEST_STRICT or not schema.keys() <= _STRICT_WORDS:
        return False
    types = _types(schema)
    if "object" in types or "properties" in schema:
        properties = schema.get("properties")
        if not isinstance(properties, dict) or schema.get("additionalProperties") is not False:
            return False
        if set(schema.get("required") or ()) != properties.keys():
            return False
        if not all(_is_strict(inner, depth + 1) for inner in properties.values()):
            return False
    if ("array" in types or "items" in schema) and not _is_strict(schema.get("items"), depth + 1):
        return False
    if "anyOf" in schema and not all(_is_strict(inner, depth + 1) for inner in _list(schema["anyOf"])):
        return False
    return bool({"type", "enum", "const", "properties", "items", "anyOf"} & schema.keys())


def _types(schema: Mapping[str, Any]) -> list[Any]:
    named = schema.get("type")
    return named if isinstance(named, list) else [named]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
