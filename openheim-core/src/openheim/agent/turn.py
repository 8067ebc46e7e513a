"""What a running tool sees of the turn that it belongs to."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import anyio

from openheim.agent.results import RESULT_LIMIT_BYTES
from openheim.errors import described
from openheim.events import ToolUpdate
from openheim.tools import CLOSE_SECS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from openheim.events import Event
    from openheim.files import Files
    from openheim.tools import Tool

_log = logging.getLogger(__name__)

__all__ = ("CallTurn", "ToolEnvironment")


class ToolEnvironment:
    """What all calls of a session share: where they may work.

    Args:
        make_env: makes the environment of child processes when it is first asked for.
    """

    def __init__(self, session_id: str, files: Files, *, make_env: Callable[[], Mapping[str, str]]) -> None:
        self.session_id = session_id
        self.files = files
        self.result_limit_bytes = RESULT_LIMIT_BYTES
        self.takes_images = False
        self._make_env = make_env
        self._env: Mapping[str, str] | None = None
        self._closing: dict[str, Tool] = {}

    @property
    def env(self) -> Mapping[str, str]:
        if self._env is None:
            self._env = self._make_env()
        return self._env

    def used(self, tool: Tool) -> None:
        """Takes note of a tool that is called, if it wants to know of the session's end."""
        if self.session_id and hasattr(tool, "close_session"):
            self._closing[tool.name] = tool

    @property
    def is_kept(self) -> bool:
        """Whether a tool has something going on for the session."""
        return any(map(self._keeps, self._closing.values()))

    @property
    def has_to_close(self) -> bool:
        return bool(self._closing)

    async def close(self) -> None:
        """Tells the tools that the session has ended, and waits for them, for a while; nothing keeps it from that."""
        tools, self._closing = self._closing, {}
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as group:
                for tool in tools.values():
                    group.start_soon(self._close, tool)

    def _keeps(self, tool: Tool) -> bool:
        keeps = getattr(tool, "keeps_session", None)
        try:
            return keeps is not None and bool(keeps(self.session_id))
        except (Exception, SystemExit) as err:
            _log.warning("tool %s cannot say whether it keeps the session: %s", tool.name, described(err))
            return False

    async def _close(self, tool: Any) -> None:
        with anyio.move_on_after(CLOSE_SECS) as limit:
            try:
                await tool.close_session(self.session_id)
            except (Exception, SystemExit) as err:
                _log.warning("tool %s failed to close the session: %s", tool.name, described(err))
        if limit.cancelled_caught:
            _log.warning("tool %s did not close the session within %g s", tool.name, CLOSE_SECS)


class CallTurn:
    """The :class:`~openheim.tools.Turn` that one call is given."""

    __slots__ = ("_ask", "_call_id", "_environment", "_is_cancelled", "_publish", "_settings")

    def __init__(
        self,
        environment: ToolEnvironment,
        call_id: str,
        *,
        publish: Callable[[Event], None],
        is_cancelled: Callable[[], bool],
        ask: Callable[[str], Awaitable[bool]],
        settings: Mapping[str, Any],
    ) -> None:
        self._environment = environment
        self._settings = settings
        self._call_id = call_id
        self._publish = publish
        self._is_cancelled = is_cancelled
        self._ask = ask

    @property
    def session_id(self) -> str:
        return self._environment.session_id

    @property
    def cwd(self) -> Path:
        return self._environment.files.cwd

    @property
    def roots(self) -> Sequence[Path]:
        return (self._environment.files.root,)

    @property
    def files(self) -> Files:
        return self._environment.files

    @property
    def env(self) -> Mapping[str, str]:
        return self._environment.env

    @property
    def settings(self) -> Mapping[str, Any]:
        return self._settings

    @property
    def cancelled(self) -> bool:
        return self._is_cancelled()

    @property
    def result_limit_bytes(self) -> int:
        return self._environment.result_limit_bytes

    @property
    def takes_images(self) -> bool:
        return self._environment.takes_images

    def progress(self, text: str) -> None:
        self._publish(ToolUpdate(self._call_id, progress=str(text)))

    async def ask(self, question: str) -> bool:
        return await self._ask(str(question))
