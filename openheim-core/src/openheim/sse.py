"""Server-sent events, decoded from bytes as they come.

The rules are those of the HTML standard, section 9.2.6 (lines end with CR, LF or CR LF; ``data`` lines are joined; a
blank line ends an event), with one difference: :meth:`SSEDecoder.flush` also delivers an event whose blank line never
came, since some services leave out the last one.
"""

from __future__ import annotations

from dataclasses import dataclass

from openheim.errors import ServerError

__all__ = ("SSEDecoder", "SSEEvent")

_BOM = b"\xef\xbb\xbf"


@dataclass(slots=True)
class SSEEvent:
    """``data`` is what the data lines held, joined by line feeds; ``event`` the event's name, or ``""``."""

    data: str
    event: str = ""


class SSEDecoder:
    """Decodes one stream. Bytes may be cut anywhere, also inside a character or a line end.

    Args:
        max_event_bytes: the most bytes kept of an event that has not ended.
    """

    __slots__ = ("_after_cr", "_at_start", "_max_event_bytes", "_pending")

    def __init__(self, max_event_bytes: int = 16 * 1024 * 1024) -> None:
        self._max_event_bytes = max_event_bytes
        self._pending = bytearray()
        self._after_cr = False
        self._at_start = True

    def feed(self, chunk: bytes) -> list[SSEEvent]:
        """The events that ``chunk`` completes.

        Raises:
            ServerError: an event is longer than allowed.
        """
        if self._at_start:
            chunk = self._without_bom(chunk)
        if self._after_cr or b"\r" in chunk:
            chunk = self._with_line_feeds(chunk)
        pending = self._pending
        if pending:
            # The blank line may have begun in the previous chunk. Whatever lies before was searched already.
            start = len(pending) - 1
            pending += chunk
            if pending.find(b"\n\n", start) < 0:
                self._check_size()
                return []
            chunk = bytes(pending)
            pending.clear()
        end = chunk.rfind(b"\n\n")
        if end < 0:
            pending += chunk
            self._check_size()
            return []
        if end + 2 < len(chunk):
            pending += chunk[end + 2 :]
            self._check_size()
        events = []
        # Whole events hold whole characters, so they can be decoded together.
        for block in chunk[:end].decode("utf-8", "replace").split("\n\n"):
            if block.startswith("data: ") and "\n" not in block:
                events.append(SSEEvent(block[6:]))
            elif block:  # There may be any number of blank lines.
                event = _parse(block)
                if event is not None:
                    events.append(event)
        return events

    def flush(self) -> list[SSEEvent]:
        """The event that was still waiting for its blank line when the stream ended, if any."""
        event = _parse(self._pending.decode("utf-8", "replace"))
        self._pending.clear()
        return [] if event is None else [event]

    def _without_bom(self, chunk: bytes) -> bytes:
        chunk = bytes(self._pending) + chunk
        self._pending.clear()
        if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
            self._pending += chunk
            return b""
        self._at_start = False
        return chunk.removeprefix(_BOM)

    def _with_line_feeds(self, chunk: bytes) -> bytes:
        if not chunk:
            return chunk
        if self._after_cr and chunk[0] == 0x0A:
            chunk = chunk[1:]  # The other half of a CR LF that was cut in two; the CR has counted already.
            if not chunk:
                self._after_cr = False
                return chunk
        self._after_cr = chunk[-1] == 0x0D
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _check_size(self) -> None:
        if len(self._pending) > self._max_event_bytes:
            raise ServerError(
                f"the service sent an event of more than {self._max_event_bytes} bytes",
                hint="that is no answer of a model; check api_base",
                retryable=False,
            )


def _parse(block: str) -> SSEEvent | None:
    """The event that a block of lines stands for, or None if it holds no data."""
    name = ""
    data: list[str] = []
    for line in block.split("\n"):
        field, _, value = line.partition(":")
        if field == "data":
            data.append(value.removeprefix(" "))
        elif field == "event":
            name = value.removeprefix(" ")
        # Comments (no field name), ids, retry times and unknown fields mean nothing here.
    return SSEEvent("\n".join(data), name) if data else None
