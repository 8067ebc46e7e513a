"""Asking the system for the addresses of a name, so that nobody has to wait for it to answer."""

from __future__ import annotations

import contextlib
import socket
import threading

import anyio
import anyio.from_thread
import anyio.lowlevel

from openheim import ToolError

__all__ = ("look_up",)

#: Look-ups at a time. One that nobody waits for any more goes on until the system gives up, which takes it a while.
MAX_LOOKUPS = 32

_room = threading.BoundedSemaphore(MAX_LOOKUPS)


async def look_up(host: str, port: int) -> list[str]:
    """The addresses of a name, in the order in which the system would try them.

    Raises:
        ToolError: there are none, or too many look-ups have not come back yet.
    """
    room = _room
    if not room.acquire(blocking=False):
        raise ToolError("too many look-ups of names are still unanswered; try again later")
    token, done = anyio.lowlevel.current_token(), anyio.Event()
    found: list[str] = []
    problem: list[str] = []

    def ask() -> None:
        try:
            for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
                found.append(str(address[0]))
        except (OSError, UnicodeError) as err:
            problem.append(str(getattr(err, "strerror", None) or err))
        finally:
            room.release()
        # The loop may have ended meanwhile.
        with contextlib.suppress(RuntimeError):
            anyio.from_thread.run_sync(done.set, token=token)

    # A daemon, since the program need not wait for it at its end either, as it would for a worker thread.
    try:
        threading.Thread(target=ask, name="look-up", daemon=True).start()
    except RuntimeError as err:
        room.release()
        raise ToolError(f"cannot look up {host}: {err}") from err
    await done.wait()
    if not found:
        raise ToolError(f"cannot find the host {host}: {problem[0].lower() if problem else 'it has no address'}")
    return list(dict.fromkeys(found))
