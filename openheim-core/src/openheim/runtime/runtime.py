"""The runtime: what all sessions of a process share."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import anyio

from openheim._arguments import items, texts, whole_number
from openheim.agent.steps import DirectSteps, timestamp
from openheim.agent.turn import filtered_environment
from openheim.agent.window import ContextSettings
from openheim.config.models import resolve_mode
from openheim.config.selection import KEY_VARIABLES
from openheim.errors import ConfigError, PluginError, SessionBusyError, UsageError
from openheim.http import HttpClient
from openheim.messages import GIVEN_PROVIDER
from openheim.permissions import PermissionPolicy, parse_rule
from openheim.permissions.modes import known_mode
from openheim.prompt import merged_skills
from openheim.retry import RetryPolicy
from openheim.runtime.background import BackgroundTask
from openheim.runtime.binding import BoundProviders
from openheim.runtime.flushing import Flusher
from openheim.runtime.live import LiveSessions
from openheim.runtime.observers import Observers
from openheim.runtime.options import SessionOptions, governed, governed_mode
from openheim.runtime.places import Places, current_directory
from openheim.runtime.saving import SessionSaver
from openheim.runtime.session import Session
from openheim.runtime.single_call import call_tool
from openheim.runtime.toolboxes import Toolboxes
from openheim.store import HistoryStore, SessionMeta

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence
    from types import TracebackType

    from anyio.abc import TaskGroup

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
    from openheim.prompt import PromptBuilder
    from openheim.providers import Provider, ProviderSettings
    from openheim.runtime.binding import ModelBinding
    from openheim.runtime.places import Place
    from openheim.store import StoredSession
    from openheim.tools import Tool, ToolsContext

__all__ = ("Runtime",)

T = TypeVar("T")

_log = logging.getLogger(__name__)

#: Seconds between two renewals of the leases of running turns.
LEASE_REFRESH_SECS = 300.0

#: Seconds that turns may take to end when the runtime is closed.
CLOSE_SECS = 10.0


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
        self._gate_settings: dict[str, Any] = {}
        self._places = Places(loaded)
        self._observers = Observers(host, self.report)
        self._flusher = Flusher()
        self._closed = anyio.Event()
        self._exit = AsyncExitStack()
        self._group: TaskGroup | None = None
        self._closing = False

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
        from openheim.config.load import load_config
        from openheim.plugins.host import PluginHost
        from openheim.plugins.policy import policy_from

        say = report or _log.warning
        if path is False:
            loaded = load_config(os.devnull, flags=settings, environment={}, cwd=cwd, trust=False)
        else:
            loaded = load_config(path if isinstance(path, str) else None, flags=settings, cwd=cwd, trust=trust)
        for notice in loaded.notices:
            say(notice)
        for warning in loaded.warnings:
            say(f"warning: {warning}")
        policy = policy_from(
            loaded.config.plugins, os.environ, safe_mode=safe_mode, managed=loaded.managed.get("plugins")
        )
        host = PluginHost(policy, report=lambda line: say(f"warning: {line}"), debug=debug)
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
        allow, deny = _checked(allow, deny, max_iterations)
        warnings: list[str] = []
        place = self._place(cwd, warnings)
        binding = self.bind(provider, model)
        self.store.prepare()
        now = self.timestamp()
        meta = SessionMeta(
            id=str(uuid.uuid4()),
            created_at=now,
            updated_at=now,
            mode=self.governed_mode(self.loaded.config.permissions.mode if mode is None else mode, warnings.append),
            skills=list(skills),
        )
        options = self._options(gate, allow, deny, attended, max_iterations, warnings)
        prompt = self._prompt(meta, place)
        prompt.require_skills()
        return self._admit(self._session(meta, place, binding, options, prompt, warnings))

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
        allow, deny = _checked(allow, deny, max_iterations)
        live = self.live.get(session_id)
        if live is not None:
            unmet = self._unmet_place_and_model(live, cwd, provider, model) + live.options.unmet(
                gate=gate,
                allow=[*map(parse_rule, allow)],
                deny=[*map(parse_rule, deny)],
                attended=attended,
                max_iterations=max_iterations,
            )
            if unmet:
                raise UsageError(
                    f"the session is live here already, with another value for {', '.join(unmet)}",
                    hint="change its model with set_model, or close it first",
                )
            if mode is not None and known_mode(mode) != live.meta.mode:
                live.set_mode(mode)
            self.live.touch(live)
            return live
        self.store.prepare()
        stored = self.store.load(session_id)
        meta, warnings = stored.meta, list(stored.warnings)
        place = self._place(cwd if cwd is not None else self._stored_directory(meta, warnings), warnings)
        if provider is None and model is None:
            binding = self._stored_binding(meta, warnings)
        else:
            binding = self.bind(provider, model)
        wanted = mode if mode is not None else resolve_mode(meta.mode) or "default"
        meta.mode = self.governed_mode(wanted, warnings.append)
        options = self._options(gate, allow, deny, attended, max_iterations, warnings)
        return self._admit(self._session(meta, place, binding, options, self._prompt(meta, place), warnings, stored))

    def directory_for(self, cwd: Path | str | None) -> Path:
        """The directory of a session that is started with this one, without links. Raises :class:`ConfigError`."""
        return self._place(cwd, []).cwd

    def _place(self, cwd: Path | str | None, warnings: list[str]) -> Place:
        place = self._places.at(Path(cwd) if cwd is not None else current_directory())
        # Where nobody asked for a directory, the configured one is what they expect.
        if place.moved and cwd is not None:
            warnings.append(place.moved)
        return place

    def _unmet_place_and_model(
        self, live: Session, cwd: Path | str | None, provider: str | Provider | None, model: str | None
    ) -> list[str]:
        unmet = []
        if cwd is not None and self.directory_for(cwd) != live.files.cwd:
            unmet.append("cwd")
        if isinstance(provider, str):
            asked = self.bind(provider, model)
            if (asked.provider_name, asked.model) != (live.binding.provider_name, live.binding.model):
                unmet.append("model" if asked.provider_name == live.binding.provider_name else "provider")
        elif provider is not None and provider is not live.binding.provider:
            unmet.append("provider")
        elif model is not None and model != live.binding.model:
            unmet.append("model")
        return unmet

    def _stored_directory(self, meta: SessionMeta, warnings: list[str]) -> str | None:
        if meta.cwd is not None and not Path(meta.cwd).is_dir():
            warnings.append(f"the session's directory {meta.cwd} is gone; it goes on in the current one")
            return None
        return meta.cwd

    def _stored_binding(self, meta: SessionMeta, warnings: list[str]) -> ModelBinding:
        if meta.provider is not None and meta.provider != GIVEN_PROVIDER:
            try:
                return self.bind(meta.provider, meta.model)
            except (ConfigError, PluginError) as err:
                warnings.append(f"the session's model cannot be used ({err.message}); the default one is")
        return self.bind(None, None)

    def _options(
        self,
        gate: str | Gate | None,
        allow: Sequence[str],
        deny: Sequence[str],
        attended: bool,
        max_iterations: int | None,
        warnings: list[str],
    ) -> SessionOptions:
        config = self.loaded.config
        gate = governed(self.loaded, gate, "permissions", "gate", warn=warnings.append)
        max_iterations = governed(self.loaded, max_iterations, "max_iterations", warn=warnings.append)
        asked_gate = gate if gate is not None else config.permissions.gate
        return SessionOptions(
            gate=self._gate(asked_gate),
            asked_gate=asked_gate,
            allow=tuple(map(parse_rule, (*config.permissions.allow, *allow))),
            deny=tuple(map(parse_rule, (*config.permissions.deny, *deny))),
            attended=attended,
            max_iterations=max_iterations if max_iterations is not None else config.max_iterations,
        )

    def governed_mode(self, asked: str, warn: Callable[[str], None]) -> str:
        """The mode asked for, unless the managed policy sets another, which ``warn`` is told.

        Raises:
            ConfigError: there is no such mode.
        """
        return governed_mode(self.loaded, asked, warn)

    def _prompt(self, meta: SessionMeta, place: Place) -> PromptBuilder:
        skills = merged_skills(self.loaded.config.default_skills, meta.skills)
        return place.prompt.for_session(skills, meta.created_at[:10])

    def _session(
        self,
        meta: SessionMeta,
        place: Place,
        binding: ModelBinding,
        options: SessionOptions,
        prompt: PromptBuilder,
        warnings: Sequence[str],
        stored: StoredSession | None = None,
    ) -> Session:
        meta.cwd = str(place.cwd)
        session = Session(
            self,
            meta,
            binding=binding,
            toolbox=self.toolbox_for(place.files.root),
            files=place.files,
            prompt=prompt,
            options=self._with_rules_of(place, options),
            first_seq=self._first_seq(),
            stored=stored,
        )
        session.warnings = tuple(warnings)
        return session

    def _with_rules_of(self, place: Place, options: SessionOptions) -> SessionOptions:
        """With what a trusted project denies in which the session works, although it is not the runtime's own."""
        return replace(options, deny=(*options.deny, *place.denied)) if place.denied else options

    def _require_not_closed(self) -> None:
        if self._closing:
            raise RuntimeError("the runtime was closed, with its client: make a new one")

    def _admit(self, session: Session) -> Session:
        self._require_not_closed()
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
        if environment.has_to_close and self._group is not None:
            self._group.start_soon(environment.close)

    def _first_seq(self) -> int:
        # Numbers must grow over restarts of the process, and time does.
        return int(self.steps.now().timestamp() * 1000) * 1000

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
        config = self.loaded.config
        warnings: list[str] = []
        place = self._place(cwd, warnings)
        files = place.files
        chosen = self.governed_mode(config.permissions.mode if mode is None else mode, warnings.append)
        for warning in warnings:
            self.report(f"warning: {warning}")
        toolbox = self.toolbox_for(files.root)
        policy = PermissionPolicy(
            self._gate(config.permissions.gate),
            allow=tuple(map(parse_rule, config.permissions.allow)),
            deny=(*map(parse_rule, config.permissions.deny), *place.denied),
        )
        return await call_tool(
            name,
            arguments,
            mode=chosen,
            toolbox=toolbox,
            files=files,
            policy=policy,
            steps=self.steps,
            make_env=self.tool_env,
            publish=publish,
        )

    # --- what sessions share ---

    def tool_env(self) -> dict[str, str]:
        """The environment that tools may give to child processes: without any provider's key, in use or not."""
        names = set(KEY_VARIABLES.values())
        secrets = set()
        for entry in self.loaded.config.providers.values():
            if entry.env_var:
                names.add(entry.env_var)
            if isinstance(entry.api_key, str) and entry.api_key.strip():
                secrets.add(entry.api_key.strip())
            elif isinstance(entry.api_key, Mapping) and isinstance(entry.api_key.get("env"), str):
                names.add(entry.api_key["env"])
        secrets |= {os.environ[name] for name in names if os.environ.get(name)} | self._providers.secrets
        return filtered_environment(os.environ, hidden_names=names, secrets=secrets)

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

    def provider_settings(self, name: str) -> ProviderSettings:
        """The entry of a provider that :meth:`bind` has given out."""
        return self._providers.settings_of(name)

    def _gate(self, gate: str | Gate) -> Gate:
        if not isinstance(gate, str):
            return gate
        if gate not in self._gate_settings:
            table = self.loaded.config.gates.get(gate, {})
            self._gate_settings[gate] = self.host.validate_settings("gates", gate, table, where=f"[gates.{gate}]")
        return self.host.create_gate(gate, self._gate_settings[gate])

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
        self._require_not_closed()
        if self._group is not None:
            raise RuntimeError("the runtime is open already: enter it, or its client, once")
        self._group = group = await self._exit.enter_async_context(anyio.create_task_group())
        self._closed = anyio.Event()
        group.start_soon(self._flusher.run)
        group.start_soon(self._refresh_leases)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            running = [session for session in self.live if session.running]
            for session in running:
                session.cancel()
            with anyio.move_on_after(CLOSE_SECS) as waiting:
                for session in running:
                    await session.wait_until_idle()
            if waiting.cancelled_caught:
                _log.warning("a turn did not end within %s s and is left behind", CLOSE_SECS)
            self._closing = True
            self._closed.set()
            await self._flusher.close()
            for session in self.live:
                self.close_session(session)
            await self._providers.aclose()
            if self._http is not None:
                await self._http.aclose()
        # Without the error: a task group would wrap it, and what the program raised should reach it as it is.
        await self._exit.aclose()
        self._group = None
        self.store.close()

    def start_task(self, call: Callable[..., Awaitable[T]], *arguments: Any) -> BackgroundTask[T]:
        """Starts a call that lives as long as the runtime does, or as it takes.

        Raises:
            RuntimeError: the runtime was not entered, or is closing.
        """
        if self._group is None or self._closing:
            raise RuntimeError("the runtime is not open: use it as an async context manager")
        task: BackgroundTask[T] = BackgroundTask()
        self._group.start_soon(task.run, call, arguments)
        return task

    def saver_for(self, *arguments: Any, **named: Any) -> SessionSaver:
        """What keeps a session's files; arguments as of :class:`SessionSaver`, behind those that the runtime has."""
        return SessionSaver(self.store, self._flusher, *arguments, **named)

    async def _refresh_leases(self) -> None:
        while not self._closing:
            with anyio.move_on_after(LEASE_REFRESH_SECS):
                await self._closed.wait()
            for session in self.live:
                if session.running:
                    session.refresh_lease()


def _checked(
    allow: Sequence[str], deny: Sequence[str], max_iterations: int | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Both lists, once all of it is what it should be."""
    if max_iterations is not None:
        whole_number("max_iterations", max_iterations, least=1)
    return texts("allow", allow), texts("deny", deny)
