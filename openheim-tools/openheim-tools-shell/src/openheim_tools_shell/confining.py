"""The sandbox of a session's commands, as the settings ask for it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from openheim import ToolError
from openheim_tools_shell.private import PrivateFolders
from openheim_tools_shell.sandbox import Confinement, Layout, choose, confine
from openheim_tools_shell.sandbox.links import follow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openheim import ToolsContext, Turn
    from openheim_tools_shell.launch import Launch
    from openheim_tools_shell.settings import Settings

__all__ = ("Confining", "check_hidden", "layout_of", "not_hidden")


class Confining:
    """Puts commands into the sandbox, and looks after what that takes on disk."""

    def __init__(self, settings: Settings, context: ToolsContext) -> None:
        self._settings = settings
        # With the places that they are now, since commands may be able to change links on the way.
        resolved = (Path(os.path.realpath(path)) for path in context.private_paths)
        self._private_paths = (*context.private_paths, *resolved)
        self._folders = PrivateFolders(context.data_dir / "shell")
        self._told: set[str] = set()
        self._hidden: dict[str, set[str]] = {}

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
        self._hidden.pop(session_id, None)
        await anyio.to_thread.run_sync(self._folders.remove, session_id)

    def _confine(self, turn: Turn) -> Confinement:
        settings, (work_dir, *others) = self._settings, turn.roots
        # A private folder is made only where there is a sandbox.
        layout = layout_of(settings, work_dir, Path("/"), others=others, private=self._private_paths)
        kind, notice = choose(settings.sandbox, network=settings.network, writable=layout.writable_places())
        if kind == "none":
            return Confinement("none", notice=notice)
        layout = replace(layout, private_dir=self._folders.of_session(turn.session_id))
        if kind == "landlock" and (reason := not_hidden(settings, layout)):
            raise ToolError(reason, hint='set [tools.shell] sandbox = "bwrap", or move what is hidden elsewhere')
        check_hidden(settings, layout)
        if kind == "bwrap":
            self._check_still_hidden(turn.session_id, layout)
        return confine(kind, layout)

    def _check_still_hidden(self, session_id: str, layout: Layout) -> None:
        """Refuses what would be visible under another name by now.

        Raises:
            ToolError: something that was hidden from the session's commands where they can write is gone.
        """
        now = set(layout.in_writable(layout.hidden))
        gone = self._hidden.setdefault(session_id, set()) - now
        if gone:
            raise ToolError(
                f"{', '.join(sorted(gone))} was hidden from the commands of this session and is not there any more: "
                "under another name they could read it",
                hint="put it back, or start a new session once it is removed for good",
            )
        self._hidden[session_id] = now


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


def check_hidden(settings: Settings, layout: Layout) -> None:
    """Refuses to hide what a link leads to that commands can remove: the next one would see it.

    Raises:
        ToolError: the settings ask for that.
    """
    writable = layout.writable_places()
    if "/" in writable:
        return
    for place in map(follow, _paths_of(settings.hidden, layout.work_dir)):
        if place.exists and (link := place.link_in(writable)):
            raise ToolError(
                f"the settings hide {place.name}, which the link {link} leads to {place.target}; but commands could "
                "remove the link, and the next one would see what it leads to",
                hint=f"name the place itself in [tools.shell] hidden: {place.target}",
            )


def _paths_of(names: tuple[str, ...], work_dir: Path) -> tuple[Path, ...]:
    """Paths as they stand in the settings: ``~`` is the home folder; relative ones count from the work directory."""
    return tuple(work_dir / os.path.expanduser(name) for name in names)
