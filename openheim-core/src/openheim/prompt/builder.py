"""The system text of one session, made anew for each turn and the same as long as nothing on disk has changed."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from openheim.config.paths import home_dir
from openheim.config.project import find_project
from openheim.errors import OpenheimError
from openheim.prompt.assembly import DEFAULT_IDENTITY, read_identity, system_text
from openheim.prompt.instructions import Instructions
from openheim.prompt.skills import SkillLibrary
from openheim.prompt.texts import Text, TextCache

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ("PromptBuilder",)


class PromptBuilder:
    """Puts together who the agent is, its skills, instructions, and where it works.

    Args:
        data_dir: the folder of ``system.md`` and ``skills``.
        work_dir: the session's boundary.
        cwd: its directory.
        skills: names of its skills, in order; see :func:`openheim.prompt.merged_skills`.
        started: date on which the session started, ``YYYY-MM-DD``.
        trusted: whether the project that ``cwd`` belongs to is trusted, so that its skills may be used.
        home: the user's own folder, ``OPENHEIM_HOME`` by default.
        cache: a cache of texts that sessions share.
    """

    def __init__(
        self,
        data_dir: Path,
        work_dir: Path,
        cwd: Path,
        skills: Sequence[str] = (),
        started: str = "",
        trusted: bool = False,
        *,
        home: Path | None = None,
        cache: TextCache | None = None,
    ) -> None:
        self._identity_path = data_dir / "system.md"
        self._identity_was_looked_for = False
        self._cwd = cwd
        self._skills = tuple(skills)
        self._started = started
        self._cache = cache if cache is not None else TextCache()
        self._library = SkillLibrary(data_dir, find_project(cwd) if trusted else None, self._cache)
        self._instructions = Instructions(home if home is not None else home_dir(), work_dir, cwd, self._cache)
        self._parts: tuple[str, tuple[tuple[str, str], ...], tuple[tuple[Path, str], ...]] | None = None
        self._text = ""
        #: What was found to be wrong, each once: skills that have vanished, files that cannot be read or were cut.
        self.warnings: list[str] = []

    def for_session(self, skills: Sequence[str], started: str) -> PromptBuilder:
        """A builder for a session in the same place, with skills and a date of its own."""
        builder = copy.copy(self)
        builder._skills, builder._started = tuple(skills), started
        builder._parts, builder._text, builder.warnings = None, "", []
        return builder

    def require_skills(self) -> None:
        """Checks, for a new session, that all its skills are there.

        Raises:
            SkillNotFoundError: one is not; the closest names are given.
            StorageError: the file of one cannot be used.
        """
        self._library.require(self._skills)

    def text(self) -> str:
        """The system text now. A skill that is gone is left out, with a warning.

        Raises:
            StorageError: ``system.md`` is there and cannot be read.
        """
        parts = self._identity(), tuple(self._skill_texts()), tuple(self._instruction_texts())
        if parts != self._parts:
            identity, skills, instructions = self._parts = parts
            self._text = system_text(
                identity=identity, skills=skills, instructions=instructions, cwd=self._cwd, started=self._started
            )
        return self._text

    def _identity(self) -> str:
        found = self._cache.text(self._identity_path, lambda path: Text(read_identity(path)))
        if found is not None:
            return found.content or ""
        if not self._identity_was_looked_for:
            # A file that is hidden by its folder's permissions is told; afterwards, looking once is enough.
            read_identity(self._identity_path)
            self._identity_was_looked_for = True
        return DEFAULT_IDENTITY

    def _skill_texts(self) -> Iterator[tuple[str, str]]:
        for name in self._skills:
            try:
                yield name, self._library.text(name)
            except OpenheimError as err:
                self._warn(f"{err.message}; going on without it")

    def _instruction_texts(self) -> Iterator[tuple[Path, str]]:
        for path, text in self._instructions.texts():
            if text.problem:
                self._warn(f"{path}: {text.problem}")
            if text.content is not None and text.content.strip():
                yield path, text.content

    def _warn(self, line: str) -> None:
        if line not in self.warnings:
            self.warnings.append(line)
