"""A server that answers with any bytes, for what no server that keeps to the rules would send."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

__all__ = ("played",)


@contextlib.contextmanager
def played(head: bytes, then: str = "close", *, again: bytes = b"") -> Iterator[int]:
    """A server that sends bytes, and then does what the case says until the client goes.

    Args:
        again: what it repeats.
    """
    gone = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            connection.sendall(head)
            match then:
                case "endless":
                    while not gone.is_set():
                        connection.sendall((again or b"x") * 65536)
                case "drip" | "drip 1 byte a second":
                    # Quicker than the case says: a short limit has to end it just so.
                    while not gone.wait(0.02):
                        connection.sendall(again or b"x")
                case "wait":
                    gone.wait(20)
                case other:
                    assert other == "close"

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        gone.set()
        thread.join(10)
        listener.close()
        assert not thread.is_alive(), "the client did not close its connection"
