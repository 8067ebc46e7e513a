"""Skills: texts that teach the agent something, one Markdown file each.

The user's are in ``skills`` of the data folder. A project that is trusted may bring some too, in ``.openheim/skills``;
one of the same name as the user's stands in for it, as it is with settings.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openheim.errors import SkillNotFoundError, StorageError, ToolError
from openheim.prompt.texts import Text, TextCache, read_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from openheim.files import Files

__all__ = ("Skill", "SkillFolder", "SkillLibrary", "describe", "is_skill_name", "merged_skills")

_SUFFIX = ".md"

#: Skills of one folder that are looked at, and characters of a description that are shown.
_MOST_SKILLS = 10_000
_DESCRIPTION_CHARACTERS = 200

_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(?P<head>(?:[A-Za-z][\w-]*:.*\r?\n|[ \t]+.*\r?\n)+)---[ \t]*(?:\r?\n|\Z)")
_DESCRIPTION = re.compile(r"^description:[ \t]*(?P<text>.*(?:\n[ \t]+.*)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Skill:
    """An element of ``skills list``. ``source`` is ``user`` or ``project``."""

    name: str
    source: str
    description: str


def is_skill_name(name: str) -> bool:
    """Whether a skill may have this name: one plain component of a path, which leads nowhere else."""
    return (
        name.strip() not in ("", ".")
        and ".." not in name
        and not any(character in "/\\" or not character.isprintable() for character in name)
        and re.match(r"[A-Za-z]:", name) is None
    )


def merged_skills(defaults: Iterable[str], asked: Iterable[str] = ()) -> tuple[str, ...]:
    """The skills of a session: ``default_skills`` first, then those asked for, each once."""
    return tuple(dict.fromkeys((*defaults, *asked)))


class SkillFolder:
    """The skills in one folder, which need not exist. Nothing outside of it is read, whatever links say."""

    def __init__(self, folder: Path, source: str, cache: TextCache | None = None) -> None:
        self.folder = folder
        self.source = source
        self._cache = cache or TextCache()

    def names(self) -> list[str]:
        """The names of all skills that can be loaded, sorted."""
        from openheim.files import Files

        try:
            files = Files(self.folder)
            entries = files.list(".", limit=_MOST_SKILLS).entries
            return sorted(
                name
                for entry in entries
                if entry.name.endswith(_SUFFIX)
                and is_skill_name(name := entry.name.removesuffix(_SUFFIX))
                and (entry.kind == "file" or _leads_to_file(files, entry.name))
            )
        except (ToolError, OSError):
            return []

    def text(self, name: str) -> Text | None:
        """The file of a skill, or None if there is none of that name."""
        if not is_skill_name(name):
            return None
        return self._cache.text(self.folder / f"{name}{_SUFFIX}", self._read)

    def _read(self, path: Path) -> Text:
        from openheim.files import Files

        # On a file system that ignores case, another spelling finds the file as well; it is another name all the same.
        if path.name not in os.listdir(self.folder):
            return Text(None, f"{path.name!r} is spelt otherwise")
        return read_text(Files(self.folder), path.name)


def _leads_to_file(files: Files, name: str) -> bool:
    try:
        found = files.info(name)
    except ToolError:
        return False
    return found is not None and found.kind == "file"


class SkillLibrary:
    """All skills that a session may have.

    Args:
        data_dir: where the user's are.
        project: the folder of a project that is trusted, or None.
        cache: a cache to share.
    """

    def __init__(self, data_dir: Path, project: Path | None = None, cache: TextCache | None = None) -> None:
        self._folders = [SkillFolder(data_dir / "skills", "user", cache)]
        if project is not None:
            from openheim.config.paths import PROJECT_DIR

            self._folders.insert(0, SkillFolder(project / PROJECT_DIR / "skills", "project", cache))

    def skills(self) -> list[Skill]:
        """All of them, sorted by name."""
        found: dict[str, Skill] = {}
        for folder in self._folders:
            for name in folder.names():
                if name not in found:
                    text = folder.text(name)
                    content = text.content if text is not None else None
                    found[name] = Skill(name, folder.source, describe(content) if content is not None else "")
        return [found[name] for name in sorted(found)]

    def text(self, name: str) -> str:
        """What a skill says, without front matter.

        Raises:
            SkillNotFoundError: there is no such skill; the closest names are given.
            StorageError: its file cannot be used.
        """
        for folder in self._folders:
            text = folder.text(name)
            if text is not None and text.content is not None:
                return _FRONT_MATTER.sub("", text.content, count=1) if _front_matter(text.content) else text.content
            if text is not None:
                raise StorageError(f"the skill {name!r} of the {folder.source} cannot be used: {text.problem}")
        raise self._not_found(name)

    def require(self, names: Sequence[str]) -> None:
        """Checks that all of these can be had. Raises as :meth:`text` does."""
        for name in names:
            self.text(name)

    def _not_found(self, name: str) -> SkillNotFoundError:
        from difflib import get_close_matches

        known = sorted({known for folder in self._folders for known in folder.names()})
        near = get_close_matches(name, known, 3) or known[:5]
        hint = f"there are: {', '.join(near)}" if near else f"there are none; put some into {self._folders[-1].folder}"
        return SkillNotFoundError(f"unknown skill {name!r}", hint=hint)


def describe(content: str) -> str:
    """What a skill is about: ``description`` of its front matter, else its first line with text."""
    head = _front_matter(content)
    if head is not None:
        found = _DESCRIPTION.search(head["head"])
        if found is not None:
            text = " ".join(found["text"].split())
            text = re.sub(r"^[>|][+-]? ", "", text)
            quoted = re.fullmatch(r"(['\"])(.*)\1", text)
            return _shortened(quoted[2] if quoted is not None else text)
        content = content[head.end() :]
    for line in content.splitlines():
        if words := line.strip().lstrip("#").strip():
            return _shortened(words)
    return ""


def _front_matter(content: str) -> re.Match[str] | None:
    return _FRONT_MATTER.match(content)


def _shortened(text: str) -> str:
    shown = "".join(character if character.isprintable() else " " for character in text)
    return shown if len(shown) <= _DESCRIPTION_CHARACTERS else f"{shown[: _DESCRIPTION_CHARACTERS - 1]}…"
