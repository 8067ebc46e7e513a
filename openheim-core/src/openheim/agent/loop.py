"""One turn: call the model, run the tools that it asks for, and again, until it is done.

``docs/explanation/agent-loop.md`` describes order of events, stop reasons and cancelling.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel

from openheim.agent.calls import CallContext, CallRun, announce_calls, prepare_calls, run_calls, settle
from openheim.agent.requests import TurnRequests
from openheim.agent.structured import AnswerProblem, answer_text, answer_value, told_again
from openheim.errors import OpenheimError, ProviderError, SchemaMismatchError, ServerError, StorageError
from openheim.events import IterationStart, Notice, TextDelta, ThinkingDelta, ToolCallDelta, UsageReported
from openheim.messages import TextBlock, ThinkingBlock, ToolUseBlock, Usage
from openheim.pricing import cost_of, was_refused
from openheim.providers import MAX_REPLY_CALLS, too_many_calls, wire_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from openheim.agent.history import TurnHistory
    from openheim.agent.settings import LoopSettings
    from openheim.events import Delta, Event
    from openheim.gates import Decision, ToolCall
    from openheim.messages import Block, Finish, Message, StopReason
    from openheim.providers import ModelReply

__all__ = ("TurnLoop", "TurnOutcome", "nobody")

_log = logging.getLogger(__name__)

#: What one reply may take in memory, and what is counted for each of its deltas beside its text.
MAX_REPLY_BYTES = 64 * 1024 * 1024
DELTA_BYTES = 64


@dataclass(slots=True)
class TurnOutcome:
    """How a turn ended.

    Args:
        stop_reason: None when ``error`` ended it; beside an error that says that the turn was not saved, how it ended.
        text: text of the last reply.
        iterations: model calls made.
        usage: summed over the turn.
        denied: tool and reason of each call that was denied.
        provider, model: who answered last; ``""`` if nobody did.
        value: of an answer that had to match a schema; None if it does not.
        cost: of ``usage``, by the prices of the settings; None if a price is not known, or a service has not counted.
    """

    stop_reason: StopReason | None = None
    text: str = ""
    iterations: int = 0
    usage: Usage = field(default_factory=Usage)
    denied: list[dict[str, str]] = field(default_factory=list)
    error: OpenheimError | None = None
    provider: str = ""
    model: str = ""
    cost: float | None = None
    value: Any = None


async def nobody(block: ToolUseBlock, number: int, question: str) -> bool:
    """Answers tools' questions where nobody can be asked."""
    return False


class TurnLoop:
    """Runs one turn. :meth:`cancel` may be called from any task of the same event loop, at any time."""

    def __init__(
        self,
        settings: LoopSettings,
        history: TurnHistory,
        *,
        publish: Callable[[Event], None],
        decide: Callable[[ToolCall], Awaitable[Decision]],
        ask: Callable[[ToolUseBlock, int, str], Awaitable[bool]] = nobody,
    ) -> None:
        self.settings = settings
        self.history = history
        self.publish = publish
        self.cancelled = False
        #: Deltas of the reply that is being received.
        self.pieces: list[Delta] = []
        #: How the turn goes so far.
        self.outcome = TurnOutcome()
        self._runs: list[CallRun] = []
        self._stored_runs = 0
        #: What calls have cost, and whether that is known of all of them.
        self._cost = 0.0
        self._is_costed = True
        #: Whether a model is being waited for.
        self._is_asking = False
        self._was_asked_again = False
        self._scope = anyio.CancelScope()
        self._requests = TurnRequests(settings, history, publish=publish, spend=self._spend)
        self._calls = CallContext(
            toolbox=settings.toolbox,
            environment=settings.environment,
            steps=settings.steps,
            publish=publish,
            decide=decide,
            ask=ask,
            is_cancelled=lambda: self.cancelled,
            on_settled=self._store_settled,
        )

    def cancel(self) -> None:
        """Ends the turn as soon as possible. What was finished is kept, and the history stays valid."""
        self.cancelled = True
        self._scope.cancel()

    async def run(self) -> TurnOutcome:
        """Runs the turn to its end; failures of the provider are in the outcome, not raised."""
        outcome = self.outcome
        try:
            with self._scope:
                outcome.stop_reason = await self._iterate()
        except (anyio.get_cancelled_exc_class(), KeyboardInterrupt):
            # The caller itself is being cancelled, or the whole program.
            self.cancelled = True
            self._settle_cancelled()
            raise
        except ProviderError as err:
            if self.pieces or not was_refused(err):
                self._count(err.usage)
            self._store_partial(err.partial, "error")
            outcome.error = err
        except OpenheimError as err:
            outcome.error = err
        if self._scope.cancelled_caught:
            self._settle_cancelled()
        if self.cancelled and outcome.error is None and outcome.stop_reason in (None, "max_turn_requests"):
            outcome.stop_reason = "cancelled"
        if self.history.unwritten and outcome.error is None:
            outcome.error = _not_saved(self.history.unwritten)
        return outcome

    async def _iterate(self) -> StopReason:
        outcome = self.outcome
        for iteration in range(1, self.settings.max_iterations + 1):
            await anyio.lowlevel.checkpoint_if_cancelled()
            outcome.iterations = iteration
            self.publish(IterationStart(iteration))
            reply = await self._call_model(iteration)
            message = self._store_reply(reply)
            self._count(reply.usage)
            outcome.provider, outcome.model = self._requests.settings.provider_name, self._requests.settings.model
            calls = message.tool_uses if message is not None else ()
            if calls:
                await self._run_tools(calls, reply.finish)
            if reply.finish == "paused" or (calls and reply.finish != "refusal"):
                continue
            stop_reason = self._stop_reason(reply.finish, message)
            if stop_reason == "end_turn" and self.settings.response_schema is not None:
                problem = self._take_answer(self.settings.response_schema)
                if problem is not None:
                    self._ask_again(problem)
                    continue
            return stop_reason
        return "max_turn_requests"

    def _take_answer(self, schema: Mapping[str, Any]) -> AnswerProblem | None:
        text = answer_text(self.outcome.text)
        try:
            self.outcome.value = answer_value(text, schema)
            self.outcome.text = text
        except AnswerProblem as problem:
            return problem
        return None

    def _ask_again(self, problem: AnswerProblem) -> None:
        """Has the model correct an answer that does not match the schema: once."""
        if self._was_asked_again:
            raise SchemaMismatchError(
                f"the model's answer does not match the schema, for the second time: {problem}",
                hint="make the schema or the prompt simpler, or use another model",
            ) from problem
        self._was_asked_again = True
        self.publish(Notice("warning", f"the answer does not match the schema, and is asked for once more: {problem}"))
        self.history.store("user", (TextBlock(told_again(problem)),))
        self.history.acknowledge()

    def _stop_reason(self, finish: Finish, message: Message | None) -> StopReason:
        if finish == "refusal":
            return "refusal"
        if finish == "max_tokens":
            return "max_tokens"
        if message is None or not message.text.strip():
            self.publish(Notice("warning", "the model ended its reply without any text"))
        elif finish == "other":
            _log.debug("the reply ended for a reason that is not known; taken as its end")
        return "end_turn"

    # --- the model ---

    async def _call_model(self, iteration: int) -> ModelReply:
        self.pieces = pieces = []
        publish = self.publish
        room = MAX_REPLY_BYTES
        calls: set[int] = set()
        call_scope = anyio.CancelScope()

        def emit(delta: Delta) -> None:
            nonlocal room
            if isinstance(delta, ToolCallDelta):
                room -= DELTA_BYTES + len(delta.arguments)
                calls.add(delta.index)
            else:
                room -= DELTA_BYTES + len(delta.text)
            if room < 0 or len(calls) > MAX_REPLY_CALLS:
                call_scope.cancel()
                return
            pieces.append(delta)
            publish(delta)

        reply: ModelReply | None = None
        self._is_asking = True
        with call_scope:
            reply = await self._requests.call(iteration, emit, lambda: bool(pieces))
        self._is_asking = False
        usage = reply.usage if reply is not None else None
        if len(calls) > MAX_REPLY_CALLS or (reply is not None and _count_calls(reply) > MAX_REPLY_CALLS):
            raise too_many_calls(usage)
        if reply is None or _size(reply) > MAX_REPLY_BYTES:
            raise ServerError(
                f"the model's reply is longer than {MAX_REPLY_BYTES // 2**20} MiB",
                hint="set max_tokens for this provider",
                retryable=False,
                usage=usage,
            )
        return reply

    def _spend(self, usage: Usage | None) -> None:
        if usage is None:
            self._add_cost(None)
            return
        self.outcome.usage = self.outcome.usage + usage
        self._add_cost(cost_of(usage, self._requests.settings.price))

    def _add_cost(self, cost: float | None) -> None:
        """Adds what a call cost. Where that is not known once, neither is the sum."""
        if cost is None:
            self._is_costed = False
        else:
            self._cost += cost
        self.outcome.cost = self._cost if self._is_costed else None

    def _count(self, usage: Usage | None) -> None:
        self._spend(usage)
        if usage is not None:
            self.publish(UsageReported(usage))

    def _store_reply(self, reply: ModelReply) -> Message | None:
        self.pieces = []
        content = tuple(
            replace(block, id=self.history.unique_call_id(block.id)) if isinstance(block, ToolUseBlock) else block
            for block in reply.content
            if not (isinstance(block, TextBlock) and not block.text)
        )
        if not content:
            self.outcome.text = ""
            return None
        message = self._store(
            content, usage=reply.usage, stop_reason=reply.finish, model=reply.model, opaque=reply.opaque
        )
        # What was said before a tool call is no answer, but it is the last that was said if the turn is cut short.
        if message.text or not message.tool_uses:
            self.outcome.text = message.text
        return message

    def _store_partial(self, partial: Sequence[Block], stop_reason: str) -> None:
        """Keeps what had arrived of a reply that was cut: text and thinking; a call cut half-way is nothing to keep."""
        kept = [block for block in partial if isinstance(block, TextBlock | ThinkingBlock)] or _joined(self.pieces)
        self.pieces = []
        if any(isinstance(block, TextBlock) and block.text.strip() for block in kept):
            message = self._store(kept, stop_reason=stop_reason)
            self.outcome.text = message.text

    def _store(self, content: Sequence[Block], *, model: str | None = None, **details: Any) -> Message:
        settings = self._requests.settings
        message = self.history.store(
            "assistant",
            content,
            provider=settings.provider_name,
            model=model or settings.model,
            wire=wire_of(settings.provider, settings.model),
            **details,
        )
        self.history.acknowledge()
        return message

    # --- the tools ---

    async def _run_tools(self, calls: Sequence[ToolUseBlock], finish: Finish) -> None:
        self._runs = runs = prepare_calls(calls, self.settings.toolbox, cut=finish == "max_tokens")
        self._stored_runs = 0
        announce_calls(runs, self.publish)
        if finish == "refusal":
            for run in runs:
                run.problem = "the model refused to go on, so the call was not run"
        await run_calls(runs, self._calls)
        self._finish_runs("the tool was cancelled")

    def _store_settled(self) -> None:
        """Puts results on disk as soon as all earlier ones are there; watchers are told when all are."""
        while self._stored_runs < len(self._runs):
            result = self._runs[self._stored_runs].result
            if result is None:
                break
            self.history.store("tool", (result,))
            self._stored_runs += 1

    def _finish_runs(self, reason: str) -> None:
        for run in self._runs:
            if run.result is None:
                settle(run, self._calls, f"Error: {reason}", is_error=True)
            if run.denied is not None:
                self.outcome.denied.append({"tool": run.block.name, "reason": run.denied})
        self._runs = []
        self.history.acknowledge()

    def _settle_cancelled(self) -> None:
        if self._is_asking:
            # What the service had written until then is charged, and not told.
            self._add_cost(None)
        if self._runs:
            self._finish_runs("cancelled by the user")
        self._store_partial((), "cancelled")


def _not_saved(messages: int) -> StorageError:
    return StorageError(
        f"{messages} {'message' if messages == 1 else 'messages'} of this turn could not be saved",
        hint="what the session went on with is lost when this program ends; check free space and permissions",
    )


def _joined(pieces: Sequence[Delta]) -> list[TextBlock | ThinkingBlock]:
    """Text and thinking of the deltas, neighbours of one kind joined."""
    blocks: list[TextBlock | ThinkingBlock] = []
    kind: type | None = None
    texts: list[str] = []

    def close() -> None:
        if texts:
            text = "".join(texts)
            blocks.append(TextBlock(text) if kind is TextDelta else ThinkingBlock(text))
            texts.clear()

    for piece in pieces:
        if isinstance(piece, TextDelta | ThinkingDelta):
            if type(piece) is not kind:
                close()
                kind = type(piece)
            texts.append(piece.text)
    close()
    return blocks


def _count_calls(reply: ModelReply) -> int:
    return sum(isinstance(block, ToolUseBlock) for block in reply.content)


def _size(reply: ModelReply) -> int:
    """About how much a reply takes, in characters of text, thinking and arguments."""
    return sum(
        len(getattr(block, part, "")) for block in reply.content for part in ("text", "thinking", "arguments", "data")
    )
