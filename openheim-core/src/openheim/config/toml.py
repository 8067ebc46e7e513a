"""Reading TOML files, with errors that name file and line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from openheim.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("is_too_deep", "read_toml")

#: Levels of tables and arrays in each other. Whatever reads settings may call itself for each of them.
MAX_DEPTH = 50


def read_toml(path: Path) -> dict[str, Any] | None:
    """The file's content, or None if there is no such file.

    Raises:
        ConfigError: it cannot be read, is not UTF-8, is not TOML, or is nested too deeply.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as err:
        raise ConfigError(f"cannot read {path}: {err.strerror}", hint="check its permissions") from err
    import tomllib

    try:
        values = tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as err:
        line = raw[: err.start].count(b"\n") + 1
        raise ConfigError(f"{path}, line {line}: not UTF-8", hint="save the file as UTF-8") from err
    except tomllib.TOMLDecodeError as err:
        place = re.search(r" \(at line (\d+), column (\d+)\)$", str(err))
        where = f", line {place[1]}" if place else ""
        what = str(err)[: place.start()] if place else str(err).removesuffix(" (at end of document)")
        raise ConfigError(f"{path}{where}: not valid TOML: {what}", hint="correct that line") from err
    except ValueError as err:
        # Python refuses to read integers of thousands of digits.
        raise ConfigError(f"{path}: a number is too long", hint="shorten it") from err
    except RecursionError:
        values = None
    if values is None or is_too_deep(values):
        # Not "from err": the traceback would be a thousand lines long.
        raise ConfigError(
            f"{path}: tables and arrays are nested more than {MAX_DEPTH} deep", hint="make the file flatter"
        ) from None
    return values


def is_too_deep(values: Any) -> bool:
    """Whether tables and arrays stand more than :data:`MAX_DEPTH` deep in each other."""
    level = [values]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for value in level
            if isinstance(value, dict | list)
            for item in (value.values() if isinstance(value, dict) else value)
        ]
    return any(isinstance(value, dict | list) for value in level)
