"""The sandbox of a session's commands, as the settings ask for it."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio.to_thread

from openheim import ToolError
from openheim_tools_shell.private import PrivateFolders
from openheim_tools_shell.sandbox import Confinement, Layout, choose, confine

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from openheim import ToolsContext, Turn
    from openheim_tools_shell.launch import Launch
    from openheim_tools_shell.settings import Settings

__all__ = ("Confining", "layout_of", "not_hidden")


class Confining:
    """Puts commands into the sandbox, and looks after what that takes on disk."""

    def __init__(self, settings: Settings, context: ToolsContext) -> None:
        self._settings = settings
        self._private_paths = context.private_paths
        self._folders = PrivateFolders(context.data_dir / "shell")
        self._told: set[str] = set()

    async def confined(self, launch: Launch, turn: Turn) -> Launch:
        """The same command in the sandbox.

        Raises:
            ToolError: the sandbox that the settings ask for cannot be had.
        """
        if self._settings.sandbox == "none" and self._settings.network:
            return launch
        found = await anyio.to_thread.run_sync(self._confine, turn)
        if found.notice and turn.session_id not in self._told:
            self._told.add(turn.session_id)
            turn.progress(found.notice)
        return replace(
            launch,
            arguments=(*found.around_command, *launch.arguments),
            environment={**launch.environment, **found.environment},
            around_supervisor=found.around_supervisor,
        )

    async def close_session(self, session_id: str) -> None:
        """Removes what the session's commands left in their private folder."""
        self._told.discard(session_id)
        await anyio.to_thread.run_sync(self._folders.remove, session_id)

    def _confine(self, turn: Turn) -> Confinement:
        settings, (work_dir, *others) = self._settings, turn.roots
        kind, notice = choose(settings.sandbox, network=settings.network)
        if kind == "none":
            return Confinement("none", notice=notice)
        layout = layout_of(
            settings, work_dir, self._folders.of_session(turn.session_id), others=others, private=self._private_paths
        )
        if kind == "landlock" and (reason := not_hidden(settings, layout)):
            raise ToolError(reason, hint='set [tools.shell] sandbox = "bwrap", or move what is hidden elsewhere')
        return confine(kind, layout)


def layout_of(
    settings: Settings,
    work_dir: Path,
    private_dir: Path,
    *,
    others: Sequence[Path] = (),
    private: Sequence[Path] = (),
) -> Layout:
    """What commands may reach with these settings.

    Args:
        private_dir: the session's folder.
        others: further roots of the session.
        private: what is openheim's alone.
    """
    return Layout(
        work_dir,
        private_dir,
        writable=(*others, *_paths_of(settings.writable, work_dir)),
        hidden=(*private, *_paths_of(settings.hidden, work_dir)),
        network=settings.network,
    )


def not_hidden(settings: Settings, layout: Layout) -> str:
    """What the settings hide and Landlock cannot, as a sentence; ``""`` if there is nothing of the kind.

    A rule of Landlock allows a folder with all that is in it, now and later.
    """
    open_places = layout.in_writable(_paths_of(settings.hidden, layout.work_dir))
    if not open_places:
        return ""
    return f"the settings hide {', '.join(open_places)}, and Landlock cannot hide what is in a folder to write to"


def _paths_of(names: tuple[str, ...], work_dir: Path) -> tuple[Path, ...]:
    """Paths as they stand in the settings: ``~`` is the home folder; relative ones count from the work directory."""
    return tuple(work_dir / os.path.expanduser(name) for name in names)
