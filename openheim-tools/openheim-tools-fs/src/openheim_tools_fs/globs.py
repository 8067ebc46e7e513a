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

    def admits(self, path: str, name: str, is_directory: bool) -> bool:
        """Whether a file is wanted, or a directory may hold one that is.

        Args:
            path: relative to where the search began.
        """
        if is_directory and not self._refuses:
            return True
        matches = self._lines.ignores(path, name, is_directory) is True
        return matches != self._refuses
