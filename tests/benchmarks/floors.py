"""What openheim is compared with, doing the same work over the same server: a raw socket, and bare httpx.

Both keep a conversation as a list of dictionaries and send it whole with the standard library's JSON, which is the
least that a program without openheim would do. Nothing is stored, checked or shown.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol

from tests.benchmarks.wires import TOOL

Message = dict[str, Any]


class Client(Protocol):
    def chunks(self, path: str, body: bytes) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None: ...


class RawClient:
    """One kept connection, on asyncio's streams."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def chunks(self, path: str, body: bytes) -> AsyncIterator[bytes]:
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
        reader, writer = self.streams
        head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await reader.readuntil(b"\r\n\r\n")
        while size := int(await reader.readuntil(b"\r\n"), 16):
            yield await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readexactly(2)

    async def aclose(self) -> None:
        if self.streams is not None:
            self.streams[1].close()


class HttpxClient:
    """One client for all requests, as its documentation asks for."""

    def __init__(self, port: int) -> None:
        import httpx

        self.client = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", limits=httpx.Limits(max_connections=1000), timeout=120, trust_env=False
        )

    async def chunks(self, path: str, body: bytes) -> AsyncIterator[bytes]:
        async with self.client.stream("POST", path, content=body) as response:
            async for chunk in response.aiter_bytes():
                yield chunk

    async def aclose(self) -> None:
        await self.client.aclose()


async def answer(client: Client, mode: str, messages: list[Message]) -> Message:
    """One model call: sends the conversation, reads the stream, returns the assistant's message."""
    body = json.dumps({"model": "mock", "stream": True, "messages": messages}).encode()
    text: list[str] = []
    calls: list[Message] = []
    rest = b""
    async for chunk in client.chunks(f"/{mode}/v1/chat/completions", body):
        *events, rest = (rest + chunk).split(b"\n\n")
        for event in events:
            if event.startswith(b"data: {"):
                for choice in json.loads(event[6:])["choices"]:
                    delta = choice["delta"]
                    if delta.get("content"):
                        text.append(delta["content"])
                    calls += delta.get("tool_calls", ())
    message: Message = {"role": "assistant", "content": "".join(text)}
    if calls:
        message["tool_calls"] = calls
    return message


class FloorSubject:
    """The same methods as :class:`tests.benchmarks.library.OpenheimSubject`."""

    def __init__(self, make_client: Callable[[], Client], client_per_session: bool) -> None:
        self.make_client = make_client
        self.client = make_client()
        self.client_per_session = client_per_session
        self.kept: list[list[Message]] = []

    async def conversation(self, mode: str) -> Callable[[], Awaitable[object]]:
        messages: list[Message] = []

        async def turn() -> None:
            messages.append({"role": "user", "content": "hi"})
            while True:
                reply = await answer(self.client, mode, messages)
                messages.append(reply)
                if "tool_calls" not in reply:
                    return
                for call in reply["tool_calls"]:
                    assert call["function"]["name"] == TOOL
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": "noted"})

        return turn

    async def many(self, mode: str, count: int) -> None:
        async def one() -> None:
            client = self.make_client() if self.client_per_session else self.client
            messages = [{"role": "user", "content": "hi"}]
            messages.append(await answer(client, mode, messages))
            self.kept.append(messages)
            if self.client_per_session:
                await client.aclose()

        await asyncio.gather(*[one() for _ in range(count)])

    async def __aenter__(self) -> FloorSubject:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.client.aclose()


def raw_subject(port: int) -> FloorSubject:
    return FloorSubject(lambda: RawClient(port), client_per_session=True)


def httpx_subject(port: int) -> FloorSubject:
    return FloorSubject(lambda: HttpxClient(port), client_per_session=False)
