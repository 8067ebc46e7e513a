"""JSON Schemas in the forms that the service takes.

Tools are described by nearly any schema of draft 2020-12 that is an object at its top. What a reply has to match may
use much less. The original stays what arguments and replies are checked against.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from openheim.jsontext import dump_text

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("input_schema", "output_schema")

_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_TYPES = frozenset(("object", "array", "string", "integer", "number", "boolean", "null"))

#: Keywords whose value is a schema, a list of them, or a mapping from names to them.
_ONE = (
    *("additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"),
    *("unevaluatedItems", "unevaluatedProperties"),
)
_MANY = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")

_NUMBERS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"))

_DEEPEST = 64
_MOST_SCHEMAS = 2000

#: What schemas of replies may use beside those that are treated one by one below.
_OUTPUT_KEPT = frozenset(("title", "description", "enum", "const"))
_OUTPUT_DROPPED = frozenset(("$schema", "$id", "$defs", "definitions"))
_OUTPUT_FORMATS = frozenset(
    ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")
)


def input_schema(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a tool's arguments: an object, without alternatives at its top, by the rules of draft 2020-12."""
    schema = _cleaned(dict(parameters), 0)
    schema.pop("$schema", None)
    schema = _resolved(schema)
    for keyword in ("allOf", "anyOf", "oneOf"):
        if isinstance(branches := schema.pop(keyword, None), list):
            _join_branches(
                schema, [_resolved(branch, schema) for branch in branches if isinstance(branch, dict)], keyword
            )
    schema["type"] = "object"
    properties = schema.setdefault("properties", {})
    refused = [name for name in properties if not _PROPERTY.fullmatch(name)]
    for name in refused:
        del properties[name]
    if "required" in schema:
        schema["required"] = [name for name in schema["required"] if name not in refused]
    return schema


def _resolved(schema: dict[str, Any], root: dict[str, Any] | None = None) -> dict[str, Any]:
    """The schema itself where it only refers to another one within the document."""
    root = schema if root is None else root
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith(("#/$defs/", "#/definitions/")):
        return schema
    _, group, name = reference.split("/", 2)
    target = root.get(group, {}).get(name.replace("~1", "/").replace("~0", "~"))
    if not isinstance(target, dict):
        return schema
    return {**target, **{key: value for key, value in schema.items() if key != "$ref"}}


def _join_branches(schema: dict[str, Any], branches: list[dict[str, Any]], keyword: str) -> None:
    """Takes the properties of all branches into the schema: of alternatives, what is required by each of them."""
    properties = dict(schema.get("properties", {}))
    for branch in branches:
        for name, value in branch.get("properties", {}).items():
            properties.setdefault(name, value)
    required = [set(branch.get("required", ())) for branch in branches]
    if required:
        joined = set.union(*required) if keyword == "allOf" else set.intersection(*required)
        own = schema.get("required", [])
        schema["required"] = [*own, *sorted(joined - set(own))]
    schema["properties"] = properties


def _cleaned(schema: Any, depth: int) -> Any:
    """A schema by the rules of draft 2020-12, if it was made for an older one or by hand."""
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return {}
    clean = dict(schema)
    if isinstance(clean.get("items"), list):
        clean["prefixItems"] = clean.pop("items")
        if "additionalItems" in clean:
            clean["items"] = clean.pop("additionalItems")
    for bound in ("Minimum", "Maximum"):
        exclusive = clean.get(f"exclusive{bound}")
        if isinstance(exclusive, bool):
            del clean[f"exclusive{bound}"]
            if exclusive and bound.lower() in clean:
                clean[f"exclusive{bound}"] = clean.pop(bound.lower())
    for keyword in _NUMBERS & clean.keys():
        if isinstance(clean[keyword], bool) or not isinstance(clean[keyword], int | float):
            del clean[keyword]
    for keyword in _ONE:
        if keyword in clean:
            clean[keyword] = _cleaned(clean[keyword], depth + 1)
    for keyword in _MANY:
        if keyword in clean:
            members = clean[keyword] if isinstance(clean[keyword], list) else []
            clean[keyword] = [_cleaned(member, depth + 1) for member in members]
            if not clean[keyword]:
                del clean[keyword]
    for keyword in _NAMED:
        if keyword in clean:
            members = clean[keyword] if isinstance(clean[keyword], dict) else {}
            clean[keyword] = {str(name): _cleaned(member, depth + 1) for name, member in members.items()}
    if "required" in clean:
        names = clean["required"] if isinstance(clean["required"], list) else []
        clean["required"] = list(dict.fromkeys(name for name in names if isinstance(name, str)))
    if "type" in clean:
        _clean_type(clean)
    if not isinstance(clean.get("enum", []), list):
        del clean["enum"]
    return clean


def _clean_type(schema: dict[str, Any]) -> None:
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    known = list(dict.fromkeys(name for name in types if isinstance(name, str) and name in _TYPES))
    if not known:
        del schema["type"]
    else:
        schema["type"] = known if isinstance(schema["type"], list) else known[0]


class _Inexpressible(Exception):
    """The service has no form for this schema."""


def output_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema of a reply in the form that the service holds the model to, or None if it has none.

    Objects are closed in it. Bounds and patterns, which it cannot hold the model to, are told in descriptions.
    """
    clean = _cleaned(dict(schema), 0)
    try:
        return _OutputForm(clean).of(clean, ())
    except _Inexpressible:
        return None


class _OutputForm:
    """Makes the form of a document's schemas. What is referred to stands in place of the reference."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._left = _MOST_SCHEMAS

    def of(self, schema: Any, above: tuple[str, ...]) -> dict[str, Any]:
        """The form of one schema; ``above`` holds the references, or ``""``, that led to it."""
        self._left -= 1
        if not isinstance(schema, dict) or len(above) > _DEEPEST or self._left < 0:
            raise _Inexpressible
        if "$ref" in schema:
            return self._referred(schema["$ref"], above)
        inner = (*above, "")
        rest = {key: value for key, value in schema.items() if key not in _OUTPUT_DROPPED}
        out = {key: rest.pop(key) for key in _OUTPUT_KEPT if key in rest}
        kind = rest.pop("type", None)
        if isinstance(kind, list):
            return {**out, "anyOf": [self.of({**rest, "type": name}, inner) for name in kind]}
        branches = rest.pop("anyOf", None) or rest.pop("oneOf", None)
        if branches is not None:
            out["anyOf"] = [self.of(branch, inner) for branch in _list(branches)]
        elif kind is None and isinstance(rest.get("allOf"), list) and len(rest["allOf"]) == 1:
            return {**self.of(rest["allOf"][0], inner), **out}
        elif "enum" not in out and "const" not in out:
            kind = kind or ("object" if "properties" in rest else "array" if "items" in rest else None)
            if not isinstance(kind, str) or kind not in _TYPES or "allOf" in rest:
                raise _Inexpressible
            out["type"] = kind
            self._add_members(kind, rest, out, inner)
        if rest:
            told = ", ".join(f"{key}: {dump_text(value)}" for key, value in rest.items())
            out["description"] = f"{out['description']} ({told})" if out.get("description") else told
        return out

    def _add_members(self, kind: str, rest: dict[str, Any], out: dict[str, Any], inner: tuple[str, ...]) -> None:
        if kind == "object":
            properties = rest.pop("properties", None) or {}
            if not properties and rest.get("additionalProperties") is not False:
                raise _Inexpressible  # A mapping from any names: closed, it could only be empty.
            rest.pop("additionalProperties", None)
            out["properties"] = {name: self.of(member, inner) for name, member in properties.items()}
            out["required"] = [
                name for name in _list(rest.pop("required", [])) if isinstance(name, str) and name in properties
            ]
            out["additionalProperties"] = False
        elif kind == "array":
            if "items" in rest:
                out["items"] = self.of(rest.pop("items"), inner)
            if rest.get("minItems") in (0, 1):
                out["minItems"] = rest.pop("minItems")
        elif kind == "string" and isinstance(form := rest.get("format"), str) and form in _OUTPUT_FORMATS:
            out["format"] = rest.pop("format")

    def _referred(self, reference: Any, above: tuple[str, ...]) -> dict[str, Any]:
        target = _resolved({"$ref": reference}, self._root)
        if reference in above or target.get("$ref") == reference:
            raise _Inexpressible  # It refers to itself, or to nothing in this document.
        return self.of(target, (*above, str(reference)))


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _Inexpressible
    return value
