"""Every wire with a scripted service: what its entry says, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from tests.support import anthropic_wire, gemini_wire, openai_wire, responses_wire
from tests.support.anthropic_server import AnthropicServer
from tests.support.gemini_server import GeminiServer
from tests.support.openai_server import OpenAIServer
from tests.support.replies import Reply

__all__ = ("WIRES", "Server", "Wire", "repeated")

Server: TypeAlias = AnthropicServer | GeminiServer | OpenAIServer


@dataclass(frozen=True)
class Wire:
    """``entry`` is the beginning of a provider entry; ``text`` and ``tool_calls`` make replies."""

    entry: str
    server: Callable[[], Server]
    text: Callable[..., Reply]
    tool_calls: Callable[..., Reply]


WIRES = {
    "anthropic": Wire('kind = "anthropic"', AnthropicServer, anthropic_wire.text, anthropic_wire.tool_calls),
    "chat": Wire('kind = "openai_compatible"', OpenAIServer, openai_wire.text, openai_wire.tool_calls),
    "gemini": Wire('kind = "gemini"', GeminiServer, gemini_wire.text, gemini_wire.tool_calls),
    "responses": Wire(
        'kind = "openai"\nwire = "responses"', OpenAIServer, responses_wire.text, responses_wire.tool_calls
    ),
}


def repeated(reply: Reply, holding: bytes, times: int) -> Reply:
    """The same reply, with its first piece that holds these bytes sent so often. The copies take no memory."""
    pieces = list(reply.pieces)
    place = next(at for at, piece in enumerate(pieces) if isinstance(piece, bytes) and holding in piece)
    return replace(reply, pieces=(*pieces[:place], *pieces[place : place + 1] * times, *pieces[place + 1 :]))
