"""Rules such as ``edit_file(src/**)`` or ``read_*``.

The part in front of the parenthesis is a glob for the tool's name. The part inside is a glob for what the call acts
on, in the tool's own canonical spelling: a path relative to the boundary, a command. In a path, ``*`` stays within
one component and ``**`` crosses them; elsewhere ``*`` matches anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

from openheim.errors import UsageError

__all__ = ("Rule", "canonical_glob", "parse_rule")

_FORM = re.compile(r"(?P<tool>[\w*?\[\]-]+)(?:\((?P<target>.*)\))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Rule:
    """``target`` is None for a rule about every call of the tool."""

    tool: str
    target: str | None = None

    def __str__(self) -> str:
        return self.tool if self.target is None else f"{self.tool}({self.target})"

    def matches(self, tool: str, target: str | None, *, is_path: bool) -> bool:
        """Whether the rule is about this call. A call whose target is not known fits no rule that names one."""
        if not fnmatchcase(tool, self.tool):
            return False
        if self.target is None:
            return True
        if target is None:
            return False
        if not is_path:
            return fnmatchcase(target, self.target)
        return _path_pattern(self.target).fullmatch(target) is not None

    def may_match(self, tool: str, target: str | None) -> bool:
        """Whether the rule names a target and the call's is not known; a rule that denies then has to."""
        return target is None and self.target is not None and fnmatchcase(tool, self.tool)


def parse_rule(text: str) -> Rule:
    """Reads ``tool`` or ``tool(glob)``.

    Raises:
        UsageError: it is neither.
    """
    form = _FORM.fullmatch(text.strip())
    if form is None:
        from openheim.config.masking import without_keys

        raise UsageError(
            f"cannot read the rule {without_keys(text)!r}", hint="write tool or tool(glob), such as edit_file(src/**)"
        )
    return Rule(form["tool"], form["target"])


def canonical_glob(glob: str) -> str:
    """A glob for paths as the paths themselves are spelled: without ``.`` and empty components.

    One that ends with a slash is about everything in a directory.
    """
    components = [part for part in glob.split("/") if part not in ("", ".")]
    if glob.endswith(("/", "/.")):
        components.append("**")
    return "/" * glob.startswith("/") + "/".join(components or ["."] if glob.strip("/") else components)


@lru_cache(maxsize=256)
def _path_pattern(glob: str) -> re.Pattern[str]:
    glob = canonical_glob(glob)
    meaning = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    return re.compile("".join(meaning.get(piece) or re.escape(piece) for piece in pieces), re.DOTALL)
