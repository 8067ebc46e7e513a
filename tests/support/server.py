"""An HTTP server on the loopback interface that plays a script and records what it was asked.

It runs in a thread with an event loop of its own, so that tests of any kind can use it: ``with`` or ``async with``, in
this process or from child processes. Waits are driven by events and bounded.
"""

from __future__ import annotations

import array
import asyncio
import fcntl
import json
import socket
import ssl
import struct
import termios
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Self

import anyio.to_thread

from tests.support.replies import Pause, Reply, raw

__all__ = ("Request", "ScriptedServer")

#: Most seconds that any wait of this module lasts.
WAIT_SECS = 20.0


@dataclass
class Request:
    """A request as it came. ``connection`` counts the connections from 1, ``headers`` have names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int
    _left: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def wait_left(self) -> None:
        """Waits until the client has closed the connection that the request came on."""
        assert self._left.wait(WAIT_SECS), f"the client did not close the connection within {WAIT_SECS} s"

    async def left(self) -> None:
        """Like :meth:`wait_left`, for async tests."""
        await anyio.to_thread.run_sync(self.wait_left, abandon_on_cancel=True)


class ScriptedServer:
    """Answers requests with ``replies``, in the order of arrival; a function is called with each request instead.

    When the script is used up, ``default`` answers if there is one, else a 400 that says so.
    """

    def __init__(
        self,
        replies: Iterable[Reply] | Callable[[Request], Reply] = (),
        *,
        default: Reply | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.requests: list[Request] = []
        self.port = 0
        self.connections = 0
        self._chosen = replies if callable(replies) else None
        self._script: list[Reply] = [] if callable(replies) else list(replies)
        self._default = default
        self._tls = tls
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._released: asyncio.Event | None = None
        self._started = threading.Event()
        self._open: set[_Connection] = set()

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    # --- for the test ---

    def add(self, *replies: Reply) -> None:
        """Appends to the script."""
        with self._changed:
            self._script += replies

    def release(self) -> None:
        """Lets replies that are held go on, and those that come to a hold later."""
        assert self._loop is not None and self._released is not None
        self._loop.call_soon_threadsafe(self._released.set)

    def wait_requests(self, count: int) -> list[Request]:
        """Waits until so many requests have arrived in all, and returns them."""
        with self._changed:
            arrived = self._changed.wait_for(lambda: len(self.requests) >= count, WAIT_SECS)
            assert arrived, f"{len(self.requests)} of {count} requests arrived within {WAIT_SECS} s"
            return list(self.requests)

    async def arrived(self, count: int) -> list[Request]:
        """Like :meth:`wait_requests`, for async tests."""
        return await anyio.to_thread.run_sync(self.wait_requests, count, abandon_on_cancel=True)

    def drop_connections(self) -> None:
        """Closes every connection, as a server does that has waited long enough, and waits until they are closed."""
        assert self._loop is not None
        for connection in list(self._open):
            self._loop.call_soon_threadsafe(connection.transport.close)
        self.wait_open(0)

    def wait_open(self, at_most: int) -> None:
        """Waits until no more connections than that are open."""
        with self._changed:
            closed = self._changed.wait_for(lambda: len(self._open) <= at_most, WAIT_SECS)
            assert closed, f"{len(self._open)} connections are still open after {WAIT_SECS} s"

    def wait_connected(self, count: int) -> None:
        """Waits until so many connections have been opened in all."""
        with self._changed:
            opened = self._changed.wait_for(lambda: self.connections >= count, WAIT_SECS)
            assert opened, f"{self.connections} of {count} connections were opened within {WAIT_SECS} s"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(WAIT_SECS), "the scripted server did not start"
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None and self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(WAIT_SECS)
        assert not self._thread.is_alive(), "the scripted server did not stop"

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()

    # --- in the server's thread ---

    def reply_to(self, request: Request) -> Reply:
        if self._chosen is not None:
            return self._chosen(request)
        with self._changed:
            if self._script:
                return self._script.pop(0)
        if self._default is not None:
            return self._default
        problem = {"error": {"message": f"the script has no reply for request {len(self.requests)}"}}
        return raw(json.dumps(problem), status=400, content_type="application/json")

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop, self._released = asyncio.Event(), asyncio.Event()
        server = await self._loop.create_server(lambda: _Connection(self), "127.0.0.1", 0, ssl=self._tls, backlog=2048)
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        await self._stop.wait()
        server.close()
        for connection in list(self._open):
            connection.shut()

    def _record(self, request: Request) -> None:
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()

    def _opened(self, connection: _Connection) -> int:
        with self._changed:
            self._open.add(connection)
            self.connections += 1
            self._changed.notify_all()
            return self.connections

    def _closed(self, connection: _Connection) -> None:
        with self._changed:
            self._open.discard(connection)
            self._changed.notify_all()

    async def _pause(self, pause: Pause) -> None:
        assert self._released is not None
        await (self._released.wait() if pause.secs is None else asyncio.sleep(pause.secs))


class _Connection(asyncio.Protocol):
    """One connection; its requests are answered one after the other."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.number = 0
        self.buffer = b""
        self.task: asyncio.Task[None] | None = None
        self.waiting: list[Request] = []
        self.seen: list[Request] = []
        self.writable = asyncio.Event()
        self.writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.number = self.server._opened(self)

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def connection_lost(self, _: Exception | None) -> None:
        self.server._closed(self)
        for request in self.seen:
            request._left.set()
        if self.task is not None:
            self.task.cancel()

    def shut(self) -> None:
        if self.task is not None:
            self.task.cancel()
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (request := self.next_request()) is not None:
            self.seen.append(request)
            self.waiting.append(request)
            self.server._record(request)
        if self.waiting and (self.task is None or self.task.done()):
            self.task = asyncio.get_running_loop().create_task(self.answer_all())

    def next_request(self) -> Request | None:
        head, separator, rest = self.buffer.partition(b"\r\n\r\n")
        if not separator:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _version = first.split(" ")
        pairs = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        length = int(headers.get("content-length", 0))
        if len(rest) < length:
            return None
        self.buffer = rest[length:]
        return Request(method, path, headers, rest[:length], self.number)

    async def answer_all(self) -> None:
        while self.waiting:
            request = self.waiting.pop(0)
            await self.play(self.server.reply_to(request))

    async def play(self, reply: Reply) -> None:
        if reply.before is not None:
            await self.server._pause(reply.before)
        headers = {name.lower(): value for name, value in reply.headers.items()}
        match reply.framing:
            case "chunked":
                headers["transfer-encoding"] = "chunked"
            case "length":
                headers["content-length"] = str(len(reply.body))
            case "close":
                headers["connection"] = "close"
        phrase = HTTPStatus(reply.status).phrase if reply.status in HTTPStatus._value2member_map_ else "Other"
        lines = [f"HTTP/1.1 {reply.status} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
        await self.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n")
        chunked = reply.framing == "chunked"
        for piece in reply.pieces:
            if isinstance(piece, Pause):
                await self.server._pause(piece)
            else:
                await self.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
        match reply.end:
            case "clean" if chunked:
                await self.write(b"0\r\n\r\n")
            case "clean" if reply.framing == "close":
                self.transport.close()
            case "reset":
                await self.reset()
            case "stall":
                await asyncio.Event().wait()  # until the client goes

    async def write(self, data: bytes) -> None:
        await self.writable.wait()
        self.transport.write(data)
        await asyncio.sleep(0)  # Sends it by itself, and notices a client that has gone.

    async def reset(self) -> None:
        peer: socket.socket = self.transport.get_extra_info("socket")
        # A reset throws away what was not sent yet, and the kernel sends small pieces only as they are confirmed.
        # Nothing tells when it is done, so it is asked.
        for _ in range(5000):
            if not unsent_bytes(peer):
                break
            await asyncio.sleep(0.001)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()


def unsent_bytes(peer: socket.socket) -> int:
    """What the kernel holds that the other side has not confirmed."""
    count = array.array("i", [0])
    fcntl.ioctl(peer.fileno(), termios.TIOCOUTQ, count)
    return count[0]
