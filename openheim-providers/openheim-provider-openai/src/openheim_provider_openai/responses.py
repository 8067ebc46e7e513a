"""Bodies of requests on the Responses wire.

The service stores nothing: each request brings the whole conversation as items, and the reasoning items of earlier
replies among them, encrypted. Items are turned into bytes once and kept, as on the Chat wire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim import Fragments, MessageParts
from openheim.jsontext import wire_bytes
from openheim_provider_openai.chat_messages import GO_ON
from openheim_provider_openai.tools import dumped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openheim import Message, ModelRequest
    from openheim_provider_openai.response_items import ItemEncoder

__all__ = ("responses_body",)

#: Items stand by themselves: nothing before, nothing behind, none joined.
_FRAMES = dict.fromkeys(("assistant", "system", "tool", "user"), (b"", b""))

_GO_ON = wire_bytes({"role": "user", "content": GO_ON})


def responses_body(
    request: ModelRequest, items: ItemEncoder, tools: bytes, parameters: Mapping[str, Any], *, system: str
) -> bytes:
    """The body of a request.

    Args:
        items: encodes messages; one that replays differently has bytes of its own in the cache.
        tools: the field of the tools, with a comma before it.
        parameters: its other fields, such as ``stream``; at least one.
        system: the system text, perhaps with more in it than the request's.

    Raises:
        InvalidRequestError: a parameter has no form in JSON.
    """
    key = f"openai-responses:{items.replays}"
    kept = request.cache.get(key)
    if not isinstance(kept, _Kept):
        kept = request.cache[key] = _Kept(items)
    kept.update(request.messages)
    instructions = b',"instructions":' + wire_bytes(system) if system.strip() else b""
    return b"".join(
        (
            b'{"model":',
            wire_bytes(request.model),
            instructions,
            b',"input":[',
            kept.items.buffer,
            kept.trailing(),
            b"]",
            tools,
            b",",
            dumped("a parameter of the request", parameters)[1:],
        )
    )


class _Kept:
    """Items of one session's messages."""

    __slots__ = ("_ids", "items")

    def __init__(self, encoder: ItemEncoder) -> None:
        ids = self._ids = encoder.call_ids()

        def encode(message: Message) -> MessageParts:
            return MessageParts(message.role, encoder.encode(message, ids))

        self.items = Fragments(encode, _FRAMES, joins=lambda role: False)

    def update(self, messages: Sequence[Message]) -> None:
        self._ids.update(messages)
        self.items.update(messages)

    def trailing(self) -> bytes:
        """What belongs at the very end only: the word of the user, if the assistant had the last one."""
        fragments = self.items.fragments
        return b"," + _GO_ON if fragments and fragments[-1].role == "assistant" else b""
