"""Bodies of requests. Messages, tools and the system text are turned into bytes once and kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim import Fragments, InvalidRequestError, ToolNames, wire_tool_name
from openheim.jsontext import wire_bytes
from openheim_provider_gemini.contents import FRAMES, WIRE, ContentEncoder
from openheim_provider_gemini.schemas import reduced, reduced_parameters
from openheim_provider_gemini.thinking import NEWEST, generation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openheim import Message, ModelRequest, ToolSpec

__all__ = ("is_newest", "request_body", "response_format", "tool_names")

#: The service asks for a message of the user at the end.
_GO_ON = b',{"role":"user","parts":[{"text":"Go on."}]}'


def is_newest(model: str) -> bool:
    """Whether a model is of generation 3 or later."""
    version = generation(model)
    return version is not None and version >= NEWEST


def request_body(request: ModelRequest, parameters: Mapping[str, Any], provider: str) -> bytes:
    """The body of a request for a reply.

    Args:
        provider: the entry that is asked.
        parameters: its other fields, such as ``generationConfig``.

    Raises:
        InvalidRequestError: a tool's schema, or a parameter, has no form in JSON.
    """
    newest = is_newest(request.model)
    kept = request.cache.get(WIRE)
    if not isinstance(kept, _Kept) or (kept.newest, kept.provider) != (newest, provider):
        kept = request.cache[WIRE] = _Kept(newest, provider)
    contents = kept.contents_of(request.messages)
    rest = _dumped("a parameter of the request", parameters)[1:] if parameters else b"}"
    return b"".join(
        (
            b'{"contents":[',
            contents.buffer,
            _GO_ON if contents.fragments and contents.fragments[-1].role == "model" else b"",
            b"]",
            kept.system_bytes(_system_text(request)),
            _offered(request.tools)[1],
            b"," if parameters else b"",
            rest,
        )
    )


def response_format(request: ModelRequest) -> dict[str, Any]:
    """The fields of ``generationConfig`` that ask for JSON of a form."""
    if request.response_schema is None or _says_schema(request):
        return {}
    return {"responseMimeType": "application/json", "responseJsonSchema": reduced(request.response_schema)}


def tool_names(tools: tuple[ToolSpec, ...]) -> ToolNames:
    """Finds the tools by the names that were sent."""
    return _offered(tools)[2]


def _says_schema(request: ModelRequest) -> bool:
    """Whether the form of the reply has to be asked for in words: older models take either tools or a form."""
    version = generation(request.model)
    return bool(request.tools) and version is not None and version < NEWEST


def _system_text(request: ModelRequest) -> str:
    if request.response_schema is None or not _says_schema(request):
        return request.system
    schema = _dumped("the schema of the reply", dict(request.response_schema)).decode()
    asked = f"When you give your final answer, write nothing but JSON that matches this schema:\n{schema}"
    return f"{request.system}\n\n{asked}" if request.system.strip() else asked


class _Kept:
    """Bytes of one session's messages and system text."""

    __slots__ = ("_contents", "_messages", "_system", "newest", "provider")

    def __init__(self, newest: bool, provider: str) -> None:
        self.newest = newest
        self.provider = provider
        self._contents = Fragments(ContentEncoder(newest, provider), FRAMES)
        self._messages: list[Message] = []
        self._system: tuple[str, bytes] = ("", b"")

    def contents_of(self, messages: Sequence[Message]) -> Fragments:
        """The messages on the wire."""
        known = len(self._messages)
        if list(messages[:known]) != self._messages:
            # Not those of before and more. Ids depend on what is before them, so all are made again.
            self._contents = Fragments(ContentEncoder(self.newest, self.provider), FRAMES)
            self._messages = []
            known = 0
        self._contents.update(messages)
        self._messages += messages[known:]
        return self._contents

    def system_bytes(self, system: str) -> bytes:
        if self._system[0] != system:
            encoded = wire_bytes({"parts": [{"text": system}]})
            self._system = (system, b',"systemInstruction":' + encoded if system.strip() else b"")
        return self._system[1]


_Offered = tuple[tuple["ToolSpec", ...], bytes, ToolNames]

_KNOWN_TOOLS = 64
_known_tools: dict[int, _Offered] = {}


def _offered(tools: tuple[ToolSpec, ...]) -> _Offered:
    """The tools, their bytes and their names. Sessions with the same tools share all of it."""
    known = _known_tools.get(id(tools))
    if known is None or known[0] is not tools:
        encoded = b",".join(map(_declaration, tools))
        field = b',"tools":[{"functionDeclarations":[' + encoded + b"]}]" if encoded else b""
        known = (tools, field, ToolNames(tool.name for tool in tools))
        if len(_known_tools) >= _KNOWN_TOOLS:
            _known_tools.clear()
        _known_tools[id(tools)] = known
    return known


def _declaration(tool: ToolSpec) -> bytes:
    declaration: dict[str, Any] = {
        "name": wire_tool_name(tool.name),
        "description": tool.description.strip() or tool.name,
    }
    parameters = reduced_parameters(tool.parameters)
    if parameters is not None:
        declaration["parametersJsonSchema"] = parameters
    return _dumped(f"the schema of tool {tool.name!r}", declaration)


def _dumped(what: str, value: Any) -> bytes:
    try:
        return wire_bytes(value)
    except (ValueError, TypeError, RecursionError) as err:
        raise InvalidRequestError(f"{what} cannot be sent as JSON: {err}") from err
