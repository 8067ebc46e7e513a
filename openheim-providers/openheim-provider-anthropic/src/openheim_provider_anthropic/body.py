"""Bodies of requests.

Every message is turned into bytes once and kept, so that a request costs a copy of them and no more, and so that what
was sent before is sent again to the byte. The only bytes that move are the marks up to which the service keeps its
work on a prompt; they stand behind the tools, the system text and the last two messages of the user, the second of
which is where the request before had its last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim import Fragments, InvalidRequestError, ToolNames, wire_tool_name
from openheim.jsontext import wire_bytes
from openheim_provider_anthropic.history import WIRE, MessageEncoder, TurnBeginning, server_calls_settled
from openheim_provider_anthropic.schemas import input_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openheim import Message, ModelRequest, ToolSpec

__all__ = ("Conversation", "Tools", "encoded", "tools_of")

_CACHE_KEY = "anthropic-messages"

_FRAMES = {
    "user": (b'{"role":"user","content":[', b"]}"),
    "assistant": (b'{"role":"assistant","content":[', b"]}"),
}
#: The service asks for a message of the user at both ends.
_HEADLESS = b'{"role":"user","content":[{"type":"text","text":"[The beginning of this conversation is missing.]"}]}'
_GO_ON = b'{"role":"user","content":[{"type":"text","text":"Go on."}]}'
#: The service refuses calls in a request that offers no tool.
_NO_TOOL = b'{"name":"none","description":"No tool is available now.","input_schema":{"type":"object"}}'
_NO_TOOL_CHOICE = b',"tool_choice":{"type":"none"}'

#: Messages of the user that get a mark.
_MARKED = 2


class Conversation:
    """The bytes of one session's messages, system text and tools, and what they were made from.

    Args:
        provider: the entry that is asked, which gets back what its own service signed.
    """

    def __init__(self, provider: str) -> None:
        self.provider = provider
        self._encoder = MessageEncoder(provider)
        self._fragments = Fragments(self._encoder, _FRAMES)
        self._system: tuple[str, bytes] = ("", b"")
        #: How far the conversation was looked through, and what was found: stored messages that are sent in another
        #: form, and how the turn that goes on begins.
        self._looked: tuple[int, Message | None] = (0, None)
        self._settled: dict[Message, Message] = {}
        self._turn = TurnBeginning(provider)

    @classmethod
    def of(cls, request: ModelRequest, provider: str) -> Conversation:
        """The one kept for the session that asks, brought to the messages of the request."""
        kept = request.cache.get(_CACHE_KEY)
        if not isinstance(kept, cls) or kept.provider != provider:
            kept = request.cache[_CACHE_KEY] = cls(provider)
        kept._fragments.update(kept._sendable(request.messages))
        return kept

    @property
    def lacks_thinking(self) -> bool:
        """Whether the turn that goes on has no thinking to begin with; see :class:`TurnBeginning`."""
        return self._turn.lacks_thinking

    def body(
        self,
        request: ModelRequest,
        fields: Mapping[str, Any],
        *,
        mark: bytes = b"",
        server_tools: tuple[bytes, ...] = (),
        instruction: str = "",
    ) -> bytes:
        """The body of the request that this was brought to.

        Args:
            fields: its fields beside model, system text, tools and messages; at least one.
            mark: the ``cache_control`` of blocks with a comma before it, or nothing.
            server_tools: tools of the service itself, encoded.
            instruction: more system text, which is not marked.

        Raises:
            InvalidRequestError: a tool's schema, or a field, has no form in JSON.
        """
        # What may fail comes first: an error that is kept would keep the views of the conversation taken below.
        end = encoded("a field of the request", dict(fields))[1:]
        system = self._system_bytes(request.system)
        tools = [*tools_of(request.tools).encoded, *server_tools]
        choice = b""
        if not tools and self._encoder.calls:
            tools, choice = [_NO_TOOL], _NO_TOOL_CHOICE
        pieces: list[bytes | memoryview] = [b'{"model":', wire_bytes(request.model)]
        blocks = [system[:-1] + mark + b"}"] if system else []
        if instruction:
            blocks.append(wire_bytes({"type": "text", "text": instruction}))
        if blocks:
            pieces += (b',"system":[', b",".join(blocks), b"]")
        if tools:
            pieces += (b',"tools":[', b",".join((*tools[:-1], tools[-1][:-1])), mark, b"}]", choice)
        pieces.append(b',"messages":[')
        self._add_messages(pieces, request.messages, mark)
        pieces += (b"],", end)
        return b"".join(pieces)

    def _add_messages(self, pieces: list[bytes | memoryview], messages: Sequence[Message], mark: bytes) -> None:
        fragments = self._fragments.fragments
        if not fragments or fragments[0].role != "user":
            pieces += (_HEADLESS, b",") if fragments else (_HEADLESS,)
        begin = 0
        # Views, so that the conversation is copied once only; none may be left when the next message is added.
        buffer = memoryview(self._fragments.buffer)
        for place in self._marked_places() if mark else ():
            pieces += (buffer[begin:place], mark)
            begin = place
        pieces.append(buffer[begin:])
        if fragments and fragments[-1].role == "assistant":
            last = messages[-1]
            # What this service has paused it goes on with; it does not go on with what another one wrote.
            if last.stop_reason != "paused" or not last.is_from(WIRE, self.provider):
                pieces += (b",", _GO_ON)

    def _marked_places(self) -> list[int]:
        """Where marks belong: before the brace that ends the last block of the user's last messages."""
        places: list[int] = []
        for fragment in reversed(self._fragments.fragments):
            if fragment.role == "user":
                places.append(fragment.parts_end - 1)
                if len(places) == _MARKED:
                    break
        return places[::-1]

    def _sendable(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The messages, some of which are not sent as they are stored."""
        looked, last = self._looked
        if looked > len(messages) or (looked and messages[looked - 1] is not last):
            looked = 0
            self._settled.clear()
            self._turn = TurnBeginning(self.provider)
        # The last one of the time before is looked at again: something may follow it now.
        for position in range(max(looked - 1, 0), len(messages)):
            message = messages[position]
            self._turn.add(message)
            if message.role == "assistant":
                following = messages[position + 1] if position + 1 < len(messages) else None
                settled = server_calls_settled(message, following, self.provider)
                if settled is message:
                    self._settled.pop(message, None)
                else:
                    self._settled[message] = settled
        self._looked = (len(messages), messages[-1] if messages else None)
        return [self._settled.get(message, message) for message in messages] if self._settled else messages

    def _system_bytes(self, system: str) -> bytes:
        if self._system[0] != system:
            self._system = (system, wire_bytes({"type": "text", "text": system}) if system.strip() else b"")
        return self._system[1]


class Tools:
    """Tools in the form of the wire, and the way back from the names that they have there."""

    __slots__ = ("encoded", "names", "specs")

    def __init__(self, specs: tuple[ToolSpec, ...]) -> None:
        self.specs = specs
        self.names = ToolNames(spec.name for spec in specs)
        self.encoded = tuple(map(_tool, specs))


_KNOWN_TOOLS = 64
_known_tools: dict[int, Tools] = {}


def tools_of(specs: tuple[ToolSpec, ...]) -> Tools:
    """The tools in the form of the wire. Sessions with the same ones share it.

    Raises:
        InvalidRequestError: a schema has no form in JSON.
    """
    known = _known_tools.get(id(specs))
    if known is None or known.specs is not specs:
        known = Tools(specs)
        if len(_known_tools) >= _KNOWN_TOOLS:
            _known_tools.clear()
        _known_tools[id(specs)] = known
    return known


def _tool(spec: ToolSpec) -> bytes:
    tool: dict[str, Any] = {"name": wire_tool_name(spec.name)}
    if spec.description.strip():
        tool["description"] = spec.description
    return encoded(f"the schema of tool {spec.name!r}", tool | {"input_schema": input_schema(spec.parameters)})


def encoded(what: str, value: Any) -> bytes:
    """``value`` in JSON.

    Raises:
        InvalidRequestError: ``what`` has no form there.
    """
    try:
        return wire_bytes(value)
    except (ValueError, TypeError, RecursionError) as err:
        raise InvalidRequestError(f"{what} cannot be sent as JSON: {err}") from err
