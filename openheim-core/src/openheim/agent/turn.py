"""What a running tool sees of the turn that it belongs to."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from openheim.agent.results import RESULT_LIMIT_BYTES
from openheim.events import ToolUpdate

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from openheim.events import Event
    from openheim.files import Files

__all__ = ("CallTurn", "ToolEnvironment", "filtered_environment")

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|COOKIE|SESSION_ID|PRIVATE", re.IGNORECASE)
_HARMLESS = frozenset(("SSH_AUTH_SOCK", "XAUTHORITY", "KEYBOARD"))


def filtered_environment(environment: Mapping[str, str], secrets: Sequence[str] = ()) -> dict[str, str]:
    """The variables that a child process may see: none whose name looks like a secret or whose value is one.

    Args:
        secrets: values that must not be passed on under any name.
    """
    hidden = {secret for secret in secrets if secret}
    return {
        name: value
        for name, value in environment.items()
        if (name in _HARMLESS or not _SECRET_NAME.search(name)) and value not in hidden
    }


class ToolEnvironment:
    """What all calls of a session share: where they may work."""

    def __init__(self, session_id: str, files: Files, *, secrets: Sequence[str] = ()) -> None:
        self.session_id = session_id
        self.files = files
        self.result_limit_bytes = RESULT_LIMIT_BYTES
        self._secrets = tuple(secrets)
        self._env: Mapping[str, str] | None = None

    @property
    def env(self) -> Mapping[str, str]:
        if self._env is None:
            self._env = filtered_environment(os.environ, self._secrets)
        return self._env


class CallTurn:
    """The :class:`~openheim.tools.Turn` that one call is given."""

    __slots__ = ("_ask", "_call_id", "_environment", "_is_cancelled", "_publish")

    def __init__(
        self,
        environment: ToolEnvironment,
        call_id: str,
        *,
        publish: Callable[[Event], None],
        is_cancelled: Callable[[], bool],
        ask: Callable[[str], Awaitable[bool]],
    ) -> None:
        self._environment = environment
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
    def cancelled(self) -> bool:
        return self._is_cancelled()

    @property
    def result_limit_bytes(self) -> int:
        return self._environment.result_limit_bytes

    def progress(self, text: str) -> None:
        self._publish(ToolUpdate(self._call_id, progress=text))

    async def ask(self, question: str) -> bool:
        return await self._ask(question)
