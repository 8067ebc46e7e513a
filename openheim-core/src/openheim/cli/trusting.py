"""Whether to trust a project, asked once where somebody can be asked."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from openheim.cli.printing import one_line

if TYPE_CHECKING:
    from openheim.config.project import Project

__all__ = ("ask_trust", "trust_for")

#: Settings and skills that a question names.
_SHOWN = 20


def trust_for(cwd: str | None, *, given: bool = False) -> bool | None:
    """What to load settings with as ``trust``, for a command that works in ``cwd``.

    On a terminal, a folder with settings of its own that nobody has decided about is asked about, and the answer kept.

    Args:
        cwd: the working directory, or None for the current one.
        given: whether ``--trust`` was given.

    Returns:
        The answer; None if nothing was asked, so that what is stored counts.

    Raises:
        StorageError: what is stored cannot be read, or the answer cannot be kept.
    """
    if given:
        return True
    if not (sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    from openheim.config.project import Project, find_project

    try:
        folder = find_project(Path(cwd) if cwd is not None else Path(os.getcwd()))
    except OSError:
        return None
    if folder is None or not Project(folder).brings():
        return None
    from openheim.config.paths import trust_file
    from openheim.config.trust import TrustStore

    if TrustStore(trust_file()).decision(folder) is not None:
        return None
    return ask_trust(Project(folder))


def ask_trust(project: Project) -> bool:
    """Asks on the terminal whether to trust a folder, and keeps the answer. Without one, the folder is not trusted."""
    _say(f"{project.folder} has settings of its own for openheim:")
    for path in project.brings():
        _say(f"  {path.relative_to(project.folder)}: {_contents(path)}")
    _say("They can change what the agent may do, which programs it starts and whom it sends your files to.")
    print("Trust this folder? [y/N] ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer:
        print(file=sys.stderr)
        return False
    from openheim.config.paths import trust_file
    from openheim.config.trust import TrustStore

    trusted = answer.strip().lower() in ("y", "yes")
    TrustStore(trust_file()).decide(project.folder, trusted=trusted)
    return trusted


def _contents(path: Path) -> str:
    from openheim.config.findings import SettingError

    if path.is_dir():
        from openheim.prompt.skills import SkillFolder

        names = SkillFolder(path, "project").names()
    elif path.is_file():
        from openheim.config.keys import shown_key
        from openheim.config.layers import settings_in
        from openheim.config.toml import read_toml

        try:
            names = [shown_key(key) for key, _value in settings_in(read_toml(path) or {})]
        except SettingError as err:
            return f"cannot be read: {err.finding.message}"
    else:
        return "no file"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more or "nothing"


def _say(text: str) -> None:
    print(one_line(text) if not text.startswith("  ") else f"  {one_line(text)}", file=sys.stderr)
