"""Reading TOML files, with errors that name file and line."""

from __future__ import annotations

import errno
import os
import re
from typing import TYPE_CHECKING, Any

from openheim._reading import read_given, read_regular
from openheim.config.findings import Finding, SettingError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("MAX_DEPTH", "MAX_FILE_BYTES", "is_too_deep", "read_toml")

#: Longest config file that is read.
MAX_FILE_BYTES = 4 * 1024 * 1024

#: Levels of tables and arrays in each other. Whatever reads settings may call itself for each of them.
MAX_DEPTH = 50


def read_toml(path: Path, *, given: bool = False) -> dict[str, Any] | None:
    """The file's content, or None if there is no such file.

    Args:
        given: whether the user named it, so that it may be a pipe as well.

    Raises:
        SettingError: it cannot be read, is too long, is not UTF-8, is not TOML, or is nested too deeply.
    """
    # The null device is how people say that they want no settings.
    read = read_given if given or str(path) == os.devnull else read_regular
    try:
        raw = read(path, limit=MAX_FILE_BYTES)
    except FileNotFoundError:
        return None
    except OSError as err:
        if err.errno == errno.EFBIG:
            finding = Finding(f"longer than {MAX_FILE_BYTES // 2**20} MiB", file=path, hint="make it shorter")
        else:
            finding = Finding(
                f"cannot read {path}: {err.strerror}", hint="check what stands there, and its permissions"
            )
        raise SettingError(finding) from err
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
