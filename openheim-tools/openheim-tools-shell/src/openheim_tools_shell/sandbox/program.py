"""What openheim is run from, which commands must not change: it runs outside of their sandbox, now or the next time."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from openheim.plugins.catalogue import scan

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("own_program",)


def own_program() -> list[str]:
    """The interpreter with its environment, openheim's own packages, and those of all installed plugins: folders, and
    files of modules that have none. Other packages, and what Python would find before them, are not among it.

    The first call reads what is installed, and may block for a moment.
    """
    interpreter = os.path.dirname(os.path.realpath(sys.executable))
    names = [name for name in list(sys.modules) if name == "openheim" or _is_first_party(name)]
    places = [sys.base_prefix, sys.prefix, interpreter]
    for name in dict.fromkeys((*names, *_plugins())):
        places += _places_of(name)
    # An editable install may name what is no place at all.
    return list(dict.fromkeys(os.path.realpath(place) for place in places if os.path.exists(place)))


def _is_first_party(name: str) -> bool:
    return name.startswith("openheim_") and "." not in name


@lru_cache(maxsize=1)
def _plugins() -> tuple[str, ...]:
    """Top-level modules of all plugins, loaded or not: the next session may load them."""
    return tuple(candidate.value.partition(":")[0].partition(".")[0].strip() for candidate in scan().candidates)


def _places_of(name: str) -> Iterator[str]:
    try:
        spec = find_spec(name)  # Of a top-level name; nothing is imported for it.
    except (ImportError, AttributeError, ValueError):
        return  # It was made while openheim runs, or cannot be loaded anyhow.
    if spec is None:
        return
    if spec.submodule_search_locations is not None:
        yield from spec.submodule_search_locations
    elif spec.has_location and spec.origin:
        yield spec.origin
