"""Bodies of requests on the Chat Completions wire.

Every message is turned into bytes once. The bytes are kept, so that a request costs a copy of them and no more, and so
that what was sent before is sent again to the byte, which is what prompt caches of services go by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from openheim.jsontext import wire_bytes
from openheim_provider_openai.chat_messages import ChatMessages
from openheim_provider_openai.tools import dumped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openheim import Message, ModelRequest
    from openheim_provider_openai.dialect import Dialect

__all__ = ("chat_body",)

_CACHE_KEY = "openai-chat"


def chat_body(
    request: ModelRequest,
    dialect: Dialect,
    provider: str,
    tools: bytes,
    parameters: Mapping[str, Any],
    *,
    system: str | None = None,
) -> bytes:
    """The body of a request.

    Args:
        provider: the entry that is asked.
        tools: the field of the tools, with a comma before it.
        parameters: its other fields, such as ``stream``; at least one.
        system: the system text in place of the request's.

    Raises:
        InvalidRequestError: a parameter has no form in JSON.
    """
    kept = request.cache.get(_CACHE_KEY)
    if not isinstance(kept, _Kept):
        kept = request.cache[_CACHE_KEY] = _Kept(dialect, provider)
    kept.update(request.messages)
    head = kept.system_bytes(request.system if system is None else system)
    return b"".join(
        (
            b'{"model":',
            wire_bytes(request.model),
            b',"messages":[',
            head,
            # Each message is kept with a comma before it, which the first one must not have.
            memoryview(kept.buffer)[0 if head else 1 :],
            kept.trailing(),
            b"]",
            tools,
            b",",
            dumped("a parameter of the request", parameters)[1:],
        )
    )


class _Run(NamedTuple):
    """Neighbours of one role that are written together.

    Args:
        first: position of the first message.
        start: where its bytes begin in the buffer.
    """

    role: str
    first: int
    start: int


class _Kept:
    """Bytes of one session's messages and system text, and what they were made from."""

    __slots__ = ("_encode", "_messages", "_runs", "_strict", "_system", "buffer")

    def __init__(self, dialect: Dialect, provider: str) -> None:
        self.buffer = bytearray()
        self._encode = ChatMessages(dialect, provider)
        self._strict = dialect.strict_roles
        self._messages: list[Message] = []
        self._runs: list[_Run] = []
        self._system: tuple[str, bytes] = ("", b"")

    def update(self, messages: Sequence[Message]) -> None:
        """Brings the buffer to these messages, encoding only what follows the first difference."""
        self._encode.ids.update(messages)
        known = len(self._messages)
        # Messages are compared by identity (they define no other equality), which lists do at the speed of C.
        if list(messages[:known]) != self._messages:
            pairs = enumerate(zip(self._messages, messages, strict=False))
            known = self._forget_from(next((at for at, (old, new) in pairs if old is not new), len(messages)))
        for message in messages[known:]:
            self._take(message)

    def trailing(self) -> bytes:
        """What belongs at the very end only, since whether more follows is not known yet.

        Behind results these are their images, which must stand behind all results of a reply, while results themselves
        hold text only; and behind the assistant's message, the word of the user that has it go on.
        """
        last = self._runs[-1] if self._runs else None
        if last is None or last.role not in ("assistant", "tool"):
            return b""
        if last.role == "assistant":
            return self._encode.go_on()
        return self._encode.result_images(self._messages[last.first :])

    def system_bytes(self, system: str) -> bytes:
        if self._system[0] != system:
            self._system = (system, wire_bytes({"role": "system", "content": system}) if system.strip() else b"")
        return self._system[1]

    def _take(self, message: Message) -> None:
        role = self._encode.role_of(message)
        last = self._runs[-1] if self._runs else None
        joined = last if last is not None and last.role == role and (role == "tool" or self._strict) else None
        if role:
            run = joined or _Run(role, len(self._messages), len(self.buffer))
            # Encoding comes first: a message that fails must not be taken for one that is in the buffer.
            if role == "tool":
                start = len(self.buffer)
                opening = b"" if start else self._encode.opening(role)
                encoded = opening + self._encode.results(message)
            else:
                start = run.start
                results = self._results_before(run, -1 if joined is None else -2)
                messages = [*self._messages[run.first :], message]
                encoded = self._encode.run(role, messages, results, is_first=not start)
            self.buffer[start:] = encoded
            if joined is None:
                self._runs.append(run)
        self._messages.append(message)

    def _results_before(self, run: _Run, place: int) -> Sequence[Message]:
        """The results right before a run, the one before it being at this place."""
        before = self._runs[place] if len(self._runs) >= -place else None
        return self._messages[before.first : run.first] if before is not None and before.role == "tool" else ()

    def _forget_from(self, position: int) -> int:
        """Forgets the message at this position and what follows, and the run that it belongs to.

        Returns:
            How many messages are left.
        """
        while self._runs and self._runs[-1].first >= position:
            del self.buffer[self._runs.pop().start :]
        if self._runs and position < len(self._messages):
            last = self._runs.pop()
            del self.buffer[last.start :]
            position = last.first
        del self._messages[position:]
        return position
