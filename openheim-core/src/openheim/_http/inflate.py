"""Decompresses the bodies of services that compress without being asked to."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from openheim.errors import ProviderConnectionError, ServerError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("MAX_BODY_BYTES", "Inflater")

#: Most bytes that are decompressed at a time, so that a small body cannot fill the memory.
_PIECE_BYTES = 64 * 1024
#: And in all: as much as a reply of a model may take.
MAX_BODY_BYTES = 64 * 1024 * 1024

#: Most that is read for nothing: zeros behind the end, or compressed bodies of nothing, one after the other.
_EMPTY_BYTES = 1024 * 1024

#: Codings that services use, but for the ones that are understood.
_KNOWN = frozenset(("br", "compress", "dcb", "dcz", "exi", "pack200-gzip", "zstd"))

#: What zlib calls gzip form or zlib form, whichever it finds, and data without any header.
_WITH_HEADER, _BARE = 47, -15


class Inflater:
    """Decompresses one body in coding ``gzip`` or ``deflate``.

    Raises:
        ProviderConnectionError: the coding is another one.
    """

    def __init__(self, coding: str) -> None:
        if coding not in ("gzip", "x-gzip", "deflate"):
            # A coding that nobody knows may be anything, a key among it.
            named = f"the content coding {coding!r}" if coding in _KNOWN else "an unknown content coding"
            raise ProviderConnectionError(f"the service answered in {named}, which was not asked for", retryable=False)
        self._inflate = zlib.decompressobj(_WITH_HEADER)
        # Some services send "deflate" without the zlib header that belongs to it. Two bytes tell.
        self._undecided = coding == "deflate"
        self._start = b""
        self._room = MAX_BODY_BYTES
        self._empty = 0  # bytes since the last that meant something
        self._is_gzip = not self._undecided

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What ``data`` decompresses to, in pieces of bounded size.

        Raises:
            ProviderConnectionError: it is not in the form that was promised, or goes on without meaning anything.
            ServerError: it is longer than :data:`MAX_BODY_BYTES`.
        """
        if self._undecided:
            data = self._start = self._start + data
            if len(data) < 2:
                return
            self._undecided = False
            if data[0] & 0x0F != zlib.DEFLATED or int.from_bytes(data[:2]) % 31:
                self._inflate = zlib.decompressobj(_BARE)
        self._empty += len(data)
        if self._empty > _EMPTY_BYTES + len(data):
            raise ProviderConnectionError("the service sent a compressed body that goes on and holds nothing")
        while data:
            if self._inflate.eof:
                data = self._behind_end(data)
                continue
            try:
                piece = self._inflate.decompress(data, _PIECE_BYTES)
            except zlib.error as err:
                raise ProviderConnectionError("the service sent a compressed body that is damaged") from err
            data = self._inflate.unused_data if self._inflate.eof else self._inflate.unconsumed_tail
            self._room -= len(piece)
            if self._room < 0:
                raise ServerError(
                    f"the service sent a compressed body of more than {MAX_BODY_BYTES // 2**20} MiB",
                    hint="that is no answer of a model; check api_base",
                    retryable=False,
                )
            if piece:
                self._empty = 0
                yield piece

    def _behind_end(self, data: bytes) -> bytes:
        """What is left to decompress of ``data``, which follows the end of what was compressed.

        A body in gzip form may be several, one after the other (RFC 1952, 2.2), with zeros behind them.
        """
        data = data.lstrip(b"\0")
        if data and not self._is_gzip:
            raise ProviderConnectionError("the service sent more than the compressed body that it announced")
        if data:
            self._inflate = zlib.decompressobj(_WITH_HEADER)
        return data

    def finish(self) -> None:
        """Call it at the end of the body.

        Raises:
            ProviderConnectionError: the body was not complete.
        """
        if not self._inflate.eof:
            raise ProviderConnectionError("the service sent a compressed body that is not complete")
