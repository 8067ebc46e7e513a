"""Bodies of requests on the Chat Completions wire.

Every message is turned into bytes once. The bytes are kept, so that a request costs a copy of them and no more, and so
that what was sent before is sent again to the byte, which is what prompt caches of services go by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim import ImageBlock, InvalidRequestError, TextBlock, ToolResultBlock, ToolUseBlock
from openheim.jsontext import is_object, wire_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openheim import Message, ModelRequest, ToolSpec

__all__ = ("chat_body",)

_CACHE_KEY = "openai-chat"


def chat_body(request: ModelRequest, parameters: Mapping[str, Any]) -> bytes:
    """The body of a request.

    Args:
        parameters: its other fields, such as ``stream``; at least one.

    Raises:
        InvalidRequestError: a tool's schema, or a parameter, has no form in JSON.
    """
    kept = request.cache.get(_CACHE_KEY)
    if not isinstance(kept, _Kept):
        kept = request.cache[_CACHE_KEY] = _Kept()
    kept.update(request.messages)
    system = kept.system_bytes(request.system)
    messages: bytes | bytearray = kept.buffer + kept.trailing()
    return b"".join(
        (
            b'{"model":',
            wire_bytes(request.model),
            b',"messages":[',
            system,
            # Each message is kept with a comma before it, which the first one must not have.
            messages if system else messages[1:],
            b"]",
            kept.tools_bytes(request.tools),
            b",",
            _dumped("a parameter of the request", parameters)[1:],
        )
    )


class _Kept:
    """Bytes of one session's messages, tools and system text, and what they were made from."""

    __slots__ = ("_ends", "_images", "_messages", "_system", "_tools", "buffer")

    def __init__(self) -> None:
        self.buffer = bytearray()
        self._messages: list[Message] = []
        #: Where each message ends in the buffer.
        self._ends: list[int] = []
        #: Images of the tool results at the very end: they must stand behind all results of a reply, and whether
        #: another result follows is not known yet.
        self._images: list[ImageBlock] = []
        self._system: tuple[str, bytes] = ("", b"")
        self._tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"")

    def update(self, messages: Sequence[Message]) -> None:
        """Brings the buffer to these messages, encoding only what follows the first difference."""
        known = len(self._messages)
        # Messages are compared by identity (they define no other equality), which lists do at the speed of C.
        if list(messages[:known]) != self._messages:
            known = next(
                (
                    position
                    for position, (old, new) in enumerate(zip(self._messages, messages, strict=False))
                    if old is not new
                ),
                min(len(messages), known),
            )
            self._forget_from(known)
        for message in messages[known:]:
            if message.role != "tool":
                self.buffer += self.trailing()
                self._images.clear()
            for block in message.content:
                if isinstance(block, ToolResultBlock):
                    self._images += block.images
            self.buffer += _encode_message(message)
            self._messages.append(message)
            self._ends.append(len(self.buffer))

    def trailing(self) -> bytes:
        """The message that carries images of tool results, or nothing. Results themselves hold text only."""
        if not self._images:
            return b""
        note = {"type": "text", "text": "Images of the tool results above:"}
        return b"," + wire_bytes({"role": "user", "content": [note, *map(_image_part, self._images)]})

    def system_bytes(self, system: str) -> bytes:
        if self._system[0] != system:
            self._system = (system, wire_bytes({"role": "system", "content": system}) if system else b"")
        return self._system[1]

    def tools_bytes(self, tools: tuple[ToolSpec, ...]) -> bytes:
        if self._tools[0] is not tools:
            self._tools = _encode_tools(tools)
        return self._tools[1]

    def _forget_from(self, position: int) -> None:
        del self._messages[position:], self._ends[position:]
        del self.buffer[self._ends[-1] if self._ends else 0 :]
        self._images.clear()
        for message in reversed(self._messages):
            if message.role != "tool":
                break
            for block in message.content:
                if isinstance(block, ToolResultBlock):
                    self._images[:0] = block.images


def _encode_message(message: Message) -> bytes:
    """One message with a comma before it; nothing for one that has nothing to say on this wire."""
    match message.role:
        case "user":
            encoded: dict[str, Any] | None = {"role": "user", "content": _user_content(message)}
        case "assistant":
            encoded = _assistant(message)
        case "system":
            encoded = {"role": "system", "content": message.text}
        case "tool":
            results = [block for block in message.content if isinstance(block, ToolResultBlock)]
            return b"".join(
                b"," + wire_bytes({"role": "tool", "tool_call_id": result.tool_call_id, "content": result.content})
                for result in results
            )
    return b"" if encoded is None else b"," + wire_bytes(encoded)


def _user_content(message: Message) -> str | list[dict[str, Any]]:
    texts = [block.text for block in message.content if isinstance(block, TextBlock) and block.text.strip()]
    images = [_image_part(block) for block in message.content if isinstance(block, ImageBlock)]
    if not images:
        return "\n\n".join(texts)
    return [{"type": "text", "text": text} for text in texts] + images


def _assistant(message: Message) -> dict[str, Any] | None:
    # Thinking is left out: this wire has no place for it, and services refuse or ignore it.
    text = message.text
    calls = [_call(block) for block in message.content if isinstance(block, ToolUseBlock)]
    if not text.strip():
        return {"role": "assistant", "content": None, "tool_calls": calls} if calls else None
    return {"role": "assistant", "content": text} | ({"tool_calls": calls} if calls else {})


def _call(block: ToolUseBlock) -> dict[str, Any]:
    # A call that was cut or badly written would be refused for the rest of the session.
    arguments = block.arguments if is_object(block.arguments) else "{}"
    return {"id": block.id, "type": "function", "function": {"name": block.name, "arguments": arguments}}


def _image_part(image: ImageBlock) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{image.mime_type};base64,{image.data}"}}


_KNOWN_TOOLS = 64
_known_tools: dict[int, tuple[tuple[ToolSpec, ...], bytes]] = {}


def _encode_tools(tools: tuple[ToolSpec, ...]) -> tuple[tuple[ToolSpec, ...], bytes]:
    """The tools and their bytes. Sessions with the same tools share both."""
    known = _known_tools.get(id(tools))
    if known is None or known[0] is not tools:
        encoded = b",".join(map(_encode_tool, tools))
        known = (tools, b',"tools":[' + encoded + b"]" if encoded else b"")
        if len(_known_tools) >= _KNOWN_TOOLS:
            _known_tools.clear()
        _known_tools[id(tools)] = known
    return known


def _encode_tool(tool: ToolSpec) -> bytes:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return _dumped(f"the schema of tool {tool.name!r}", {"type": "function", "function": function})


def _dumped(what: str, value: Any) -> bytes:
    try:
        return wire_bytes(value)
    except (ValueError, TypeError, RecursionError) as err:
        raise InvalidRequestError(f"{what} cannot be sent as JSON: {err}") from err
