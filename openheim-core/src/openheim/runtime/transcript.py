"""A session's messages in memory and on disk, kept in step.

A message counts as acknowledged when its line is on disk: only then do watchers hear of it. What cannot be written (a
    full disk, say) stays in memory and is written, in order, as soon as that works again; until then nothing behind
    it is written, so that the log is always a beginning of the conversation.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from openheim.agent.repair import with_every_call_answered
from openheim.errors import StorageError
from openheim.events import MessageAppended, Notice
from openheim.messages import Message, ToolResultBlock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from openheim.agent.steps import Steps
    from openheim.events import Event
    from openheim.messages import Block, Role
    from openheim.store import SessionLog

__all__ = ("Transcript",)


class Transcript:
    """The loop's :class:`~openheim.agent.loop.TurnHistory`.

    ``messages`` is what is (or is to be) on disk; ``view`` what requests are made from: the same, with every call
    answered.
    """

    def __init__(
        self, log: SessionLog, messages: Sequence[Message], *, publish: Callable[[Event], None], steps: Steps
    ) -> None:
        self.messages: list[Message] = list(messages)
        self.view: list[Message] = with_every_call_answered(self.messages)
        self.turn = max((message.turn for message in self.messages), default=0)
        self._log = log
        self._publish = publish
        self._steps = steps
        self._step = 0
        self._call_ids = {call.id for message in self.messages for call in message.tool_uses}
        #: Calls without an answer; none, once a turn has ended in order.
        self._open_calls: set[str] = set()
        self._unwritten: deque[Message] = deque()
        self._unacknowledged: deque[Message] = deque()
        self._failing = False

    def start_turn(self) -> None:
        """Counts a new turn, and mends what an interrupted one left."""
        self.turn += 1
        self._step = 0
        if self._open_calls:
            self.view = with_every_call_answered(self.messages)
            self._open_calls.clear()

    def store(self, role: Role, content: Sequence[Block], **details: Any) -> Message:
        """Adds a message; :meth:`acknowledge` tells watchers about it."""
        self._step += 1
        message = Message(
            role,
            tuple(content),
            id=self._steps.new_id(),
            created_at=self._steps.now().isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            turn=self.turn,
            step=self._step,
            **details,
        )
        if role == "assistant":
            self._open_calls.update(call.id for call in message.tool_uses)
        elif role == "tool":
            self._open_calls.difference_update(
                block.tool_call_id for block in message.content if isinstance(block, ToolResultBlock)
            )
        self.messages.append(message)
        self.view.append(message)
        self._unwritten.append(message)
        self._write()
        return message

    def acknowledge(self) -> None:
        """Tells watchers about the messages that are on disk and that they do not know of."""
        if self._unwritten:
            self._write()
        while self._unacknowledged:
            self._publish(MessageAppended(self._unacknowledged.popleft()))

    def withdraw(self, message: Message) -> None:
        """Takes back the latest message, which is not on disk."""
        self._unwritten.remove(message)
        self.messages.remove(message)
        self.view.remove(message)

    def store_record(self, record: Mapping[str, Any]) -> None:
        """Adds a record behind the messages. One that cannot be written is left out: records add to messages only."""
        if not self._unwritten:
            try:
                self._log.append_record(record)
            except StorageError as err:
                self._publish(Notice("error", f"the end of the turn was not saved: {err}"))

    @property
    def unwritten(self) -> int:
        """Messages that could not be written so far."""
        return len(self._unwritten)

    def unique_call_id(self, wanted: str) -> str:
        call_id = wanted if wanted.strip() and wanted not in self._call_ids else f"call_{self._steps.new_id()[:24]}"
        self._call_ids.add(call_id)
        return call_id

    def _write(self) -> None:
        try:
            while self._unwritten:
                self._log.append(self._unwritten[0])
                self._unacknowledged.append(self._unwritten.popleft())
        except StorageError as err:
            if not self._failing:
                self._publish(Notice("error", f"the conversation is not being saved: {err}"))
            self._failing = True
        else:
            self._failing = False
