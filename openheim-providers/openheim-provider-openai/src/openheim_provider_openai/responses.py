"""Bodies of requests on the Responses wire.

The service stores nothing: each request brings the whole conversation as items, and the reasoning items of earlier
replies among them, encrypted. Items are turned into bytes once and kept, as on the Chat wire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim import Fragments, MessageParts
from openheim.jsontext import wire_bytes
from openheim_provider_openai.tools import dumped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openheim import Message, ModelRequest
    from openheim_provider_openai.response_items import ItemEncoder

__all__ = ("responses_body",)

#: Items stand by themselves: nothing before, nothing behind, none joined.
_FRAMES = {"item": (b"", b"")}


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
    if not isinstance(kept, Fragments):

        def encode(message: Message) -> MessageParts:
            return MessageParts("item", [wire_bytes(item) for item in items.encode(message)])

        kept = request.cache[key] = Fragments(encode, _FRAMES, joins=lambda role: False)
    kept.update(request.messages)
    instructions = b',"instructions":' + wire_bytes(system) if system.strip() else b""
    return b"".join(
        (
            b'{"model":',
            wire_bytes(request.model),
            instructions,
            b',"input":[',
            kept.buffer,
            b"]",
            tools,
            b",",
            dumped("a parameter of the request", parameters)[1:],
        )
    )
