"""How a command's output and its end are put into words."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from openheim import ToolError

if TYPE_CHECKING:
    from openheim_tools_shell.kept import KeptOutput
    from openheim_tools_shell.process import CommandProcess, Ending

__all__ = ("MAX_LINE", "failed_start", "how_it_ended", "leftovers", "output_text", "shortened")

#: Characters of one line that watchers are shown, and of a command in a title.
MAX_LINE = 200

#: Bytes of a result that are kept free for what is said beside the output.
_NOTES_BYTES = 1536

_ADVICE = "send the output to a file (> out.log 2>&1) and read or search that to see all of it"


def output_text(stdout: KeptOutput, stderr: KeptOutput, limit_bytes: int, *, advice: str = _ADVICE) -> str:
    """What both streams held since they were last asked, standard error below and labelled; blank if nothing.

    Args:
        limit_bytes: of the whole result. Where both do not fit, each has its half, and what one does not need the other
            gets.
    """
    out, err = stdout.take(), stderr.take()
    room = max(limit_bytes - _NOTES_BYTES, 512)
    err_room = max(room // 2, room - out.size)
    parts = []
    if out.total:
        parts.append(out.text(max(room // 2, room - err.size), advice))
    if err.total:
        parts.append("[stderr]\n" + err.text(err_room, advice))
    return "".join(part if part.endswith("\n") or part is parts[-1] else part + "\n" for part in parts)


def how_it_ended(ending: Ending) -> str:
    """The end of a sentence that begins with the command: ``exit status 3``, or the signal that ended it."""
    if ending.timed_out:
        return "was ended: its time was over"
    if ending.status is None:
        return "was ended"
    code = os.waitstatus_to_exitcode(ending.status)
    if code < 0:
        return f"was killed by signal {-code}{_name_of(-code)}"
    if code > 128 and (name := _name_of(code - 128)):
        return f"ended with exit status {code}, as shells say of what was killed by signal {code - 128}{name}"
    return f"ended with exit status {code}"


def _name_of(number: int) -> str:
    try:
        return f" ({signal.Signals(number).name})"
    except ValueError:
        return ""


def leftovers(ending: Ending) -> list[str]:
    """Notes on what the command left behind."""
    notes = []
    if ending.left:
        notes.append(
            f"[the command left running, and it was ended: {ending.left}; to keep something running, "
            "start it with background=true]"
        )
    if ending.alive:
        notes.append(f"[{ending.alive} of its processes could not be ended]")
    if ending.unattended:
        notes.append(
            "[what supervised it was killed; what could be found of it was ended, but parts may still be running]"
        )
    elif ending.orphaned:
        notes.append("[its supervisor was killed, so that it was ended with all that it had started]")
    return notes


def failed_start(process: CommandProcess, directory: object) -> ToolError:
    """The error for a command that was not started."""
    assert process.ending is not None and process.ending.failure is not None
    step, err = process.ending.failure
    reason = err.strerror or str(err)
    if step == "chdir":
        return ToolError(f"the command was not run: its directory {str(directory)!r} cannot be entered: {reason}")
    if step == "exec":
        return ToolError(f"the shell could not be started: {reason}")
    return ToolError(f"the command could not be started: {reason}")


def shortened(line: str) -> str:
    """One line for watchers."""
    line = " ".join(line.split())
    return line if len(line) <= MAX_LINE else line[: MAX_LINE - 1] + "…"
