"""What a scripted server sends: a status, headers, and a body in pieces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal, TypeAlias

__all__ = ("HOLD", "End", "Framing", "Pause", "Piece", "Reply", "Split", "raw")


@dataclass(frozen=True)
class Pause:
    """Waits before the next piece: so many seconds, or until the test calls ``release()`` of the server."""

    secs: float | None = None


#: Waits until the test calls ``release()``.
HOLD = Pause()

Piece: TypeAlias = bytes | Pause

#: Whole, a byte at a time, or cut at these offsets of the body.
Split: TypeAlias = Literal["whole", "every-byte"] | Sequence[int]

#: In order, by a reset, or not at all: the server waits for the client to go.
End: TypeAlias = Literal["clean", "reset", "stall"]

#: How the client learns where the body ends. ``close``: by the end of the connection.
Framing: TypeAlias = Literal["chunked", "length", "close"]


@dataclass(frozen=True)
class Reply:
    """One answer. Each piece of the body is written by itself, and with ``chunked`` framing is a chunk of its own."""

    pieces: tuple[Piece, ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    end: End = "clean"
    framing: Framing = "chunked"
    #: Waits before the status line.
    before: Pause | None = None

    @property
    def body(self) -> bytes:
        return b"".join(piece for piece in self.pieces if isinstance(piece, bytes))

    def split(self, split: Split) -> Reply:
        """The same body cut in another way; pauses are lost."""
        body = self.body
        if split == "whole":
            return replace(self, pieces=(body,) if body else ())
        offsets = range(1, len(body)) if split == "every-byte" else split
        edges = [0, *offsets, len(body)]
        pieces = (body[start:end] for start, end in pairwise(edges))
        return replace(self, pieces=tuple(piece for piece in pieces if piece))

    def hold(self, after: int | None = None) -> Reply:
        """The same reply, held after so many pieces (or after all, before its end) until ``release()``."""
        return self.paused(HOLD, len(self.pieces) if after is None else after)

    def paused(self, pause: Pause, after: int) -> Reply:
        return replace(self, pieces=(*self.pieces[:after], pause, *self.pieces[after:]))

    def late(self, pause: Pause = HOLD) -> Reply:
        """The same reply, held before its first byte."""
        return replace(self, before=pause)

    def slow(self, secs: float) -> Reply:
        """The same reply with a pause before each piece."""
        return replace(self, pieces=tuple(part for piece in self.pieces for part in (Pause(secs), piece)))

    def ending(self, end: End) -> Reply:
        return replace(self, end=end)

    def framed(self, framing: Framing) -> Reply:
        return replace(self, framing=framing)

    def with_headers(self, headers: Mapping[str, str]) -> Reply:
        return replace(self, headers={**self.headers, **headers})


def raw(
    body: bytes | str | Iterable[bytes] = b"",
    *,
    status: int = 200,
    content_type: str = "text/event-stream",
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """A reply with exactly this body: bytes, text, or pieces."""
    if isinstance(body, str):
        body = body.encode()
    pieces = (body,) if isinstance(body, bytes) else tuple(body)
    return Reply(tuple(piece for piece in pieces if piece), status, {"content-type": content_type, **(headers or {})})
