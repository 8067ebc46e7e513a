"""Providers that talk to a scripted server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from openheim.events import Delta, TextDelta, ThinkingDelta
from openheim.http import HttpClient
from openheim.messages import Block, ImageBlock, Message, TextBlock, ToolResultBlock
from openheim.providers import ModelReply, ModelRequest, Provider, ProviderSettings

CASES = Path(__file__).resolve().parent.parent / "cases"

#: As a test or a service might write it; it must never come out anywhere.
KEY = "sk-test-5f0c3b9d"


@dataclass
class Call:
    """One model call: what it was asked with, and what it passed on meanwhile."""

    provider: Provider
    deltas: list[Delta] = field(default_factory=list)

    async def __call__(self, request: ModelRequest | None = None) -> ModelReply:
        return await self.provider.generate(request or user_says("hi"), self.deltas.append)

    @property
    def text(self) -> str:
        return "".join(delta.text for delta in self.deltas if isinstance(delta, TextDelta))

    @property
    def thinking(self) -> str:
        return "".join(delta.text for delta in self.deltas if isinstance(delta, ThinkingDelta))


def user(*blocks: Block | str) -> Message:
    return Message("user", _blocks(blocks))


def assistant(*blocks: Block | str, **fields: Any) -> Message:
    return Message("assistant", _blocks(blocks), **fields)


def result(call_id: str, content: str, *images: ImageBlock) -> Message:
    return Message("tool", (ToolResultBlock(call_id, "read_file", content, images=images),))


def answered(reply: ModelReply, wire: str, provider: str = "mine") -> Message:
    """The message that a reply is stored as."""
    return Message("assistant", reply.content, wire=wire, provider=provider, opaque=reply.opaque)


def _blocks(blocks: Iterable[Block | str]) -> tuple[Block, ...]:
    return tuple(TextBlock(block) if isinstance(block, str) else block for block in blocks)


def user_says(*texts: str, **fields: Any) -> ModelRequest:
    messages: Sequence[Message] = [Message("user", (TextBlock(text),)) for text in texts]
    return ModelRequest(model="m-test", system="", messages=messages, **fields)


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    client = HttpClient(proxy="")
    yield client
    await client.aclose()


@pytest.fixture
def make_call(http: HttpClient) -> Callable[..., Call]:
    """Makes a provider for an address, with the fields of :class:`ProviderSettings` as keywords, and a call of it."""

    def make(base_url: str, kind: str = "openai_compatible", **fields: Any) -> Call:
        fields.setdefault("timeout_secs", 10.0)
        settings = ProviderSettings("mine", kind, base_url, **fields)
        (point,) = entry_points(group="openheim.providers", name=kind)
        provider = point.load().openheim_create_provider(kind, settings, http)
        assert provider is not None
        return Call(provider)

    return make
