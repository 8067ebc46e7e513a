"""Puts the system text together, in an order that keeps its beginning the same from session to session.

Base sentence, identity, skills, instructions (``AGENTS.md``), then what belongs to the session: its directory, platform
and date of start. The text of a session does not change between its calls, so that a provider's cache of the prefix
holds.
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from openheim._reading import read_regular
from openheim.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ("DEFAULT_IDENTITY", "SEPARATOR", "read_identity", "system_text")

#: Longest ``system.md``. More than that no model would take.
MAX_IDENTITY_BYTES = 4 * 1024 * 1024

SEPARATOR = "\n\n---\n\n"

_BASE = "You are openheim, a general-purpose agent that works through tools and runs on many model providers."

#: Used when there is no ``system.md``; ``openheim init`` writes the same text there.
DEFAULT_IDENTITY = """\
Answer briefly and plainly. Use the tools to look at real files before you say anything about them, and name the files
that you used. Change files only when asked to, and say what you changed. When something fails, say so and why.
"""


def read_identity(path: Path) -> str:
    """The text of ``system.md``, or the default identity if there is none.

    Raises:
        StorageError: the file cannot be read or is not UTF-8.
    """
    try:
        return read_regular(path, limit=MAX_IDENTITY_BYTES).decode("utf-8-sig")
    except FileNotFoundError:
        return DEFAULT_IDENTITY
    except UnicodeDecodeError as err:
        raise StorageError(f"{path} is not UTF-8", hint="save it as UTF-8") from err
    except OSError as err:
        raise StorageError(
            f"cannot read {path}: {err.strerror}", hint="check what stands there, and its permissions"
        ) from err


def system_text(
    *,
    identity: str,
    skills: Sequence[tuple[str, str]] = (),
    instructions: Sequence[tuple[Path, str]] = (),
    cwd: Path | None = None,
    started: str = "",
) -> str:
    """The system text of a session.

    Args:
        identity: text of ``system.md``, kept as it is; left out when blank.
        skills: names and texts, in order.
        instructions: paths and texts of the ``AGENTS.md`` files that apply, in order.
        cwd: the session's directory.
        started: date on which the session started, ``YYYY-MM-DD``.
    """
    parts = [_BASE]
    if identity.strip():
        parts.append(f"How you are to behave:\n\n{identity}")
    if skills:
        parts.append(
            "Skills that you have:\n\n" + SEPARATOR.join(f"### {name}\n\n{content}" for name, content in skills)
        )
    parts += [f"Instructions from {_shown(path)}:\n\n{text}" for path, text in instructions]
    facts = []
    if cwd is not None:
        facts.append(f"Working directory: {_shown(cwd)}")
    facts.append(f"Platform: {platform.system()} {platform.machine()}")
    if started:
        facts.append(f"Session started on: {started}")
    parts.append("\n".join(facts))
    return SEPARATOR.join(parts)


def _shown(path: Path) -> str:
    """The path on one line. Folders may have any name, one that reads like a part of the prompt too."""
    return "".join(character if character.isprintable() else "?" for character in str(path))
