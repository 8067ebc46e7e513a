"""Schemas and argument checks of typed functions, by pydantic; imported when a tool is first asked for its schema."""

from __future__ import annotations

import inspect
import typing
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from openheim.errors import ToolError

if typing.TYPE_CHECKING:
    from collections.abc import Callable


def arguments_model(function: Callable[..., Any]) -> type[BaseModel]:
    """A model whose fields are the function's parameters, except ``turn``.

    Raises:
        TypeError: a parameter has no annotation, or is ``*args`` or ``**kwargs``.
    """
    hints = typing.get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "turn":
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"a tool cannot take *{parameter.name}: the model gives named arguments only")
        if parameter.name not in hints:
            raise TypeError(f"parameter {parameter.name!r} of tool {function.__name__!r} needs a type annotation")
        annotation = hints[parameter.name]
        if typing.get_origin(annotation) is Annotated:
            base, *extras = typing.get_args(annotation)
            annotation = base
            for extra in extras:
                metadata = Field(description=extra) if isinstance(extra, str) else extra
                annotation = Annotated[annotation, metadata]
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (annotation, default)
    config = ConfigDict(extra="forbid", strict=True)
    return create_model(f"{function.__name__}_arguments", __config__=config, **fields)


def parameters_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON Schema that the model is shown, without the titles that pydantic adds."""
    schema: dict[str, Any] = _without_titles(model.model_json_schema(), top=True)
    return schema


def _without_titles(node: Any, *, top: bool = False) -> Any:
    if isinstance(node, list):
        return [_without_titles(item) for item in node]
    if not isinstance(node, dict):
        return node
    cleaned = {}
    for key, value in node.items():
        if key == "title" and isinstance(value, str):
            continue
        if key == "additionalProperties" and top:
            continue
        if key == "properties" and isinstance(value, dict):
            # Names of arguments, one of which may well be "title".
            cleaned[key] = {name: _without_titles(schema) for name, schema in value.items()}
        else:
            cleaned[key] = _without_titles(value)
    return cleaned


def validated_arguments(model: type[BaseModel], arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the function's own types.

    Raises:
        ToolError: naming each argument that does not fit.
    """
    given = {
        name: value
        for name, value in arguments.items()
        if value is not None or name not in model.model_fields or model.model_fields[name].is_required()
    }
    try:
        # JSON mode: what JSON cannot say (tuples, sets, dates) is read from what it can, and nothing else is coerced.
        import json

        checked = model.model_validate_json(json.dumps(given))
    except ValidationError as err:
        problems = "; ".join(
            f"{'.'.join(map(str, problem['loc'])) or 'arguments'}: {problem['msg']}" for problem in err.errors()
        )
        raise ToolError(f"invalid arguments: {problems}") from err
    return {name: getattr(checked, name) for name in model.model_fields}
