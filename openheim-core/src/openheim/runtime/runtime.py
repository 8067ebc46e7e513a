"""The runtime: what all sessions of a process share."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, TypeVar, cast

import anyio

from openheim._arguments import items, texts
from openheim.agent.steps import DirectSteps, timestamp
from openheim.agent.window import ContextSettings
from openheim.errors import SessionBusyError
from openheim.http import HttpClient
from openheim.retry import RetryPolicy
from openheim.runtime.arguments import SessionArguments
from openheim.runtime.binding import BoundProviders
from openheim.runtime.flushing import Flusher
from openheim.runtime.gates import Gates
from openheim.runtime.life import RuntimeLife
from openheim.runtime.live import LiveSessions
from openheim.runtime.making import SessionMaker
from openheim.runtime.observers import Observers
from openheim.runtime.options import governed_mode
from openheim.runtime.places import current_directory
from openheim.runtime.saving import SessionSaver
from openheim.runtime.toolboxes import Toolboxes
from openheim.store import HistoryStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from openheim.agent.steps import Steps
    from openheim.agent.toolbox import Toolbox
    from openheim.agent.turn import ToolEnvironment
    from openheim.agent.window import Strategy
    from openheim.config.load import LoadedConfig
    from openheim.embeddings import Embedder
    from openheim.events import Event
    from openheim.gates import Gate
    from openheim.messages import ToolResultBlock
    from openheim.plugins.host import PluginHost
    from openheim.providers import Provider, ProviderSettings
    from openheim.runtime.background import BackgroundTask
    from openheim.runtime.binding import ModelBinding
    from openheim.runtime.session import Session
    from openheim.tools import Tool, ToolsContext

__all__ = ("Runtime",)

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Runtime:
    """Sessions, and the providers, tools and files that they share.

    Making a runtime and its sessions loads plugins and so may take a while, but needs no event loop; running a turn
    needs one, and the runtime entered as an async context manager.

    Args:
        loaded: the settings.
        host: the plugins.
        tools: further tools, beside those of plugins; they win over a plugin's tool of the same name.
        report: told what a person should know, one line at a time.
        steps: how the loop does its work; see :mod:`openheim.agent.steps`.
    """

    def __init__(
        self,
        loaded: LoadedConfig,
        host: PluginHost,
        *,
        tools: Iterable[Tool] = (),
        report: Callable[[str], None] | None = None,
        steps: Steps | None = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        self.loaded = loaded
        self.host = host
        self.steps: Steps = steps or DirectSteps()
        self.retry = retry or RetryPolicy()
        self.store = HistoryStore(loaded.data_dir / "history")
        sessions = loaded.config.sessions
        self.live = LiveSessions(capacity=sessions.max_live, idle_secs=sessions.idle_secs)
        self.report = report or _log.warning
        self._toolboxes = Toolboxes(loaded, host, items("tools", tools))
        self._http: HttpClient | None = None
        self._providers = BoundProviders(loaded, host, lambda: self.http, self.report)
        self._gates = Gates(loaded, host)
        self._maker = SessionMaker(self, self._gates)
        self._observers = Observers(host, self.report)
        self._flusher = Flusher()
        self._life = RuntimeLife(self.live, self._flusher)

    @classmethod
    def from_config(
        cls,
        path: str | bool | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        cwd: Path | str | None = None,
        trust: bool | None = None,
        safe_mode: bool = False,
        debug: bool = False,
        tools: Iterable[Tool] = (),
        report: Callable[[str], None] | None = None,
    ) -> Runtime:
        """A runtime from the user's config file and environment, with the installed plugins.

        Args:
            path: a config file instead of the user's own; False for neither file nor environment.
            settings: settings that win over file and environment.
            cwd: the directory whose project may have settings too; by default the current one.
            trust: whether to trust that project, this once; None for what is stored.
            safe_mode: use first-party plugins only.
            debug: log tracebacks of plugins that fail.
            tools, report: as above; ``report`` is told of the settings' warnings too.

        Raises:
            ConfigError: a setting is wrong, or a file cannot be read.
        """
        from openheim.runtime.building import settings_and_plugins

        say = report or _log.warning
        loaded, host = settings_and_plugins(
            path, settings, cwd=cwd, trust=trust, safe_mode=safe_mode, debug=debug, report=say
        )
        return cls(loaded, host, tools=tools, report=say)

    # --- sessions ---

    def new_session(
        self,
        *,
        cwd: Path | str | None = None,
        provider: str | Provider | None = None,
        model: str | None = None,
        mode: str | None = None,
        skills: Sequence[str] = (),
        gate: str | Gate | None = None,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        attended: bool = False,
        max_iterations: int | None = None,
    ) -> Session:
        """Starts a session. Nothing is on disk before its first prompt.

        A managed policy wins over the arguments; :attr:`Session.warnings` says where.

        Args:
            cwd: its directory; also the boundary of its tools, unless the settings name a ``work_dir``. One outside
                of that is replaced by it, with a warning.
            provider: the name of an entry, or a provider object.
            model: one of the provider's models; its default if None.
            mode: see ``docs/reference/permissions.md``.
            skills: names of skills, beside the default ones.
            gate: the name of a gate, or a gate object.
            allow, deny: permission rules, beside those of the settings.
            attended: whether a watcher will answer questions.

        Raises:
            ConfigError: a setting is missing or wrong, or names something unknown.
            PluginError: a plugin that was named cannot be used.
            StorageError: there is no place for the session's files.
            TypeError: an argument is of another type, such as a text where a list is expected.
            UsageError: ``max_iterations`` is less than 1.
        """
        skills = texts("skills", skills)
        asked = SessionArguments(cwd, provider, model, mode, gate, allow, deny, attended, max_iterations).checked()
        return self._admit(self._maker.new(asked, skills))

    def load_session(
        self,
        session_id: str,
        *,
        cwd: Path | str | None = None,
        provider: str | Provider | None = None,
        model: str | None = None,
        mode: str | None = None,
        gate: str | Gate | None = None,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        attended: bool = False,
        max_iterations: int | None = None,
    ) -> Session:
        """Goes on with a session of the history. One that is live already is returned, turn and all.

        Of a live one the mode is set as :meth:`Session.set_mode` does; other arguments have to be as they are there.

        What is not given is taken from the session: its directory, provider and model, mode and remembered decisions.
        What is gone (a directory, a provider) is replaced by the default, and :attr:`Session.warnings` says so.

        Raises:
            SessionNotFoundError: there is no such session.
            StorageError: its history cannot be read.
            UsageError: it is live, and was loaded with other arguments; or as :meth:`new_session`.
            ConfigError, PluginError, TypeError: as :meth:`new_session`.
        """
        from openheim.runtime.loading import from_history, go_on_live

        asked = SessionArguments(cwd, provider, model, mode, gate, allow, deny, attended, max_iterations).checked()
        live = self.live.get(session_id)
        if live is None:
            return self._admit(from_history(self, self._maker, session_id, asked))
        go_on_live(self, live, asked)
        self.live.touch(live)
        return live

    def directory_for(self, cwd: Path | str | None) -> Path:
        """The directory of a session that is started with this one, without links. Raises :class:`ConfigError`."""
        return self._maker.place(cwd, []).cwd

    def governed_mode(self, asked: str, warn: Callable[[str], None]) -> str:
        """The mode asked for, unless the managed policy sets another, which ``warn`` is told.

        Raises:
            ConfigError: there is no such mode.
        """
        return governed_mode(self.loaded, asked, warn)

    def _admit(self, session: Session) -> Session:
        self._life.require_not_closed()
        for evicted in self.live.add(session):
            evicted.close()
        return session

    def activate(self, session: Session) -> None:
        """Counts as activity of the session, which may have been let go meanwhile.

        Raises:
            SessionBusyError: the session was loaded anew since, and lives on in that object.
        """
        live = self.live.get(session.id)
        if live is None:
            self._admit(session)
        elif live is session:
            self.live.touch(session)
        else:
            raise SessionBusyError(
                "this session was let go and has been loaded anew", session_id=session.id, hint="use the loaded one"
            )

    def close_session(self, session: Session) -> None:
        """Lets go of a session; its files stay. A running turn is cancelled, and keeps the lease until it ends."""
        self.live.remove(session)
        session.close()

    def close_tools(self, environment: ToolEnvironment) -> None:
        """Has tools told that a session has ended; the end of the runtime waits for it."""
        self._life.close_tools(environment)

    def timestamp(self) -> str:
        """Now, in RFC 3339 with milliseconds."""
        return timestamp(self.steps)

    async def call_tool(
        self,
        name: str,
        arguments: str,
        *,
        cwd: Path | str | None = None,
        mode: str | None = None,
        publish: Callable[[Event], None] = lambda event: None,
    ) -> ToolResultBlock:
        """Runs one tool without a model, under the boundary and the permissions that a session would have.

        Args:
            arguments: JSON text of an object.
            publish: told of the call's events.
        """
        from openheim.runtime.single_call import call_tool

        permissions = self.loaded.config.permissions
        warnings: list[str] = []
        place = self._maker.place(cwd, warnings)
        chosen = self.governed_mode(permissions.mode if mode is None else mode, warnings.append)
        for warning in warnings:
            self.report(f"warning: {warning}")
        return await call_tool(
            self,
            name,
            arguments,
            mode=chosen,
            place=place,
            toolbox=self.toolbox_for(place.files.root),
            gate=self._gates.get(permissions.gate),
            publish=publish,
        )

    # --- what sessions share ---

    def tool_env(self) -> dict[str, str]:
        """The environment that tools may give to child processes: without any provider's key, in use or not."""
        # What it takes is not needed to start.
        from openheim.runtime.child_environment import child_environment

        return child_environment(self.loaded.config.providers.values(), self._providers.secrets)

    @property
    def http(self) -> HttpClient:
        """The client that all providers share."""
        if self._http is None:
            self._http = HttpClient(proxy=self.loaded.config.http.proxy, ca_file=self.loaded.config.http.ca_file)
        return self._http

    @property
    def toolbox(self) -> Toolbox:
        """The tools of a session in the current directory."""
        return self.toolbox_for(self.loaded.work_dir(current_directory()))

    def toolbox_for(self, boundary: Path) -> Toolbox:
        """All tools that plugins and the program offer to sessions within this boundary."""
        return self._toolboxes.at(boundary)

    def tools_context(self, boundary: Path) -> ToolsContext:
        """What toolsets are told when they are asked for their tools for this boundary."""
        return self._toolboxes.context(boundary)

    def bind(self, provider: str | Provider | None, model: str | None) -> ModelBinding:
        """Provider and model for a session. Raises as :meth:`new_session` does."""
        return self._providers.bind(provider, model)

    def embedder(self) -> Embedder | None:
        """What makes embeddings as ``[memory]`` says, made when it is first asked for; None if it names nothing.

        Raises:
            ConfigError: the provider or its model cannot be used.
            PluginError: its plugin cannot be used, or makes no embeddings.
        """
        return self._providers.embedder()

    def provider(self, name: str) -> tuple[Provider, ProviderSettings]:
        """The provider of an entry, whether or not a model is named for it. Raises as :meth:`new_session`."""
        return self._providers.provider(name)

    def context_settings(self, binding: ModelBinding) -> ContextSettings:
        """How requests are kept within a model's window."""
        context = self.loaded.config.context
        strategy = cast("Strategy", context.strategy)
        return ContextSettings(binding.context_window, strategy, context.reserve_tokens, binding.max_output_tokens)

    def observer_of(self, session_id: str) -> Callable[[Event], None] | None:
        """What a session's stream calls for its observers, or None where there are none."""
        return self._observers.of(session_id)

    # --- life ---

    async def __aenter__(self) -> Runtime:
        await self._life.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self._life.end_turns()
            for session in self.live:
                self.close_session(session)
            await self._providers.aclose()
            if self._http is not None:
                await self._http.aclose()
        await self._life.end()
        self.store.close()

    def start_task(self, call: Callable[..., Awaitable[T]], *arguments: Any) -> BackgroundTask[T]:
        """Starts a call that lives as long as the runtime does, or as it takes.

        Raises:
            RuntimeError: the runtime was not entered, or is closing.
        """
        return self._life.start_task(call, *arguments)

    def saver_for(self, *arguments: Any, **named: Any) -> SessionSaver:
        """What keeps a session's files; arguments as of :class:`SessionSaver`, behind those that the runtime has."""
        return SessionSaver(self.store, self._flusher, *arguments, **named)
