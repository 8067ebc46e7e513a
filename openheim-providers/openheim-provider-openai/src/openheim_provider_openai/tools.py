"""Tools as both wires name and describe them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from openheim import InvalidRequestError, ToolNames, wire_tool_name
from openheim.jsontext import wire_bytes
from openheim_provider_openai.schemas import itemised, object_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openheim import ToolSpec

__all__ = ("EncodedTools", "ToolEncoder", "chat_tool", "dumped", "responses_tool")


class EncodedTools(NamedTuple):
    """The tools of a request.

    Args:
        field: the bytes of the field, with a comma before it; empty for no tools.
        names: the way back from names that were changed, or None if all are as they were.
    """

    field: bytes
    names: ToolNames | None


class ToolEncoder:
    """Encodes tools, once for each tuple of them. Sessions with the same tools share the bytes.

    Args:
        describe: a tool in the form of the wire.
        reduces: whether the service takes plain objects only.
    """

    _KEPT = 64

    def __init__(self, describe: Callable[[ToolSpec, Mapping[str, Any]], dict[str, Any]], *, reduces: bool) -> None:
        self._describe = describe
        self._reduces = reduces
        self._known: dict[int, tuple[tuple[ToolSpec, ...], EncodedTools]] = {}

    def encode(self, tools: tuple[ToolSpec, ...]) -> EncodedTools:
        """See :class:`EncodedTools`.

        Raises:
            InvalidRequestError: a schema has no form in JSON.
        """
        known = self._known.get(id(tools))
        if known is None or known[0] is not tools:
            if len(self._known) >= self._KEPT:
                self._known.clear()
            known = self._known[id(tools)] = (tools, self._encode(tools))
        return known[1]

    def _encode(self, tools: tuple[ToolSpec, ...]) -> EncodedTools:
        if not tools:
            return EncodedTools(b"", None)
        encoded = b",".join(map(self._encode_tool, tools))
        changed = any(wire_tool_name(tool.name) != tool.name for tool in tools)
        names = ToolNames(tool.name for tool in tools) if changed else None
        return EncodedTools(b',"tools":[' + encoded + b"]", names)

    def _encode_tool(self, tool: ToolSpec) -> bytes:
        parameters = object_schema(tool.parameters) if self._reduces else itemised(tool.parameters)
        return dumped(f"the schema of tool {tool.name!r}", self._describe(tool, parameters))


def chat_tool(tool: ToolSpec, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """A tool as the Chat Completions wire describes it, with its parameters in the form that the service takes."""
    function = {"name": wire_tool_name(tool.name), "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": function}


def responses_tool(tool: ToolSpec, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """A tool as the Responses wire describes it; see :func:`chat_tool`."""
    return {
        "type": "function",
        "name": wire_tool_name(tool.name),
        "description": tool.description,
        "parameters": parameters,
        # Left out, the service would take the schema for a strict one, and refuse one that is not.
        "strict": False,
    }


def dumped(what: str, value: Any) -> bytes:
    """``value`` as JSON; ``what`` names it in an error.

    Raises:
        InvalidRequestError: it has no form in JSON.
    """
    try:
        return wire_bytes(value)
    except (ValueError, TypeError, RecursionError) as err:
        raise InvalidRequestError(f"{what} cannot be sent as JSON: {err}") from err
