"""Reading TOML files, with errors that name file and line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from openheim.config.findings import Finding, SettingError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("MAX_DEPTH", "MAX_FILE_BYTES", "is_too_deep", "read_toml")

#: Longest config file that is read.
MAX_FILE_BYTES = 4 * 1024 * 1024

#: Levels of tables and arrays in each other. Whatever reads settings may call itself for each of them.
MAX_DEPTH = 50


def read_toml(path: Path) -> dict[str, Any] | None:
    """The file's content, or None if there is no such file.

    Raises:
        SettingError: it cannot be read, is too long, is not UTF-8, is not TOML, or is nested too deeply.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as err:
        finding = Finding(f"cannot read {path}: {err.strerror}", hint="check its permissions")
        raise SettingError(finding) from err
    if len(raw) > MAX_FILE_BYTES:
        raise SettingError(Finding(f"longer than {MAX_FILE_BYTES // 2**20} MiB", file=path, hint="make it shorter"))
    import tomllib

    try:
        values = tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as err:
        line = raw[: err.start].count(b"\n") + 1
        raise SettingError(Finding("not UTF-8", file=path, line=line, hint="save the file as UTF-8")) from err
    except tomllib.TOMLDecodeError as err:
        place = re.search(r" \(at line (\d+), column (\d+)\)$", str(err))
        what = str(err)[: place.start()] if place else str(err).removesuffix(" (at end of document)")
        line = int(place[1]) if place else raw.rstrip().count(b"\n") + 1
        finding = Finding(f"not valid TOML: {what}", file=path, line=line, hint="correct that line")
        raise SettingError(finding) from err
    except ValueError as err:
        # Python refuses to read integers of thousands of digits.
        raise SettingError(Finding("a number is too long", file=path, hint="shorten it")) from err
    except RecursionError:
        values = None
    if values is None or is_too_deep(values):
        # Not "from err": the traceback would be a thousand lines long.
        raise SettingError(Finding("nested too deeply", file=path, hint="make it flatter")) from None
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
