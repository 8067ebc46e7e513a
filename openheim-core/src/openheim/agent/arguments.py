"""Reads and checks the arguments of tool calls."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from openheim._jsonschema import problems, shown_path
from openheim.errors import ToolError
from openheim.jsontext import parse

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("checked_arguments", "parse_arguments")

#: Problems that the model is told of at once.
_MAX_PROBLEMS = 10


def parse_arguments(text: str) -> dict[str, Any] | None:
    """The object that a call's arguments are; blank text is an empty one. None if they are no JSON object."""
    if not text.strip():
        return {}
    try:
        value = parse(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def checked_arguments(arguments: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments without those optional ones that are null.

    Args:
        schema: JSON Schema of an object. What is no schema in it is passed over, so it may be anybody's.

    Raises:
        ToolError: naming the arguments that are missing, unknown or of a wrong type.
    """
    required = schema.get("required")
    required = required if isinstance(required, list | tuple) else ()
    described = schema.get("properties")
    properties: dict[str, Any] = described if isinstance(described, dict) else {}
    given = {name: value for name, value in arguments.items() if value is not None or name in required}
    for name, value in given.items():
        # 1.0 is an integer to JSON Schema, and a float to Python.
        if isinstance(value, float) and value.is_integer() and _is_integer(properties.get(name)):
            given[name] = int(value)
    unknown: list[str] = []
    if properties and "patternProperties" not in schema and schema.get("additionalProperties") in (None, False):
        unknown = [name for name in given if name not in properties]
    known = {name: value for name, value in given.items() if name not in unknown}
    found = [f"{shown_path(path)} {problem}" for path, problem in problems(known, dict(schema))]
    found += [_unknown(name, list(properties)) for name in unknown]
    if found:
        raise ToolError(f"invalid arguments: {'; '.join(found[:_MAX_PROBLEMS])}")
    return given


def _is_integer(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "integer"


def _unknown(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, 1)
    return f"{name} is no argument of this tool" + (f" (did you mean {close[0]}?)" if close else "")
