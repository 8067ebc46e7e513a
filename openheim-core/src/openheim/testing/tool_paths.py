"""Which arguments of a tool are paths, and calls with other paths in them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from openheim.testing.arguments import types_of
from openheim.tools import PATH_KINDS, tool_target

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openheim.tools import Tool, Turn

__all__ = ("PathArgument", "path_arguments")

#: The formats of paths in the schemas that pydantic makes, for ``Path``, ``FilePath`` and so on.
_FORMATS = frozenset(("path", "file-path", "directory-path"))
#: Names that stand for a path by themselves, and words that such names end in: ``source_path``, ``outputDir``.
_NAMES = frozenset(("cwd", "destination", "dest", "root", "source", "src"))
_LAST_WORDS = frozenset(
    "path file filename dir directory folder paths files filenames dirs directories folders".split()
)
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


class PathArgument(NamedTuple):
    """An argument that holds a path, or a list of them."""

    name: str
    is_list: bool

    def of(self, arguments: Mapping[str, Any]) -> str | None:
        """The path in these arguments, if there is one and no more."""
        value = arguments.get(self.name)
        if self.is_list and isinstance(value, list) and len(value) == 1:
            value = value[0]
        return value if isinstance(value, str) else None

    def put(self, path: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {**arguments, self.name: [path] if self.is_list else path}


def path_arguments(
    tool: Tool, arguments: Mapping[str, Any], turn: Turn, declared: Sequence[str] | None
) -> list[PathArgument]:
    """Arguments that are taken for paths: those that the author ``declared``, or else by their format or name, or
    because the tool, whose kind says that it acts on a path, acts on something else when they change.
    """
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    found = []
    for name, details in properties.items():
        is_list = "array" in types_of(details)
        item = details.get("items", {}) if is_list else details
        if "string" not in types_of(item):
            continue
        argument = PathArgument(name, is_list)
        if declared is not None:
            taken = name in declared
        else:
            taken = _has_format(item) or _is_named(name) or _is_target(tool, argument, arguments, turn)
        if taken:
            found.append(argument)
    return found


def _has_format(details: Mapping[str, Any]) -> bool:
    return details.get("format") in _FORMATS or any(_has_format(choice) for choice in details.get("anyOf", ()))


def _is_named(name: str) -> bool:
    words = [word.lower() for word in _WORD.findall(name)]
    return name.lower() in _NAMES or (bool(words) and words[-1] in _LAST_WORDS)


def _is_target(tool: Tool, argument: PathArgument, arguments: Mapping[str, Any], turn: Turn) -> bool:
    if getattr(tool, "kind", "other") not in PATH_KINDS:
        return False
    one, other = (tool_target(tool, argument.put(path, arguments), turn) for path in ("one.txt", "other.txt"))
    return one is not None and other is not None and one != other
