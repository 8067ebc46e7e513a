"""Reads and checks the arguments of tool calls.

The check covers the parts of JSON Schema that tool schemas are made of: type, required, properties, items, enum,
    const, minimum and maximum, lengths, anyOf. A keyword beyond these is the tool's own to check, so a schema is
    never stricter here than it says.
"""

from __future__ import annotations

import json
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from openheim.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("checked_arguments", "parse_arguments")

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}

#: Levels of nesting that are checked.
_MAX_DEPTH = 32


def parse_arguments(text: str) -> dict[str, Any] | None:
    """The object that a call's arguments are; blank text is an empty one. None if they are no JSON object."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def checked_arguments(arguments: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments without those optional ones that are null.

    Raises:
        ToolError: naming the arguments that are missing, unknown or of a wrong type.
    """
    required = set(schema.get("required") or ())
    properties = schema.get("properties") or {}
    given = {name: value for name, value in arguments.items() if value is not None or name in required}
    for name, value in given.items():
        # 1.0 is an integer to JSON Schema, and a float to Python.
        if isinstance(value, float) and value.is_integer() and properties.get(name, {}).get("type") == "integer":
            given[name] = int(value)
    problems = [f"{name} is missing" for name in schema.get("required") or () if name not in given]
    for name, value in given.items():
        if name in properties:
            problems.extend(_problems(value, properties[name], name, 0))
        elif properties and schema.get("additionalProperties") in (None, False):
            close = get_close_matches(name, list(properties), 1)
            problems.append(f"{name} is no argument of this tool" + (f" (did you mean {close[0]}?)" if close else ""))
    if problems:
        raise ToolError(f"invalid arguments: {'; '.join(problems[:10])}")
    return given


def _problems(value: Any, schema: Any, path: str, depth: int) -> list[str]:
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return []
    alternatives = schema.get("anyOf")
    if isinstance(alternatives, list) and alternatives:
        tried = [_problems(value, alternative, path, depth + 1) for alternative in alternatives]
        return [] if any(not problems for problems in tried) else tried[0]
    if problem := _type_problem(value, schema.get("type"), path):
        return [problem]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{path} must be one of {', '.join(map(json.dumps, schema['enum']))}"]
    if "const" in schema and value != schema["const"]:
        return [f"{path} must be {json.dumps(schema['const'])}"]
    problems = _bound_problems(value, schema, path)
    if isinstance(value, dict) and isinstance(schema.get("properties"), dict):
        problems.extend(f"{path}.{name} is missing" for name in schema.get("required") or () if name not in value)
        for name, inner in schema["properties"].items():
            if name in value:
                problems.extend(_problems(value[name], inner, f"{path}.{name}", depth + 1))
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            problems.extend(_problems(item, schema["items"], f"{path}[{index}]", depth + 1))
    return problems


def _type_problem(value: Any, wanted: Any, path: str) -> str | None:
    names = [wanted] if isinstance(wanted, str) else wanted if isinstance(wanted, list) else []
    if not names or any(_is_of_type(value, name) for name in names):
        return None
    found = next(name for name in ("null", "boolean", "integer", "number", *_TYPES) if _is_of_type(value, name))
    return f"{path} must be {' or '.join(names)}, not {found}"


def _is_of_type(value: Any, name: Any) -> bool:
    if name not in _TYPES:
        return True
    if isinstance(value, bool):
        return bool(name == "boolean")
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    kinds: tuple[type, ...] = _TYPES[name]
    return isinstance(value, kinds)


def _bound_problems(value: Any, schema: dict[str, Any], path: str) -> list[str]:
    problems: list[str] = []

    def bound(key: str) -> float | None:
        limit = schema.get(key)
        return limit if isinstance(limit, int | float) and not isinstance(limit, bool) else None

    if isinstance(value, int | float) and not isinstance(value, bool):
        if (least := bound("minimum")) is not None and value < least:
            problems.append(f"{path} must be at least {least}")
        if (most := bound("maximum")) is not None and value > most:
            problems.append(f"{path} must be at most {most}")
    if isinstance(value, str):
        if (least := bound("minLength")) is not None and len(value) < least:
            problems.append(f"{path} must have at least {least} characters")
        if (most := bound("maxLength")) is not None and len(value) > most:
            problems.append(f"{path} must have at most {most} characters")
    return problems
