"""What the model is told about each tool.

Names, texts and order are part of the contract with clients and with sessions on disk; what was added later is optional
and stands last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from openheim_tools_shell.settings import Settings

__all__ = ("JOB_KILL", "JOB_OUTPUT", "MAX_WAIT_SECS", "execute_command_description", "execute_command_schema")

#: Seconds that one call of job_output may wait.
MAX_WAIT_SECS = 300


def execute_command_description(settings: Settings) -> str:
    """With the limit that is in force; by default the text of the contract."""
    return (
        "Execute a shell command (e.g., ls, pwd, echo). Use this for listing directories and running system commands. "
        f"Commands are killed after {settings.timeout_secs:g} seconds and output is truncated at 64 KiB per stream."
    )


def execute_command_schema(settings: Settings) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "The shell command to execute"},
            "timeout_secs": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": settings.longest_secs,
                "description": "Seconds after which the command is killed, "
                f"at most {settings.longest_secs:g}. Defaults to {settings.timeout_secs:g}, "
                "or to no limit in the background.",
            },
            "background": {
                "type": "boolean",
                "description": "Return at once with the id of a job, for servers and long builds; see job_output "
                "and job_kill. The job ends with the session at the latest. Defaults to false.",
            },
        },
        "required": ["command"],
    }


_JOB_ID: Final = {"type": "string", "description": "The id that execute_command gave for the job"}

JOB_OUTPUT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "job_id": _JOB_ID,
        "wait_secs": {
            "type": "number",
            "minimum": 0,
            "maximum": MAX_WAIT_SECS,
            "description": "Seconds to wait for the job to end before answering. Defaults to 0.",
        },
    },
    "required": ["job_id"],
}

JOB_KILL: Final[dict[str, Any]] = {"type": "object", "properties": {"job_id": _JOB_ID}, "required": ["job_id"]}
