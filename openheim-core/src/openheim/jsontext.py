"""JSON as openheim writes and reads it: compact, UTF-8, and nothing that other readers refuse.

Python reads and writes ``NaN`` and ``Infinity``, which JSON does not have; none of these functions does. They differ in
what they make of text that is no valid Unicode: files and streams keep a lone surrogate, escaped, and requests replace
it, since services refuse it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn

__all__ = ("MAX_DEPTH", "TextPieces", "dump_bytes", "dump_text", "is_deep", "is_object", "parse", "plain", "wire_bytes")

_encode_line = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False).encode
_encode_wire = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode

# What some readers take for a line break (U+0085, U+2028, U+2029), and halves of characters, which UTF-8 has no form
# for.
_ESCAPED = re.compile("[\u0085\u2028\u2029\ud800-\udfff]")

#: Levels of nesting that :func:`plain` keeps, and that stored and imported values may have. Python gives up on reading
#: and writing JSON somewhat later, at a depth that its version and the caller's own stack decide.
MAX_DEPTH = 100

#: Bits of an integer that :func:`plain` keeps; Python neither reads nor writes longer ones.
_MAX_BITS = 14_000
_LEFT_OUT = "…"


def dump_text(value: Any) -> str:
    """``value`` as one line of JSON, for files and streams; a line to every reader.

    It never fails: a value that JSON has no form for is written as :func:`plain` shows it.
    """
    try:
        text = _encode_line(value)
    except (ValueError, TypeError, RecursionError):
        text = _encode_line(plain(value))
    return text if text.isascii() else _ESCAPED.sub(_escape, text)


def dump_bytes(value: Any) -> bytes:
    """As :func:`dump_text`, in UTF-8."""
    return dump_text(value).encode()


def wire_bytes(value: Any) -> bytes:
    """``value`` as the body of a request. A lone surrogate becomes U+FFFD.

    Raises:
        ValueError: it holds a number that JSON cannot say, or itself.
        TypeError: it holds something that JSON has no form for.
        RecursionError: it is nested too deeply.
    """
    text = _encode_wire(value)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def parse(text: str | bytes, *, lenient: bool = False) -> Any:
    """The value that a JSON text stands for.

    Args:
        lenient: read numbers that are not finite as null, for files that another program may have written them to.

    Raises:
        ValueError: it is no JSON, or holds ``NaN``, ``Infinity`` or a number too large for Python.
        RecursionError: it is nested too deeply.
    """
    if lenient:
        return json.loads(text, parse_constant=_null, parse_float=_finite_or_null)
    return json.loads(text, parse_constant=_refuse, parse_float=_finite)


def is_object(text: str) -> bool:
    """Whether ``text`` is a JSON object."""
    try:
        return isinstance(parse(text), dict)
    except (ValueError, RecursionError):
        return False


def is_deep(value: Any, levels: int = MAX_DEPTH) -> bool:
    """Whether the value, as JSON was read, has more than ``levels`` objects and lists within one another."""
    if isinstance(value, dict):
        return not levels or any(is_deep(item, levels - 1) for item in value.values())
    if isinstance(value, list):
        return not levels or any(is_deep(item, levels - 1) for item in value)
    return False


def plain(value: Any) -> Any:
    """``value`` as what JSON can say.

    A number that is not finite becomes null, a mapping an object, a tuple or set an array, what refers to itself or is
    nested too deeply an ellipsis, and anything else its text.
    """
    return _plain(value, ())


def _plain(value: Any, around: tuple[Any, ...]) -> Any:
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= _MAX_BITS else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    try:
        if not isinstance(value, Mapping | list | tuple | set | frozenset):
            return str(value)
        if len(around) >= MAX_DEPTH or any(outer is value for outer in around):
            return _LEFT_OUT
        around = (*around, value)
        if isinstance(value, Mapping):
            return {str(key): _plain(item, around) for key, item in value.items()}
        return [_plain(item, around) for item in value]
    except Exception as err:  # the text of a stranger's object, or its items, may raise anything
        return f"<{type(value).__name__}: {type(err).__name__}>"


class TextPieces:
    """Text that comes in pieces, each from a JSON text of its own, so that a character may be cut in two.

    JSON writes characters beyond U+FFFF as two escapes, and Python puts those together only within one string.
    """

    __slots__ = ("held",)

    def __init__(self) -> None:
        #: The first half of a character, which waits for the second one; or ``""``.
        self.held = ""

    def add(self, piece: str) -> str:
        """The next piece without a half at its end, and with the half that was held back before it."""
        if self.held:
            # What is no pair stays as it is: a lone half is the model's, and not for us to drop.
            piece = (self.held + piece).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
            self.held = ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            self.held = piece[-1]
            return piece[:-1]
        return piece

    def end(self) -> str:
        """What is held back still, once nothing more comes."""
        held, self.held = self.held, ""
        return held


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _null(_constant: str) -> None:
    return None


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text:.20} is too large")
    return number


def _finite_or_null(text: str) -> float | None:
    number = float(text)
    return None if math.isinf(number) else number
