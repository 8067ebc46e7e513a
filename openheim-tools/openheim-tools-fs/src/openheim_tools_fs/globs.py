"""The glob argument of a search: a line of an ignore file, with ``{this,that}`` added, that says what is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openheim import ToolError
from openheim_tools_fs.ignoring import MAX_LINE_CHARS, Lines
from openheim_tools_fs.wildcards import MalformedError, braces_expanded, expression

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("Glob",)


class Glob:
    """A pattern that files have to match, or, with ``!`` in front, must not match.

    What matches a pattern with ``!`` is refused with all that is in it, if it is a directory.

    Args:
        text: the pattern.
        check: called now and then while names are compared; what it raises ends that.

    Raises:
        ToolError: it is not valid, or stands for too much.
    """

    def __init__(self, text: str, check: Callable[[], None]) -> None:
        self._refuses = text.startswith("!")
        pattern = text.removeprefix("!")
        if len(pattern) > MAX_LINE_CHARS:
            raise ToolError(f"the glob has {len(pattern):,} characters, and at most {MAX_LINE_CHARS:,} are possible")
        try:
            patterns = braces_expanded(pattern)
            for one in patterns:
                expression(one)
        except MalformedError as err:
            raise ToolError(
                f"the glob {text!r} is not valid: {err}",
                hint="a backslash before a bracket, a brace or another backslash makes it stand for itself",
            ) from err
        # What begins like a remark or a second negation is meant as it stands.
        self._lines = Lines((f"\\{one}" if one[:1] in ("#", "!") else one for one in patterns), check)
        if not self._lines.is_whole:
            raise ToolError(
                f"the glob {text!r} stands for too many patterns", hint="search for fewer of them at a time"
            )
        self._is_simple = self._lines.is_simple

    def admitted(self, below: str, entries: list[tuple[str, bool]]) -> list[tuple[str, bool]]:
        """The files of a directory that are wanted, and the directories that may hold some.

        Args:
            below: the directory's path, relative to where the search began, with a slash behind it; or ``""``.
            entries: names, and whether each is a directory.
        """
        concerned = frozenset(self._lines.concerned(below, [name for name, _ in entries]))
        if self._is_simple and not self._refuses:
            return [entry for entry in entries if entry[1] or entry[0] in concerned]
        admitted = []
        for entry in entries:
            name, is_directory = entry
            matches = name in concerned and (
                self._is_simple or self._lines.ignores(below + name, name, is_directory) is True
            )
            if matches != self._refuses or (is_directory and not self._refuses):
                admitted.append(entry)
        return admitted
