"""A loopback model server that costs next to nothing, in a process of its own.

It speaks every wire with answers made beforehand. The path says which, and what the answer is: ``/turn/v1/…`` is one
word, ``/stream20/v1/…`` a text of 20 deltas in as few HTTP chunks as will do, ``/drip20/v1/…`` the same with one chunk
for each delta, and ``/loop100/v1/…`` asks for a tool 100 times and then answers.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from tests.benchmarks.measure import allow_many_descriptors
from tests.benchmarks.wires import WIRES, wire_of

#: Bytes of a streamed body that go out as one HTTP chunk.
CHUNK_BYTES = 64 * 1024

_REQUEST = re.compile(rb"[A-Z]+ /([a-z]+)(\d*)(/\S*) HTTP/1\.1\r\n")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def _response(events: list[bytes], *, chunk_per_event: bool = False) -> bytes:
    if not chunk_per_event:
        body = b"".join(events)
        events = [body[start : start + CHUNK_BYTES] for start in range(0, len(body), CHUNK_BYTES)]
    return _HEAD + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in events) + b"0\r\n\r\n"


@cache
def text_response(wire: str, deltas: int, chunk_per_event: bool = False) -> bytes:
    before, word, behind = WIRES[wire].text
    return _response([*before, *[word] * deltas, *behind], chunk_per_event=chunk_per_event)


def tool_response(wire: str, number: int) -> bytes:
    return _response(WIRES[wire].call(number))


class Model(asyncio.Protocol):
    """One connection. Requests of one connection come one after the other."""

    #: Requests seen by each loop. A loop is one client at a time.
    rounds: dict[tuple[str, int], int] = {}  # noqa: RUF012  # shared by all connections on purpose

    def __init__(self) -> None:
        self.head = b""
        self.missing = 0
        self.answer = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if not self.missing:
            self.head += data
            head, separator, body = self.head.partition(b"\r\n\r\n")
            if not separator:
                return
            self.head = b""
            self.answer = self.answer_for(head + separator)
            length = _LENGTH.search(head)
            self.missing = (int(length[1]) if length else 0) - len(body)
        else:
            self.missing -= len(data)
        if self.missing <= 0:
            self.missing = 0
            self.transport.write(self.answer)

    def answer_for(self, head: bytes) -> bytes:
        request = _REQUEST.match(head)
        if request is None:
            return b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"
        count, wire = int(request[2] or 0), wire_of(request[3])
        if request[1] != b"loop":
            return text_response(wire, count or 1, request[1] == b"drip")
        number = self.rounds[wire, count] = self.rounds.get((wire, count), 0) + 1
        return tool_response(wire, number) if number % (count + 1) else text_response(wire, 1)


async def serve() -> None:
    loop = asyncio.get_running_loop()
    allow_many_descriptors()
    server = await loop.create_server(Model, "127.0.0.1", 0, backlog=4096)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    ended = asyncio.Event()
    # The server ends with the benchmark, however that ends.
    loop.add_reader(0, lambda: ended.set() if not sys.stdin.buffer.raw.read(1) else None)
    await ended.wait()


@contextmanager
def running_mock() -> Iterator[int]:
    """Runs the server in its own process and gives its port."""
    command = [sys.executable, "-m", "tests.benchmarks.mock"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdin is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()
            process.wait(10)


if __name__ == "__main__":
    asyncio.run(serve())
