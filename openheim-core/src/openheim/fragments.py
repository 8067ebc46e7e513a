"""Bytes of a conversation on a provider's wire, kept from request to request.

A message is turned into bytes once. A request is then a copy of what is kept, so that its cost does not grow with the
number of requests before it, and what was sent before is sent again to the byte, which is what prompt caches of
services go by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from openheim.messages import Message

__all__ = ("Fragment", "Fragments", "MessageParts")


class MessageParts(NamedTuple):
    """One message in the form of a wire.

    Args:
        role: the wire's role, such as ``user`` for the results of tools too.
        parts: each part (a content block, say) as bytes. A message without any is left out, as if it were not there.
    """

    role: str
    parts: Sequence[bytes]


class Fragment(NamedTuple):
    """Where one message of the wire stands in :attr:`Fragments.buffer`: ``buffer[start:end]``, without a comma.

    ``parts_end`` is where its last part ends.
    """

    role: str
    start: int
    parts_end: int
    end: int


class Fragments:
    """Messages of a wire whose neighbours of one role are one message with the parts of all.

    Args:
        encode: turns a message into its parts; called once for each, or again when what is before it has changed.
        frames: what stands before and behind the parts, by role: ``{"user": (b'{"role":"user","content":[', b"]}")}``.
        joins: whether neighbours of this role are one message of the wire; every role's are, if left out.

    Attributes:
        buffer: all messages of the wire, joined by commas.
    """

    __slots__ = ("_encode", "_firsts", "_fragments", "_frames", "_joins", "_messages", "buffer")

    def __init__(
        self,
        encode: Callable[[Message], MessageParts],
        frames: Mapping[str, tuple[bytes, bytes]],
        joins: Callable[[str], bool] = lambda role: True,
    ) -> None:
        self.buffer = bytearray()
        self._encode = encode
        self._frames = frames
        self._joins = joins
        self._messages: list[Message] = []
        self._fragments: list[Fragment] = []
        #: For each fragment, the position of its first message.
        self._firsts: list[int] = []

    @property
    def fragments(self) -> Sequence[Fragment]:
        """The messages of the wire, in order."""
        return self._fragments

    def update(self, messages: Sequence[Message]) -> int:
        """Brings the buffer to these messages, encoding only what follows the first difference.

        Returns:
            How many bytes at the beginning of the buffer are what they were. The last message of the wire may have
            grown: then that is where its parts ended.
        """
        known = len(self._messages)
        # Messages are compared by identity (they define no other equality), which lists do at the speed of C.
        if list(messages[:known]) != self._messages:
            pairs = enumerate(zip(self._messages, messages, strict=False))
            known = self._forget_from(next((at for at, (old, new) in pairs if old is not new), len(messages)))
        unchanged = len(self.buffer)
        for position in range(known, len(messages)):
            message = messages[position]
            role, parts = self._encode(message)
            if parts:
                unchanged = min(unchanged, self._append(role, parts, position))
            # One by one: where a message fails, those before it are in the buffer, and must not get there twice.
            self._messages.append(message)
        return unchanged

    def _append(self, role: str, parts: Sequence[bytes], position: int) -> int:
        buffer = self.buffer
        before, behind = self._frames[role]
        joined = b",".join(parts)
        last = self._fragments[-1] if self._fragments else None
        if last is not None and last.role == role and self._joins(role):
            unchanged = last.parts_end
            del buffer[last.parts_end :]
            buffer += b","
            start = last.start
            self._fragments.pop()
        else:
            unchanged = len(buffer)
            if buffer:
                buffer += b","
            start = len(buffer)
            buffer += before
            self._firsts.append(position)
        buffer += joined
        parts_end = len(buffer)
        buffer += behind
        self._fragments.append(Fragment(role, start, parts_end, len(buffer)))
        return unchanged

    def _forget_from(self, position: int) -> int:
        """Forgets the message at this position and what follows, and whatever shares a message of the wire with it.

        Returns:
            How many messages are left.
        """
        while self._firsts and self._firsts[-1] >= position:
            self._drop_last()
        if self._firsts and position < len(self._messages):
            position = self._drop_last()
        del self._messages[position:]
        return position

    def _drop_last(self) -> int:
        self._fragments.pop()
        del self.buffer[self._fragments[-1].end if self._fragments else 0 :]
        return self._firsts.pop()
