"""The glob argument of a search: a line of an ignore file, with ``{this,that}`` added, that says what is wanted."""

from __future__ import annotations

from openheim_tools_fs.ignoring import Lines
from openheim_tools_fs.wildcards import MalformedError, braces_expanded

__all__ = ("Glob",)


class Glob:
    """A pattern that files have to match, or, with ``!`` in front, must not match. One that is not valid matches none.

    What matches a pattern with ``!`` is refused with all that is in it, if it is a directory.
    """

    def __init__(self, text: str) -> None:
        self._refuses = text.startswith("!")
        try:
            patterns = braces_expanded(text.removeprefix("!"))
        except MalformedError:
            patterns = []
        # What begins like a remark or a second negation is meant as it stands.
        lines = (f"\\{one}" if one[:1] in ("#", "!") else one for one in patterns if "\n" not in one)
        self._lines = Lines("\n".join(lines))
        self._is_simple = self._lines.is_simple

    def admitted(self, below: str, entries: list[tuple[str, bool]]) -> list[tuple[str, bool]]:
        """The files of a directory that are wanted, and the directories that may hold some.

        Args:
            below: the directory's path, relative to where the search began, with a slash behind it; or ``""``.
            entries: names, and whether each is a directory.
        """
        concerned = frozenset(self._lines.concerned(below, [name for name, _ in entries]))
        admitted = []
        for entry in entries:
            name, is_directory = entry
            matches = name in concerned and (
                self._is_simple or self._lines.ignores(below + name, name, is_directory) is True
            )
            if matches != self._refuses or (is_directory and not self._refuses):
                admitted.append(entry)
        return admitted
