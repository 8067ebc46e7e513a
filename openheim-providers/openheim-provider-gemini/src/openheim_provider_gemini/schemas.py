"""JSON Schemas as the service takes them: fewer keywords, no references, a type everywhere.

The service takes JSON Schema (``parametersJsonSchema``, ``responseJsonSchema``), but knows a part of it only, and
refuses or ignores the rest. What is left out here is still checked: arguments are validated against the tool's own
schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ("reduced", "reduced_parameters")

#: Nodes of a reduced schema, after which what is left is only named by its type: references can make any number.
_MAX_NODES = 3000
_MAX_DEPTH = 32

#: How often a definition may contain itself.
_MAX_RECURRENCE = 2

_TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")
_FORMATS = {
    "string": ("date-time", "date", "time"),
    "number": ("float", "double"),
    "integer": ("int32", "int64"),
}

#: Any value, as far as it can be said.
_ANYTHING: tuple[str, ...] = ("string", "number", "boolean", "object")


def reduced(schema: Mapping[str, Any]) -> dict[str, Any]:
    """``schema`` without what the service does not take. It is finite, and made in bounded time."""
    return _Reducer(schema).reduce(schema, (), 0)


def reduced_parameters(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema of a tool's arguments, always of an object; None for a tool that takes none."""
    parameters = reduced(schema)
    if parameters.get("type") != "object":
        parameters = _one_object(parameters)
    if "properties" in parameters or schema.get("additionalProperties") or schema.get("patternProperties"):
        return parameters
    return None


class _Reducer:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._nodes = 0
        #: References and ``allOf`` that were followed.
        self._steps = 0

    def reduce(self, node: Any, within: tuple[str, ...], depth: int) -> dict[str, Any]:
        """One node, without changing it. ``within`` are the references that it is a part of."""
        self._nodes += 1
        if not isinstance(node, Mapping):
            return _anything()  # ``true``, or nothing that a schema may be
        node, within, again = self._resolved(node, within)
        outline = again or self._nodes > _MAX_NODES or depth > _MAX_DEPTH
        result = _outline(node) if outline else self._by_kind(node, within, depth)
        if isinstance(description := node.get("description"), str) and description.strip():
            result = {"description": description} | result
        return result

    def _by_kind(self, node: Mapping[str, Any], within: tuple[str, ...], depth: int) -> dict[str, Any]:
        enum = _enum_of(node)
        if enum is not None:
            return _enumeration(enum, _types_of(node))
        types = _types_of(node) or _implied_types(node)
        members = _list_of(node, "anyOf") or _list_of(node, "oneOf")
        if members and not (types and any(key in node for key in ("properties", "items"))):
            inherited = {"type": node["type"]} if "type" in node else {}
            choices = [
                self.reduce({**inherited, **member} if isinstance(member, Mapping) else member, within, depth + 1)
                for member in members
            ]
            return _any_of(choices)
        if not types:
            return _anything()
        return _any_of([self._typed(node, kind, within, depth) for kind in types])

    def _typed(self, node: Mapping[str, Any], kind: str, within: tuple[str, ...], depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {"type": kind}
        if node.get("format") in _FORMATS.get(kind, ()):
            result["format"] = node["format"]
        if kind in ("number", "integer"):
            result |= _limits(node, kind)
        elif kind == "array":
            result["items"] = self._items(node, within, depth)
            for key in ("minItems", "maxItems"):
                if type(node.get(key)) is int and node[key] >= 0:
                    result[key] = node[key]
        elif kind == "object":
            result |= self._fields(node, within, depth)
        return result

    def _items(self, node: Mapping[str, Any], within: tuple[str, ...], depth: int) -> dict[str, Any]:
        items = node.get("items")
        places = items if isinstance(items, list) else _list_of(node, "prefixItems")
        members = [*places, *([items] if isinstance(items, Mapping) else [])]
        return _any_of([self.reduce(member, within, depth + 1) for member in members]) if members else _anything()

    def _fields(self, node: Mapping[str, Any], within: tuple[str, ...], depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        properties = node.get("properties")
        if isinstance(properties, Mapping) and properties:
            result["properties"] = {
                str(name): self.reduce(inner, within, depth + 1) for name, inner in properties.items()
            }
            wanted = [name for name in _list_of(node, "required") if isinstance(name, str) and name in properties]
            if wanted:
                result["required"] = list(dict.fromkeys(wanted))
        others = node.get("additionalProperties")
        if isinstance(others, Mapping) and others:
            result["additionalProperties"] = self.reduce(others, within, depth + 1)
        return result

    def _resolved(
        self, node: Mapping[str, Any], within: tuple[str, ...], depth: int = 0
    ) -> tuple[Mapping[str, Any], tuple[str, ...], bool]:
        """The node with what it refers to and all of its ``allOf`` in it, and whether it contains itself too often.

        With it come the references that it is a part of, those in its ``allOf`` among them.
        """
        again = False
        while not again and self._steps < _MAX_NODES and depth < _MAX_DEPTH:
            reference = node.get("$ref")
            if isinstance(reference, str):
                again = within.count(reference) >= _MAX_RECURRENCE
                within = (*within, reference)
                target = _target(self._root, reference)
                node = _merged([{key: value for key, value in node.items() if key != "$ref"}, target])
            elif parts := [part for part in _list_of(node, "allOf") if isinstance(part, Mapping)]:
                # Each is resolved by itself: merged as they are, all but the first of their references would be lost.
                resolved = [self._resolved(part, within, depth + 1) for part in parts]
                node = _merged(
                    [{key: value for key, value in node.items() if key != "allOf"}, *(one[0] for one in resolved)]
                )
                within += tuple(dict.fromkeys(name for one in resolved for name in one[1][len(within) :]))
                again = any(one[2] for one in resolved)
            else:
                break
            self._steps += 1
        return node, within, again


def _target(root: Mapping[str, Any], reference: str) -> Mapping[str, Any]:
    """What a reference stands for; nothing, if it is not within the schema."""
    found: Any = root
    if not reference.startswith("#"):
        return {}
    for step in reference[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping):
            found = found.get(name)
        elif isinstance(found, list) and name.isdecimal() and len(name) < 10 and int(name) < len(found):
            found = found[int(name)]
        else:
            return {}
    return found if isinstance(found, Mapping) else {}


def _merged(parts: list[Mapping[str, Any]]) -> dict[str, Any]:
    """One schema for all of these; where two say something about the same, the first one counts."""
    merged: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            known = merged.get(key)
            if key == "properties" and isinstance(known, Mapping) and isinstance(value, Mapping):
                merged[key] = {**value, **known}
            elif key in ("required", "allOf") and isinstance(known, list) and isinstance(value, list):
                merged[key] = [*known, *value]
            else:
                merged.setdefault(key, value)
    return merged


def _outline(node: Mapping[str, Any]) -> dict[str, Any]:
    """A node by its type alone."""
    types = [kind for kind in _types_of(node) or _implied_types(node) if kind != "null"]
    return _bare(types[0]) if types else _anything()


def _bare(kind: str) -> dict[str, Any]:
    return {"type": kind, "items": _anything()} if kind == "array" else {"type": kind}


def _anything() -> dict[str, Any]:
    return {"anyOf": [{"type": kind} for kind in _ANYTHING]}


def _any_of(choices: list[dict[str, Any]]) -> dict[str, Any]:
    """One of the choices; those that are choices themselves are taken apart."""
    flat: list[dict[str, Any]] = []
    for choice in choices:
        nested = choice.get("anyOf")
        for one in nested if nested else [choice]:
            if one not in flat:
                flat.append(one)
    return flat[0] if len(flat) == 1 else {"anyOf": flat}


def _types_of(node: Mapping[str, Any]) -> list[str]:
    named = node.get("type")
    return [kind for kind in (named if isinstance(named, list) else [named]) if kind in _TYPES]


def _implied_types(node: Mapping[str, Any]) -> list[str]:
    if any(key in node for key in ("properties", "additionalProperties", "required")):
        # ``required`` alone is a condition on an object whose fields stand elsewhere.
        return ["object"]
    return ["array"] if "items" in node or "prefixItems" in node else []


def _list_of(node: Mapping[str, Any], key: str) -> list[Any]:
    value = node.get(key)
    return value if isinstance(value, list) else []


def _limits(node: Mapping[str, Any], kind: str) -> dict[str, Any]:
    limits = {key: node[key] for key in ("minimum", "maximum") if _is_number(node.get(key))}
    if kind == "integer":
        for key, other, step in (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)):
            if type(node.get(key)) is int:
                limits.setdefault(other, node[key] + step)
    return limits


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _enum_of(node: Mapping[str, Any]) -> list[Any] | None:
    if "const" in node:
        return [node["const"]]
    values = node.get("enum")
    return values if isinstance(values, list) and values else None


def _enumeration(values: list[Any], types: list[str]) -> dict[str, Any]:
    """A choice of values: of texts and numbers by name, of others by their type."""
    # An empty text in a list of values is refused.
    texts = [value for value in values if isinstance(value, str) and value]
    numbers = [value for value in values if _is_number(value)]
    choices: list[dict[str, Any]] = []
    if texts:
        choices.append({"type": "string", "enum": list(dict.fromkeys(texts))})
    elif "" in values:
        choices.append({"type": "string"})
    if numbers:
        whole = all(isinstance(value, int) for value in numbers) and "number" not in types
        choices.append({"type": "integer" if whole else "number", "enum": list(dict.fromkeys(numbers))})
    for kind, python_type in (("boolean", bool), ("object", Mapping), ("array", list), ("null", type(None))):
        if any(isinstance(value, python_type) for value in values):
            choices.append(_bare(kind))
    return _any_of(choices) if choices else _anything()


def _one_object(schema: dict[str, Any]) -> dict[str, Any]:
    """An object with the fields of all that it may be."""
    members = [member for member in schema.get("anyOf", ()) if member.get("type") == "object"]
    properties = {name: inner for member in reversed(members) for name, inner in member.get("properties", {}).items()}
    result: dict[str, Any] = {"type": "object"}
    if properties:
        result["properties"] = properties
        always = [name for name in properties if all(name in member.get("required", ()) for member in members)]
        if always:
            result["required"] = always
    return result
