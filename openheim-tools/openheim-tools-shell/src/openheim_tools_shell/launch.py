"""From the text of a command to what the system is asked to run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openheim import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from openheim import Turn
    from openheim_tools_shell.settings import Settings

__all__ = ("Launch", "interpreter_environment", "shell_launch")

#: Linux takes no single argument longer than this, its closing NUL included; others have less room in all.
_MAX_COMMAND_BYTES = 128 * 1024 - 1

#: What an interpreter may need to start. The command's own environment goes through the socket.
_INTERPRETER_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


@dataclass(frozen=True, slots=True)
class Launch:
    """What is started, where, and with which environment: all of it, nothing is inherited.

    Args:
        around_supervisor: the command line of a sandbox that the supervisor is to run in, with the command.
    """

    arguments: Sequence[str]
    directory: Path
    environment: Mapping[str, str]
    around_supervisor: Sequence[str] = ()

    def request(self, variables: Mapping[str, str]) -> bytes:
        """As the supervisor reads it, with further variables; none of the texts may hold a NUL."""
        fields = [os.fsencode(self.directory), str(len(self.arguments)).encode(), *map(os.fsencode, self.arguments)]
        fields += [os.fsencode(f"{name}={value}") for name, value in {**self.environment, **variables}.items()]
        data = b"".join(part + b"\0" for part in fields)
        return len(data).to_bytes(8, "big") + data


def shell_launch(command: str, turn: Turn, settings: Settings) -> Launch:
    """The command as a shell runs it in the turn's directory, with the environment that children may see.

    Raises:
        ToolError: no shell takes such a text.
    """
    if not command.strip():
        raise ToolError("the command is empty")
    if "\0" in command:
        raise ToolError("the command holds a NUL character, which no command can")
    try:
        size = len(os.fsencode(command))
    except UnicodeEncodeError as err:
        raise ToolError(f"the command holds characters that cannot be encoded: {err}") from err
    if size > _MAX_COMMAND_BYTES:
        raise ToolError(
            f"the command is {size:,} bytes long, and the system takes {_MAX_COMMAND_BYTES:,} at most",
            hint="write it to a file and run that with sh",
        )
    return Launch(("/bin/sh", "-c", command), turn.cwd, command_environment(turn, settings))


def interpreter_environment() -> dict[str, str]:
    """The environment of what is started around commands: nothing of the user's."""
    return {name: os.environ[name] for name in _INTERPRETER_ENVIRONMENT if name in os.environ}


def command_environment(turn: Turn, settings: Settings) -> dict[str, str]:
    """The turn's, and what the user has named in ``env_allow`` although it looks like a secret."""
    named = {name: os.environ[name] for name in settings.env_allow if name in os.environ}
    return {**turn.env, **named}
