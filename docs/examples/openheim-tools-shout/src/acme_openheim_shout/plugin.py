from __future__ import annotations

from typing import Annotated

from openheim import Tool, ToolError, hookimpl, tool


@tool(read_only=True)
async def shout(
    text: Annotated[str, "What to shout."],
    marks: Annotated[int, "How many exclamation marks follow, 0 to 10."] = 1,
) -> str:
    """Turns a text into capitals. Use it when the user wants something said loudly."""
    if not text.strip():
        raise ToolError("there is nothing to shout: text is blank")
    if not 0 <= marks <= 10:
        raise ToolError("marks must be from 0 to 10")
    return text.upper() + "!" * marks


@hookimpl
def openheim_tools() -> list[Tool]:
    return [shout]
