"""The tool ``execute_command``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim import TextBlock, ToolError, ToolResult
from openheim_tools_shell.launch import shell_launch
from openheim_tools_shell.process import CommandProcess
from openheim_tools_shell.results import failed_start, how_it_ended, leftovers, output_text, shortened
from openheim_tools_shell.schemas import execute_command_description, execute_command_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openheim import Turn
    from openheim.tools import Replay, ToolKind
    from openheim_tools_shell.confining import Confining
    from openheim_tools_shell.jobs import Jobs
    from openheim_tools_shell.settings import Settings

__all__ = ("ExecuteCommand",)

#: Seconds between two looks at what watchers can be told.
PROGRESS_SECS = 0.5


class ExecuteCommand:
    """Runs a command in a shell; see :class:`openheim.tools.Tool`."""

    name = "execute_command"
    kind: ToolKind = "execute"
    read_only = False
    #: What a command that a crash cut short has done already, nobody knows.
    replay: Replay = "ask"
    approval_scope = "arguments"

    def __init__(self, settings: Settings, jobs: Jobs, confining: Confining) -> None:
        self._settings = settings
        self._confining = confining
        self._jobs = jobs
        self.description = execute_command_description(settings)
        self.parameters: Mapping[str, Any] = execute_command_schema(settings)

    def target(self, arguments: dict[str, Any], turn: Turn) -> str | None:
        command = arguments.get("command")
        return command if isinstance(command, str) and command.strip() else None

    def keeps_session(self, session_id: str) -> bool:
        return self._jobs.keep(session_id)

    async def close_session(self, session_id: str) -> None:
        await self._jobs.close(session_id)
        await self._confining.close_session(session_id)

    async def run(self, arguments: dict[str, Any], turn: Turn) -> ToolResult:
        command: str = arguments["command"]
        launch = await self._confining.confined(shell_launch(command, turn, self._settings), turn)
        timeout_secs: float | None = arguments.get("timeout_secs")
        if arguments.get("background"):
            text = await self._jobs.start(launch, turn, timeout_secs)
        else:
            process = CommandProcess(launch)
            text = await self._in_foreground(process, turn, timeout_secs or self._settings.timeout_secs)
        return ToolResult((TextBlock(text),), display={"title": shortened(command)})

    async def _in_foreground(self, process: CommandProcess, turn: Turn, timeout_secs: float) -> str:
        """The text of the result; raises ToolError for a command that failed or took too long."""
        told = ""

        def tell() -> None:
            nonlocal told
            line = shortened(process.stdout.last_line() or process.stderr.last_line())
            if line and line != told:
                told = line
                turn.progress(line)

        process.start()
        try:
            timed_out = not await process.wait(timeout_secs, each=tell, every_secs=PROGRESS_SECS)
        finally:
            # Also when it is cancelled: then nothing of it may go on.
            await process.end()
        ending = process.ending
        if ending is None:
            raise ToolError("the command did not end although it was killed; parts of it may still be running")
        if ending.failure is not None:
            raise failed_start(process, turn.cwd)
        output = output_text(process.stdout, process.stderr, turn.result_limit_bytes)
        notes = leftovers(ending)
        if ending.status == 0 and not timed_out:
            return _joined(output or "(no output)", *notes)
        if timed_out:
            what = f"the command was killed after {timeout_secs:g} s, the time limit"
            notes.append(
                f"[timeout_secs may be up to {self._settings.longest_secs:g}; with background=true there is no limit]"
            )
        else:
            what = f"the command {how_it_ended(ending)}"
        raise ToolError(_joined(what + (", with this output:" if output else ", without output"), output, *notes))


def _joined(*parts: str) -> str:
    """The parts, each on lines of its own."""
    filled = [part for part in parts if part]
    return "".join(part if part.endswith("\n") or part is filled[-1] else part + "\n" for part in filled)
