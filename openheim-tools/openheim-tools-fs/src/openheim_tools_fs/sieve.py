"""Passing over the files that cannot hold a match, which most of a tree is made of, as quickly as they can be read.

Run as a script, this does the same for another process, at the other end of the socket that is its standard input.
Messages are data in the form of ``marshal`` behind their length (4 bytes, big-endian). The first one is the text to
look for, and is answered with ``[]`` as soon as this is ready. After that each one is a list of lists of names, and
comes with a descriptor for each list, of the directory that they are in; the answer is the list of what
:meth:`Sieve.doubtful` gives. It ends when the other side is gone.
"""

from __future__ import annotations

import marshal
import os
import stat
import struct

# Neither typing nor socket is imported: a process that helps would spend more time on them than on all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = ("LENGTH", "MAX_DIRECTORIES", "Sieve", "serve")

LENGTH = struct.Struct(">I")

#: Descriptors that may come with one message; systems take some hundred.
MAX_DIRECTORIES = 16

#: Longer files are for whoever reads them in pieces.
MAX_BYTES = 1024 * 1024

# Of names that a listing gave as regular files; whatever may stand there now, nothing is waited for or followed.
_FLAGS: int = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
)


class Sieve:
    """Tells files that hold a text, or are no plain text, from the others.

    Args:
        needed: the text, not empty.
    """

    def __init__(self, needed: bytes) -> None:
        self._holds = _finder(needed)

    def doubtful(self, directory: int, names: Sequence[str]) -> list[int]:
        """The places in ``names`` of those files that have to be looked at closely.

        All others are regular files that were read to their end, have neither the text nor a NUL in them, and no more
        than :data:`MAX_BYTES`.

        Args:
            directory: a descriptor of the directory that they are in.
            names: single components.
        """
        return [place for place, name in enumerate(names) if not self._passes(directory, name)]

    def _passes(self, directory: int, name: str) -> bool:
        try:
            file = os.open(name, _FLAGS, dir_fd=directory)
        except OSError:
            return False
        try:
            found = os.fstat(file)
            size = found.st_size
            if size > MAX_BYTES or not stat.S_ISREG(found.st_mode):
                return False
            data = os.read(file, size + 1)  # One more than there should be, to see whether it grew.
        except OSError:
            return False
        finally:
            os.close(file)
        return len(data) == size and not self._holds(data) and b"\0" not in data


def _finder(needed: bytes) -> Callable[[bytes], bool]:
    """Whether there is ``needed`` in a text: the system's search is several times faster than Python's own."""
    try:
        import ctypes

        memmem = ctypes.CDLL(None).memmem
    except (ImportError, OSError, AttributeError, TypeError):
        return lambda data: needed in data
    memmem.restype = ctypes.c_void_p
    memmem.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
    size = len(needed)
    return lambda data: memmem(data, len(data), needed, size) is not None


def serve(connection: Socket) -> None:
    """Answers until the other side is gone."""
    data, _ = _receive(connection)
    if data is None:
        return
    sieve = Sieve(data)
    _answer(connection, [])
    while True:
        lists, directories = _receive(connection)
        if lists is None:
            return
        answer = [sieve.doubtful(*one) for one in zip(directories, lists, strict=True)]
        for directory in directories:
            os.close(directory)
        _answer(connection, answer)


def _receive(connection: Socket) -> tuple[Any, list[int]]:
    """The next message and the descriptors that come with it; None instead if the other side is gone."""
    from _socket import CMSG_SPACE

    size = struct.calcsize("i")
    length, ancillary, _, _ = connection.recvmsg(LENGTH.size, CMSG_SPACE(MAX_DIRECTORIES * size))
    directories: list[int] = []
    for _, _, content in ancillary:
        directories += struct.unpack(f"{len(content) // size}i", content)
    data = b""
    while length and len(data) < (missing := LENGTH.unpack(length)[0]):
        piece = connection.recv(missing - len(data))
        if not piece:
            return None, directories
        data += piece
    return (marshal.loads(data) if length else None), directories


def _answer(connection: Socket, answer: list[list[int]]) -> None:
    data = marshal.dumps(answer)
    connection.sendall(LENGTH.pack(len(data)) + data)


if __name__ == "__main__":
    from _socket import socket as Socket

    serve(Socket(fileno=0))
