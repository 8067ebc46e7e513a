"""Reads the values of simple options and arguments without pydantic.

typer makes a pydantic validator for every option and argument that has a value. Importing pydantic takes longer than
everything else that a quick command does, and text, numbers and choices need none of it.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, get_args, get_origin

import typer

__all__ = ("PlainValue", "reads_plainly")


def reads_plainly(annotation: Any) -> bool:
    """Whether values of this type can be read here."""
    if get_origin(annotation) is list:
        return all(map(reads_plainly, get_args(annotation)))
    return annotation in (str, int, float, bool) or (isinstance(annotation, type) and issubclass(annotation, Enum))


class PlainValue:
    """Stands in for typer's own ``RuntimeParam``: its one method is the same.

    Args:
        annotation: a type for which :func:`reads_plainly` holds.
    """

    def __init__(self, annotation: Any) -> None:
        self._annotation = annotation

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as the annotation's type.

        Raises:
            typer.BadParameter: it cannot be read as that.
        """
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        try:
            return _read(value, self._annotation)
        except ValueError as err:
            raise typer.BadParameter(str(err), ctx=ctx, param=param) from None


def _read(value: Any, annotation: Any) -> Any:
    if get_origin(annotation) is list:
        (inner,) = get_args(annotation)
        return [_read(item, inner) for item in value]
    if annotation in (int, float):
        try:
            return annotation(value)
        except ValueError:
            raise ValueError(f"{value!r} is no {'whole ' if annotation is int else ''}number") from None
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        for member in annotation:
            if value in (member, member.value):
                return member
        raise ValueError(f"{value!r} is not one of {', '.join(str(member.value) for member in annotation)}")
    return value
