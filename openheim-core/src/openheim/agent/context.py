"""Keeps requests within the model's context window.

A session has one :class:`ContextFitter`. It holds what requests are made from: the stored messages, repaired, with old
tool results shortened and old turns left out or summarised as far as that was needed. The stored history is never
changed. Every measure stays in force until more room is needed, and then makes more than just enough, so that requests
go on beginning with the same bytes. ``docs/explanation/context.md`` tells the rules and the reasons.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from openheim.agent.compaction import Compaction, compaction_in
from openheim.agent.repair import RepairedHistory, is_derived
from openheim.agent.results import old_result_bytes, shortened_results
from openheim.agent.sizes import message_size, text_size, tools_size
from openheim.agent.structured import request_system
from openheim.agent.window import Room
from openheim.messages import TextBlock

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from openheim.agent.settings import LoopSettings
    from openheim.messages import Message, Usage
    from openheim.providers import ToolSpec

__all__ = ("ContextFitter",)

#: Bytes of a request that make a token, until the service has told, and the bounds of what is learned from it.
BYTES_PER_TOKEN = 4.0
MIN_BYTES_PER_TOKEN, MAX_BYTES_PER_TOKEN = 1.0, 8.0

#: Share of a request that was refused for its length that the next ones may have.
CEILING_SHARE = 0.75
#: Share of the limit that is left in use once room had to be made.
LOW_MARK = 0.75

#: Turns whose tool results stay whole as long as leaving out others makes room; the latest is one of them.
PROTECTED_TURNS = 2


class ContextFitter:
    """Makes the messages of requests fit. One object serves a session for its whole life; its work follows growth.

    Use: :meth:`bind` when a turn starts and :meth:`update` before a request. Then, where :meth:`exceeded` or
    :meth:`rejected` says what room there is, the measures in this order: :meth:`shorten_old_results`, a summary
    (:meth:`install`) or :meth:`leave_out_turns`, :meth:`shorten_latest_turn`, :meth:`leave_out_summary`. Each returns
    whether it changed the request.

    Args:
        state: what :meth:`to_dict` gave when the session was last used.
        records: the history's records; those of compactions count.

    Attributes:
        request: the messages to send. One that did not change is the same object in the next request.
        bytes_per_token: learned from what the service reports.
        ceiling_bytes: learned from requests that the service refused as too long.
    """

    def __init__(self, state: Mapping[str, Any] | None = None, records: Iterable[Mapping[str, Any]] = ()) -> None:
        self.request: list[Message] = []
        self.bytes_per_token = BYTES_PER_TOKEN
        self.ceiling_bytes: int | None = None
        self._binding: tuple[str, str, int | None] | None = None
        self._request_tokens: float | None = None
        self._old_result_bytes = old_result_bytes(None)
        self._system_size = 0
        self._tools: tuple[tuple[ToolSpec, ...], int] = ((), 0)

        self._history = RepairedHistory()
        #: For each message of the repaired history: what stands for it in requests, and the size of that.
        self._items: list[Message] = []
        self._sizes: list[int] = []
        #: Positions of the user's messages, and of the model's.
        self._turns: list[int] = []
        self._replies: list[int] = []
        #: Size of the request's messages.
        self._bytes = 0

        #: Results before this position are short.
        self._short_end = 0
        #: What is before ``_summary_end`` is summarised, and what is from there to ``_first`` left out.
        self._summary_end = 0
        self._first = 0
        self._head: Message | None = None
        self._noted: Message | None = None
        #: Whether the head is the first request alone, without a summary.
        self._keeps_first_request = False
        #: What a rejection overrode: the ceiling, the first message, the summary left out, the first request kept.
        self._before_rejection: tuple[int | None, int, str | None, bool] | None = None
        self._announced = 0

        # The same measures by message id, which is how they are kept and found again.
        self._shortened_upto: str | None = None
        self._first_kept: str | None = None
        self._left_out_summary: str | None = None
        self._compactions = [compaction for record in records if (compaction := compaction_in(record)) is not None]
        self._read(state or {})

    # --- what requests consist of ---

    def bind(self, settings: LoopSettings) -> None:
        """Tells what goes with the messages. Another model, or another window, unlearns what was true of the last."""
        binding = (settings.provider_name, settings.model, settings.context.window)
        if self._binding not in (None, binding):
            self.bytes_per_token, self.ceiling_bytes = BYTES_PER_TOKEN, None
            self._first_kept = None
            self._take_back_summary(None)
            self._drop_first_request()
            self._cut(self._summary_end)
        self._binding = binding
        self._request_tokens = settings.context.request_tokens(settings.max_tokens)
        self._old_result_bytes = old_result_bytes(settings.context.window)
        self._system_size = text_size(request_system(settings))
        if self._tools[0] is not settings.offered:
            self._tools = (settings.offered, tools_size(settings.offered))

    def update(self, stored: Sequence[Message]) -> None:
        """Brings the request up to date with the history, at the cost of what is new in it."""
        self._before_rejection = None
        known = self._history.update(stored)
        if known < len(self._items):
            self._forget_history()
        for message in self._history.messages[known:]:
            self._add(message)
        if known == 0 and self._items:
            self._find_measures()

    @property
    def size(self) -> int:
        """The request's size in bytes, with system text and tools."""
        return self._system_size + self._tools[1] + self._bytes

    @property
    def limit(self) -> int | None:
        """Bytes that a request may have, or None as long as nothing is known about that."""
        limits = [] if self.ceiling_bytes is None else [self.ceiling_bytes]
        if self._request_tokens is not None:
            limits.append(int(self._request_tokens * self.bytes_per_token))
        return min(limits, default=None)

    @property
    def dropped(self) -> int:
        """How many messages are left out of the request, without a summary of them."""
        return self._first - self._summary_end

    def newly_dropped(self) -> int | None:
        """:attr:`dropped`, where watchers have not heard of it yet."""
        changed, self._announced = self.dropped != self._announced, self.dropped
        return self.dropped if changed and self.dropped else None

    def to_dict(self) -> dict[str, Any]:
        """What to keep with the session, as JSON values. Summaries are not in it: they have their records."""
        state: dict[str, Any] = {
            "binding": list(self._binding) if self._binding is not None else None,
            "bytes_per_token": round(self.bytes_per_token, 3),
            "ceiling_bytes": self.ceiling_bytes,
            "shortened_upto": self._shortened_upto,
            "first_kept": self._first_kept,
            "left_out_summary": self._left_out_summary,
            "keeps_first_request": self._keeps_first_request or None,
        }
        return {key: value for key, value in state.items() if value is not None}

    # --- what the service says ---

    def exceeded(self) -> Room | None:
        """The room that there is, if the request takes more."""
        limit = self.limit
        return Room(limit, int(limit * LOW_MARK)) if limit is not None and self.size > limit else None

    def rejected(self) -> Room:
        """Learns that the request was too long, and returns the room for a shorter one."""
        if self._before_rejection is None:
            self._before_rejection = (
                self.ceiling_bytes,
                self._first,
                self._left_out_summary,
                self._keeps_first_request,
            )
        ceiling = int(self.size * CEILING_SHARE)
        self.ceiling_bytes = ceiling if self.ceiling_bytes is None else min(ceiling, self.ceiling_bytes)
        limit = self.limit or ceiling
        return Room(limit, limit)

    def accepted(self, usage: Usage | None) -> None:
        """Learns from the request having been answered."""
        self._before_rejection = None
        tokens = usage.input_tokens + usage.cache_creation_tokens + usage.cache_read_tokens if usage is not None else 0
        if tokens > 0:
            self.bytes_per_token = _within_bounds(self.size / tokens)

    def gave_up(self) -> None:
        """Unlearns what rejections since the last answer seemed to say: heeding it has not helped."""
        if self._before_rejection is not None:
            self.ceiling_bytes, first, left_out_summary, kept_first_request = self._before_rejection
            self._before_rejection = None
            self._take_back_summary(left_out_summary)
            if not kept_first_request:
                self._drop_first_request()
            elif self._head is None:
                self._keep_first_request()
            self._cut(max(first, self._summary_end))

    # --- measures ---

    def shorten_old_results(self, room: Room) -> bool:
        """Shortens tool results of the older turns, the oldest first."""
        end = self._turns[-PROTECTED_TURNS] if len(self._turns) >= PROTECTED_TURNS else 0
        return self._shorten(end, room.aim)

    def leave_out_turns(self, room: Room, *, keep_first_request: bool = False) -> bool:
        """Leaves out whole turns, the oldest first: as many as needed, but never the latest.

        Args:
            keep_first_request: leave the first message of the user where it is, as a summary would.
        """
        if keep_first_request and self._head is None and self._first == 0 and len(self._turns) > 1:
            self._keep_first_request()
        position = self._first
        size = self.size - (_note_size(self.dropped) if self._noted is not None else 0)
        for turn in self._turns[bisect_right(self._turns, position) :]:
            size -= sum(self._sizes[position:turn])
            position = turn
            if size + _note_size(position - self._summary_end) <= room.aim:
                break
        return self._cut(position)

    def shorten_latest_turn(self, room: Room) -> bool:
        """Shortens results in what is left: those of the latest reply last, and only as far as needed."""
        latest_reply = self._replies[-1] if self._replies else 0
        changed = self._shorten(latest_reply, room.aim)
        return self._shorten(len(self._items), room.limit) or changed

    def leave_out_summary(self, room: Room) -> bool:
        """Leaves out the first request, and the summary behind it if there is one."""
        if self._head is None:
            return False
        if not self._keeps_first_request:
            self._left_out_summary = self._compactions[-1].upto
        self._keeps_first_request = False
        self._head = None
        self._summary_end = 0
        self._set_first(self._first)
        return True

    # --- summaries ---

    def summary_end(self, room: Room | None) -> int | None:
        """Where the part ends that a summary should stand for, or None if there is none.

        Args:
            room: what a request may have; None to keep only the latest turn.
        """
        # A summary of the first request alone would gain nothing: it is kept anyway.
        ends = self._turns[bisect_right(self._turns, max(self._summary_end, 1)) :]
        if not ends:
            return None
        if room is not None:
            # The summary itself is expected to take a tenth of the room.
            fixed = self._system_size + self._tools[1] + self._sizes[self._turns[0]] + room.limit // 10
            kept = sum(self._sizes[ends[0] :])
            for end, following in pairwise(ends):
                if fixed + kept <= room.aim:
                    return end
                kept -= sum(self._sizes[end:following])
        return ends[-1]

    def summarised_part(self, end: int) -> tuple[list[Message], str]:
        """The messages that a summary up to ``end`` has to tell of, and the id of the last stored one of them."""
        part = self._history.messages[self._summary_end : end]
        upto = next((message.id for message in reversed(part) if not is_derived(message)), "")
        return ([] if self._head is None else [self._head]) + part, upto

    def install(self, compaction: Compaction, end: int) -> None:
        """Puts a summary in the place of everything before ``end`` but the first request."""
        self._compactions.append(compaction)
        self._summarise(compaction, end)

    # --- inside ---

    def _add(self, message: Message) -> None:
        position, size = len(self._items), message_size(message)
        self._items.append(message)
        self._sizes.append(size)
        if message.role == "user":
            self._turns.append(position)
        elif message.role == "assistant":
            self._replies.append(position)
        self.request.append(message)
        self._bytes += size

    def _forget_history(self) -> None:
        for positions in (self._items, self._sizes, self._turns, self._replies):
            positions.clear()
        self.request = []
        self._bytes = self._short_end = self._summary_end = self._first = 0
        self._head = self._noted = None

    def _shorten(self, end: int, aim: int) -> bool:
        """Shortens results before ``end`` until the request's size is ``aim``."""
        start = self._short_end
        changed = False
        while self._short_end < end and self.size > aim:
            position = self._short_end
            self._short_end += 1
            item = self._items[position]
            short = shortened_results(item, self._old_result_bytes) if item.role == "tool" else item
            if short is not item:
                saved = self._sizes[position] - message_size(short)
                self._items[position] = short
                self._sizes[position] -= saved
                if position >= self._first:
                    self._bytes -= saved
                    changed = True
        if self._short_end > start:
            self._shortened_upto = self._history.messages[self._short_end - 1].id or None
        if changed:
            self._make_request()
        return changed

    def _cut(self, first: int) -> bool:
        """Makes the request begin with the turn at ``first``, behind the summary if there is one."""
        if first == self._first:
            return False
        self._set_first(first)
        return True

    def _set_first(self, first: int) -> None:
        self._first = first
        self._noted = self._first_kept = None
        if self.dropped:
            kept = self._items[first]
            content = (TextBlock(_note(self.dropped)), *kept.content)
            self._noted = replace(kept, content=content, id=f"{kept.id}:after-{self.dropped}")
            self._first_kept = kept.id or None
        self._make_request()

    def _summarise(self, compaction: Compaction, end: int) -> None:
        first_request = self._items[self._turns[0]]
        content = (*first_request.content, TextBlock(compaction.as_text()))
        self._keeps_first_request = False
        self._head = replace(first_request, content=content, id=f"{first_request.id}:summary-{compaction.upto}")
        self._summary_end = end
        self._set_first(end)

    def _keep_first_request(self) -> None:
        """Has requests begin with the first request, whatever is left out behind it."""
        self._head = self._items[0]
        self._keeps_first_request = True
        self._summary_end = 1
        self._set_first(max(self._first, 1))

    def _drop_first_request(self) -> None:
        """Undoes :meth:`_keep_first_request`, up to the request, which is the caller's."""
        if self._keeps_first_request:
            self._keeps_first_request = False
            self._head = None
            self._summary_end = 0

    def _take_back_summary(self, left_out: str | None) -> None:
        """Puts the summary in force again that was left out, if it is another than the one up to ``left_out``."""
        if self._left_out_summary != left_out:
            self._left_out_summary = left_out
            if self._items:
                self._find_summary()

    def _make_request(self) -> None:
        request = [] if self._head is None else [self._head]
        self._bytes = sum(self._sizes[self._first :]) + sum(map(message_size, request))
        if self._noted is None:
            request += self._items[self._first :]
        else:
            self._bytes += _note_size(self.dropped)
            request.append(self._noted)
            request += self._items[self._first + 1 :]
        self.request = request

    # --- what is kept ---

    def _find_measures(self) -> None:
        """Takes up the measures that were in force when this history was last used, as far as they fit it."""
        first_kept = self._position(self._first_kept)
        shortened_upto = self._position(self._shortened_upto)
        if shortened_upto is not None:
            self._shorten(shortened_upto + 1, -1)
        self._find_summary()
        if self._keeps_first_request:
            self._keeps_first_request = False
            if self._head is None and first_kept is not None and first_kept > 1:
                self._keep_first_request()
        if first_kept is not None and first_kept > self._summary_end and first_kept in self._turns:
            self._cut(first_kept)
        self._announced = self.dropped

    def _find_summary(self) -> None:
        """Puts the latest summary in force that fits this history, unless it was left out."""
        while self._compactions:
            compaction = self._compactions[-1]
            position = self._position(compaction.upto)
            later = [] if position is None else self._turns[bisect_right(self._turns, position) :]
            if later:
                if compaction.upto != self._left_out_summary:
                    self._summarise(compaction, later[0])
                return
            self._compactions.pop()

    def _position(self, message_id: str | None) -> int | None:
        """Where a message is in this history; None if it is not in it."""
        if not message_id:
            return None
        messages = self._history.messages
        return next((number for number, message in enumerate(messages) if message.id == message_id), None)

    def _read(self, state: Mapping[str, Any]) -> None:
        """Takes what it can use of a state; one from another version, or damaged, does no harm."""

        def text(key: str) -> str | None:
            value = state.get(key)
            return value if isinstance(value, str) else None

        match state.get("binding"):
            case [str(provider), str(model), int() | None as window]:
                self._binding = (provider, model, window)
        match state.get("bytes_per_token"):
            case int() | float() as ratio:
                self.bytes_per_token = _within_bounds(ratio)
        match state.get("ceiling_bytes"):
            case int(ceiling) if ceiling > 0:
                self.ceiling_bytes = ceiling
        self._shortened_upto = text("shortened_upto")
        self._first_kept = text("first_kept")
        self._left_out_summary = text("left_out_summary")
        self._keeps_first_request = state.get("keeps_first_request") is True


def _within_bounds(ratio: float) -> float:
    return max(MIN_BYTES_PER_TOKEN, min(MAX_BYTES_PER_TOKEN, ratio))


def _note(dropped: int) -> str:
    messages = "message" if dropped == 1 else "messages"
    return f"[{dropped} earlier {messages} omitted to fit the context window]"


def _note_size(dropped: int) -> int:
    return text_size(_note(dropped)) if dropped else 0
