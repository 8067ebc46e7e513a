"""Checks of what a program passes, so that a slip is an error at once and not something else that was never meant."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from openheim.errors import UsageError

__all__ = ("items", "seconds", "texts", "whole_number")


def texts(name: str, values: Iterable[str]) -> tuple[str, ...]:
    """Several texts. One text is no list of its letters.

    Raises:
        TypeError: it is something else.
    """
    found = items(name, values)
    for value in found:
        if not isinstance(value, str):
            raise TypeError(f"{name} holds {type(value).__name__} and not text")
    return found


def items(name: str, values: Iterable[Any]) -> tuple[Any, ...]:
    """Several things, in a list or what is like one.

    Raises:
        TypeError: it is one text, or nothing that has items.
    """
    if isinstance(values, str | bytes):
        raise TypeError(f"{name} is a list, not {type(values).__name__}: write [{values!r:.60}]")
    if not isinstance(values, Iterable):
        raise TypeError(f"{name} is a list, not {type(values).__name__}")
    return tuple(values)


def whole_number(name: str, value: int, *, least: int) -> int:
    """A number of things.

    Raises:
        TypeError: it is no integer.
        UsageError: it is too small.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} is an integer, not {type(value).__name__}")
    if value < least:
        raise UsageError(f"{name} is {value:.20g}", hint=f"use {least} or more")
    return value


def seconds(name: str, value: float) -> float:
    """A span of time.

    Raises:
        TypeError: it is no number.
        UsageError: it is negative or not finite.
    """
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{name} is a number of seconds, not {type(value).__name__}")
    if not (value >= 0 and math.isfinite(value)):
        raise UsageError(f"{name} is {value}", hint="use a number of seconds, 0 or more")
    return value
