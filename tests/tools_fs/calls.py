"""Calling the file tools as the agent loop does."""

from __future__ import annotations

from typing import Any

from openheim import TextBlock, ToolResult, Turn
from openheim.tools import tool_target
from openheim_tools_fs.plugin import openheim_tools

__all__ = ("TOOLS", "call", "call_for_result", "target")

TOOLS = {tool.name: tool for tool in openheim_tools()}


async def call_for_result(turn: Turn, name: str, /, **arguments: Any) -> ToolResult:
    result = await TOOLS[name].run(arguments, turn)
    assert isinstance(result, ToolResult)
    return result


async def call(turn: Turn, name: str, /, **arguments: Any) -> str:
    """The text that the model gets."""
    (block,) = (await call_for_result(turn, name, **arguments)).content
    assert isinstance(block, TextBlock)
    return block.text


def target(turn: Turn, name: str, /, **arguments: Any) -> str | None:
    return tool_target(TOOLS[name], arguments, turn)
