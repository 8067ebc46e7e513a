"""What the tests of the Gemini provider have in common."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from openheim.http import HttpClient
from openheim.messages import Block, ImageBlock, Message, TextBlock, ToolResultBlock
from openheim.providers import ModelRequest, ProviderSettings, ToolSpec
from openheim_provider_gemini.plugin import openheim_create_provider
from tests.providers.conftest import Call
from tests.support.gemini_server import GeminiServer
from tests.support.gemini_wire import MODEL, text
from tests.support.replies import Reply

__all__ = ("READ_FILE", "asking", "assistant", "call_of", "result", "sent", "serving", "user")

READ_FILE = ToolSpec("read_file", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})


def call_of(base_url: str, http: HttpClient, **fields: Any) -> Call:
    """A call of a provider for this address, with the fields of :class:`ProviderSettings` as keywords."""
    fields.setdefault("timeout_secs", 10.0)
    provider = openheim_create_provider(ProviderSettings("mine", "gemini", base_url, **fields), http)
    assert provider is not None
    return Call(provider)


def asking(*messages: Message, model: str = MODEL, system: str = "", **fields: Any) -> ModelRequest:
    return ModelRequest(model=model, system=system, messages=messages or (user("hi"),), **fields)


def user(*blocks: Block | str) -> Message:
    return Message("user", tuple(TextBlock(block) if isinstance(block, str) else block for block in blocks))


def assistant(*blocks: Block | str, wire: str | None = "gemini", **fields: Any) -> Message:
    content = tuple(TextBlock(block) if isinstance(block, str) else block for block in blocks)
    return Message("assistant", content, wire=wire, **fields)


def result(call_id: str, content: str, *images: ImageBlock, name: str = "read_file", is_error: bool = False) -> Message:
    return Message("tool", (ToolResultBlock(call_id, name, content, is_error, images),))


@asynccontextmanager
async def serving(*replies: Reply) -> AsyncIterator[GeminiServer]:
    """A server with this script, none of whose requests may have been wrong."""
    async with GeminiServer(replies) as server:
        yield server
    assert server.problems == []


async def sent(http: HttpClient, request: ModelRequest, **fields: Any) -> dict[str, Any]:
    """The body of the request that goes out, which the service would take."""
    async with serving(text("ok")) as server:
        await call_of(server.base_url, http, **fields)(request)
    body = json.loads(server.requests[0].body)
    assert isinstance(body, dict)
    return body
