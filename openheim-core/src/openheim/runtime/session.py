"""A session: one conversation, with one writer and any number of watchers."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from openheim.agent.context import ContextFitter
from openheim.agent.loop import TurnLoop, TurnOutcome
from openheim.agent.structured import checked_schema
from openheim.agent.turn import ToolEnvironment
from openheim.errors import OpenheimError, SessionBusyError, SessionLockedError, StorageError
from openheim.events import Notice, TurnFinished
from openheim.runtime.asks import Asks
from openheim.runtime.content import prompt_blocks
from openheim.runtime.deciding import SessionDecisions
from openheim.runtime.snapshot import Snapshot
from openheim.runtime.state import SessionState
from openheim.runtime.stream import EventStream
from openheim.runtime.transcript import Transcript
from openheim.runtime.turn_settings import turn_settings
from openheim.store.meta import title_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
    from typing import Literal

    from openheim.agent.settings import LoopSettings
    from openheim.agent.toolbox import Toolbox
    from openheim.events import Event
    from openheim.files import Files
    from openheim.messages import Block, Message
    from openheim.prompt import PromptBuilder
    from openheim.providers import Provider, ToolSpec
    from openheim.runtime.binding import ModelBinding
    from openheim.runtime.compacting import Compacting
    from openheim.runtime.options import SessionOptions
    from openheim.runtime.runtime import Runtime
    from openheim.store import SessionMeta, StoredSession

#: Events that :meth:`Session.prompt` holds for whoever iterates over it; deltas that wait are joined.
ITERATOR_CAPACITY = 65_536


__all__ = ("Session",)


class Session:
    """Made by :meth:`openheim.Runtime.new_session`. All methods belong to the event loop's thread."""

    def __init__(
        self,
        runtime: Runtime,
        meta: SessionMeta,
        *,
        binding: ModelBinding,
        toolbox: Toolbox,
        files: Files,
        prompt: PromptBuilder,
        options: SessionOptions,
        first_seq: int,
        stored: StoredSession | None = None,
    ) -> None:
        self.meta = meta
        self.files = files
        self.options = options
        self.stream = EventStream(first_seq, runtime.observer_of(meta.id))
        self.asks = Asks(self.stream.publish)
        self._runtime = runtime
        self._toolbox = toolbox
        log = runtime.store.log(meta.id, stored.position if stored is not None else None)
        self._lease = runtime.store.lease(meta.id)
        self._prompt = prompt
        self._told_warnings = 0
        self._environment = ToolEnvironment(meta.id, files, make_env=runtime.tool_env)
        messages = stored.messages if stored is not None else ()
        self._transcript = Transcript(log, messages, publish=self.stream.publish, steps=runtime.steps)
        self._state = SessionState(
            runtime,
            meta,
            binding,
            ContextFitter(meta.extra.get("context"), stored.records if stored is not None else ()),
            logged=stored.state if stored is not None else {},
            transcript=self._transcript,
            publish=self.stream.publish,
        )
        self._files = runtime.saver_for(
            meta,
            log,
            self._lease,
            self._transcript,
            is_stored=bool(messages),
            catch_up=self._catch_up,
            tell=self._tell_unsaved,
        )
        self._log = log
        self._decisions = SessionDecisions(
            meta,
            options,
            toolbox=toolbox,
            cwd=files.cwd,
            asks=self.asks,
            steps=lambda: runtime.steps,
            keep=self._keep,
            publish=self.stream.publish,
        )
        self._loop: TurnLoop | Compacting | None = None
        #: What a person should know about the state in which the session was loaded, one line each.
        self.warnings: tuple[str, ...] = ()
        self._closing = False
        self._ended = anyio.Event()

    def __repr__(self) -> str:
        return f"Session({self.meta.id!r})"

    @property
    def id(self) -> str:
        return self.meta.id

    @property
    def binding(self) -> ModelBinding:
        """The provider and model that the next turn uses."""
        return self._state.binding

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation so far; not to be changed."""
        return self._transcript.messages

    @property
    def running(self) -> bool:
        """Whether a turn is running."""
        return self._loop is not None

    @property
    def is_kept(self) -> bool:
        """Whether a tool has something going on for the session, such as a job in the background."""
        return self._environment.is_kept

    @property
    def unsaved(self) -> OpenheimError | None:
        """Why messages or metadata may be missing on the disk, as of the last time that they were made durable."""
        return self._files.unsaved

    @property
    def offered_tools(self) -> tuple[ToolSpec, ...]:
        """The tools that the model is told of: in plan mode those that change nothing."""
        return self._toolbox.read_only_specs if self.meta.mode == "plan" else self._toolbox.specs

    def join(self) -> Snapshot:
        """The state now. Attaching to :attr:`stream` right after, without awaiting between, misses nothing."""
        return Snapshot(
            seq=self.stream.seq,
            messages=tuple(self._transcript.messages),
            partial=tuple(self._loop.pieces) if self._loop is not None else (),
            questions=tuple(self.asks.open_questions()),
            running=self.running,
        )

    def cancel(self) -> None:
        """Cancels the turn or compaction that is running, if there is one. What was finished is kept."""
        if self._loop is not None:
            self._loop.cancel()

    def answer(self, ask_id: str, decision: Literal["allow", "deny"], *, by: str, remember: bool = False) -> bool:
        """Answers a permission question. False if somebody else was first.

        Args:
            remember: whether calls like this one are answered the same from now on, for the life of the session.
        """
        return self.asks.answer(ask_id, decision, by=by, remember=remember)

    def set_mode(self, mode: str) -> None:
        """Changes the mode, from the next call on. Where a managed policy sets it, a notice says that it stays.

        Raises:
            ConfigError: there is no such mode.
            SessionNotFoundError: the session was deleted meanwhile.
        """
        mode = self._state.governed_mode(mode)
        self._keep({"record": "mode", "mode": mode})
        self.meta.mode = mode

    def set_model(self, provider: str | Provider | None = None, model: str | None = None) -> None:
        """Changes provider and model, from the next turn on.

        Raises as :meth:`openheim.Runtime.new_session` does, and :class:`~openheim.errors.SessionNotFoundError` if the
        session was deleted meanwhile.
        """
        binding = self._runtime.bind(provider, model)
        self._keep({"record": "model", "provider": binding.provider_name, "model": binding.model})
        self._state.use(binding)

    def _keep(self, record: dict[str, Any]) -> None:
        """Puts a change of the session on disk, if the session is there."""
        self._activate()
        if self._files.is_stored:
            # Nothing is added to a log that was deleted or replaced.
            self._log.foreign_bytes()
            self._state.log({**record, "at": self._runtime.timestamp()})
            self._files.later()

    def _activate(self) -> None:
        self._runtime.activate(self)
        self._files.is_open = True

    async def prompt(
        self, content: str | Sequence[Block], *, response_schema: Mapping[str, Any] | None = None
    ) -> AsyncGenerator[Event, None]:
        """Runs one turn and yields its events as they come; :class:`~openheim.events.TurnFinished` is the last.

        Leaving the loop early cancels the turn; ``contextlib.aclosing`` has that happen at once. Arguments and errors
        as in :meth:`run`, whose result the last event tells.
        """
        watching = self.stream.subscribe(capacity=ITERATOR_CAPACITY)
        turn = self._runtime.start_task(partial(self.run, response_schema=response_schema), content)
        turn.when_done(watching.close)
        try:
            async for event in watching:
                yield event
            turn.result()
        finally:
            watching.close()
            if not turn.done:
                self.cancel()

    async def run(
        self, content: str | Sequence[Block], *, response_schema: Mapping[str, Any] | None = None
    ) -> TurnOutcome:
        """Runs one turn: adds the user's message, then calls model and tools until the model is done.

        Args:
            content: text, or blocks of text and images.
            response_schema: a JSON Schema that the answer has to match. One that does not is asked for once more, and
                then is an error of the outcome; what the answer stands for is its ``value``.

        Returns:
            How the turn ended. A failure of the provider is in its ``error``; watchers have seen all of it as events.

        Raises:
            SessionBusyError: a turn is running already, here or in another object of the same session.
            SessionLockedError: a turn is running in another process.
            StorageError: the message could not be stored; nothing was sent.
            TypeError: ``content`` is something else; nothing was stored or sent.
            UsageError: the schema is none.
        """
        blocks = prompt_blocks(content)
        schema = checked_schema(response_schema) if response_schema is not None else None
        self._require_idle()
        self._activate()
        outcome = TurnOutcome(error=OpenheimError("the turn ended in a way that it should not"))
        started = False
        with self._writing():
            self._loop = loop = TurnLoop(
                self._loop_settings(schema),
                self._transcript,
                publish=self.stream.publish,
                decide=self._decisions.decide,
                ask=self._decisions.ask_question,
            )
            try:
                self._store_prompt(blocks)
                started = True
                outcome = await loop.run()
            except (anyio.get_cancelled_exc_class(), KeyboardInterrupt):
                outcome = replace(loop.outcome, stop_reason="cancelled", error=None)
                raise
            finally:
                self._loop = None
                if started:
                    self._finish(outcome)
        return outcome

    async def compact(self) -> bool:
        """Has the model summarise the conversation, for the requests to come; the stored history stays as it is.

        :meth:`cancel` ends it, and then nothing is changed.

        Returns:
            Whether that was done: not if there is nothing to summarise, or it was cancelled.

        Raises:
            ProviderError: the model wrote no summary; nothing is changed.
            SessionBusyError, SessionLockedError: as :meth:`run`.
        """
        from openheim.runtime.compacting import Compacting

        self._require_idle()
        self._activate()
        with self._writing():
            self._loop = compacting = Compacting(self._transcript, self.stream.publish)
            done = await compacting.run(self._loop_settings())
            self._state.keep_context()
        compacting.tell_end()
        return done

    def refresh_lease(self) -> None:
        """Renews the lease of a running turn; if another process has taken it meanwhile, the turn is cancelled.

        One that cannot be renewed now still holds for a while; watchers are told, and the next call tries again.
        """
        try:
            if self._lease.held:
                self._lease.refresh()
        except SessionLockedError as err:
            self.stream.publish(Notice("error", f"the turn is cancelled: {err}"))
            self.cancel()
        except OpenheimError as err:
            self.stream.publish(Notice("error", f"the session's lease could not be renewed: {err}"))

    def _require_idle(self) -> None:
        if self._loop is not None:
            raise SessionBusyError(
                "a turn of this session is running", session_id=self.id, hint="wait for its end, or cancel it"
            )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """The session's one writer, here and among processes; knows what others have done to the session."""
        self._lease.acquire()
        self._ended = anyio.Event()
        try:
            self._catch_up()
            self._transcript.start_turn()
            yield
        finally:
            self._loop = None
            self._lease.release()
            self._files.later()
            self._ended.set()
            if self._closing:
                self._let_go()

    def _catch_up(self) -> None:
        """Takes in what other processes have done to the session since."""
        records = self._transcript.catch_up()
        if records:
            from openheim.runtime.catching_up import take_over

            take_over(records, self._state)

    async def wait_until_idle(self) -> None:
        """Returns once no turn is running."""
        if self._loop is not None:
            await self._ended.wait()

    def _store_prompt(self, blocks: tuple[Block, ...]) -> None:
        transcript, meta = self._transcript, self.meta
        self._state.log_whole()
        message = transcript.store_prompt(blocks)
        meta.updated_at = message.created_at
        if meta.title is None:
            meta.title = title_of(message.text)
        transcript.acknowledge()
        if not self._files.is_stored:
            self._files.is_stored = True
            try:
                self._files.write_meta()
            except StorageError as err:
                # It is made anew from the messages where it is missing, and written again at the end of the turn.
                self.stream.publish(Notice("warning", str(err)))

    def _loop_settings(self, response_schema: Mapping[str, Any] | None = None) -> LoopSettings:
        state = self._state
        return turn_settings(
            self._runtime,
            state.binding,
            system=self._system_text(),
            toolbox=self._toolbox,
            offered=self.offered_tools,
            environment=self._environment,
            max_iterations=self.options.max_iterations,
            fitter=state.fitter,
            response_schema=response_schema,
        )

    def _system_text(self) -> str:
        text = self._prompt.text()
        for warning in self._prompt.warnings[self._told_warnings :]:
            self.stream.publish(Notice("warning", warning))
        self._told_warnings = len(self._prompt.warnings)
        return text

    def _finish(self, outcome: TurnOutcome) -> None:
        self._state.end_turn(outcome)
        self.stream.publish(
            TurnFinished(
                outcome.stop_reason,
                outcome.text,
                outcome.iterations,
                outcome.usage,
                outcome.error.to_dict() if outcome.error is not None else None,
                tuple(outcome.denied),
                outcome.cost,
                outcome.value,
            )
        )

    # --- the end ---

    def _tell_unsaved(self, text: str) -> None:
        if not self.stream.is_watched:
            self._runtime.report(text)
        self.stream.publish(Notice("error", text))

    def close(self) -> None:
        """Ends the session's stream, its questions and what tools keep for it.

        A turn that is running is cancelled, and keeps the session's lease until it has ended; the rest waits for that.
        """
        self.asks.settle_all("shutdown")
        if self.running:
            self._closing = True
            self.cancel()
        else:
            self._let_go()

    def _let_go(self) -> None:
        self._closing = False
        self._runtime.close_tools(self._environment)
        self._files.close()
        self.stream.close()
