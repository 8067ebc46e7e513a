"""A session's messages in memory and on disk, kept in step.

A message counts as acknowledged when its line is on disk: only then do watchers hear of it. What cannot be written (a
    full disk, say) stays in memory and is written, in order, as soon as that works again; until then nothing behind
    it is written, so that the log is always a beginning of the conversation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim.agent.steps import timestamp
from openheim.errors import StorageError
from openheim.events import MessageAppended, Notice
from openheim.messages import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from openheim.agent.steps import Steps
    from openheim.events import Event
    from openheim.messages import Block, Role
    from openheim.store import SessionLog

__all__ = ("Transcript",)


class Transcript:
    """The loop's :class:`~openheim.agent.history.TurnHistory`: ``messages`` is what is, or is to be, on disk."""

    def __init__(
        self, log: SessionLog, messages: Sequence[Message], *, publish: Callable[[Event], None], steps: Steps
    ) -> None:
        self.messages: list[Message] = list(messages)
        self.turn = max((message.turn for message in self.messages), default=0)
        self._log = log
        self._publish = publish
        self._steps = steps
        self._step = 0
        self._call_ids = {call.id for message in self.messages for call in message.tool_uses}
        # Nearly always empty, and an empty deque takes ten times the room of an empty list.
        self._unwritten: list[Message | dict[str, Any]] = []
        self._unacknowledged: list[Message] = []
        self._failing = False

    def start_turn(self) -> None:
        """Counts a new turn; to be called after :meth:`catch_up`."""
        self.turn += 1
        self._step = 0

    def catch_up(self) -> list[dict[str, Any]]:
        """Takes in what another process has added meanwhile; to be called under the lease.

        Returns:
            The records among that.

        Raises:
            SessionNotFoundError: the session was deleted meanwhile.
            StorageError: its log cannot be read, or was replaced.
        """
        records = []
        for entry in self._log.read_new():
            if isinstance(entry, Message):
                self.messages.append(entry)
                self._call_ids.update(call.id for call in entry.tool_uses)
                self.turn = max(self.turn, entry.turn)
            else:
                records.append(entry)
        return records

    def store(self, role: Role, content: Sequence[Block], **details: Any) -> Message:
        """Adds a message; :meth:`acknowledge` tells watchers about it."""
        self._step += 1
        message = Message(
            role,
            tuple(content),
            id=self._steps.new_id(),
            created_at=timestamp(self._steps),
            turn=self.turn,
            step=self._step,
            **details,
        )
        self.messages.append(message)
        self._unwritten.append(message)
        self._write()
        return message

    def acknowledge(self) -> None:
        """Tells watchers about the messages that are on disk and that they do not know of."""
        if self._unwritten:
            self._write()
        while self._unacknowledged:
            self._publish(MessageAppended(self._unacknowledged.pop(0)))

    def store_prompt(self, content: Sequence[Block]) -> Message:
        """Adds the message of a user that starts a turn, if it can be put on disk.

        Raises:
            StorageError: it cannot; nothing was added.
        """
        message = self.store("user", content)
        if self.unwritten:
            self._unwritten.remove(message)
            self.messages.remove(message)
            raise StorageError(
                "the prompt could not be saved, so it was not sent", hint="check free space and permissions"
            )
        return message

    def store_record(self, record: Mapping[str, Any]) -> None:
        """Adds a record behind the messages. Of those that wait to be written, it replaces one about the same thing."""
        record = dict(record)
        self._unwritten = [
            kept for kept in self._unwritten if isinstance(kept, Message) or _subject(kept) != _subject(record)
        ]
        self._unwritten.append(record)
        self._write()

    @property
    def unwritten(self) -> int:
        """Messages that could not be written so far."""
        return sum(isinstance(entry, Message) for entry in self._unwritten)

    @property
    def pending(self) -> bool:
        """Whether messages or records could not be written so far."""
        return bool(self._unwritten)

    def unique_call_id(self, wanted: str) -> str:
        call_id = wanted if wanted.strip() and wanted not in self._call_ids else f"call_{self._steps.new_id()[:24]}"
        self._call_ids.add(call_id)
        return call_id

    def _write(self) -> None:
        try:
            while self._unwritten:
                entry = self._unwritten[0]
                if isinstance(entry, Message):
                    self._log.append(entry)
                    self._unacknowledged.append(entry)
                else:
                    self._log.append_record(entry)
                del self._unwritten[0]
        except StorageError as err:
            if not self._failing:
                self._publish(Notice("error", f"the conversation is not being saved: {err}"))
            self._failing = True
        else:
            self._failing = False


def _subject(record: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    return record.get("record"), record.get("turn"), record.get("key")
