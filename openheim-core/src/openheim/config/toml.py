"""Reading TOML files, with errors that name file and line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from openheim.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("read_toml",)


def read_toml(path: Path) -> dict[str, Any] | None:
    """The file's content, or None if there is no such file.

    Raises:
        ConfigError: it cannot be read, is not UTF-8, or is not TOML.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as err:
        raise ConfigError(f"cannot read {path}: {err.strerror}", hint="check its permissions") from err
    import tomllib

    try:
        return tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as err:
        line = raw[: err.start].count(b"\n") + 1
        raise ConfigError(f"{path}, line {line}: not UTF-8", hint="save the file as UTF-8") from err
    except tomllib.TOMLDecodeError as err:
        place = re.search(r" \(at line (\d+), column (\d+)\)$", str(err))
        where = f", line {place[1]}" if place else ""
        what = str(err)[: place.start()] if place else str(err).removesuffix(" (at end of document)")
        raise ConfigError(f"{path}{where}: not valid TOML: {what}", hint="correct that line") from err
