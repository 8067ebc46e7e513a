"""openheim in an asynchronous program; :mod:`openheim.sync_client` is for scripts.

::

    async with Client(tools=[my_tool]) as client:
        session = client.new_session()
        async for event in session.prompt("What is in this directory?"):
            ...

A client is a runtime built from the user's settings, or from arguments alone, and the operations on stored sessions.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

import anyio
import anyio.to_thread

from openheim._arguments import texts
from openheim.errors import SessionBusyError
from openheim.runtime.places import current_directory
from openheim.runtime.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Iterable,
        Mapping,
        Sequence,
    )
    from pathlib import Path
    from types import TracebackType

    from openheim.gates import Gate
    from openheim.providers import Provider, ToolSpec
    from openheim.runtime import Session
    from openheim.store.digest import Totals
    from openheim.store.operations.removal import Pruned
    from openheim.store.rows import SearchHit, SessionPage
    from openheim.tools import Tool

T = TypeVar("T")

__all__ = ("Client",)


class Client:
    """Sessions in this process. Enter it as an async context manager before running a turn.

    Args:
        config: a config file instead of the user's own; False reads neither file nor environment, so that the arguments
            alone decide.
        provider: the name of an entry of the settings, a kind such as ``openai``, or a provider object.
        model: one of its models.
        api_key, api_base, timeout_secs, max_tokens, context_window: of the provider that ``provider`` names; they win
            over its entry.
        max_iterations, work_dir, data_dir, allow_shell: as in the settings, and win over them.
        skills: of every new session.
        tools: further tools, typed functions made with :func:`openheim.tool` or objects.
        gate: the name of a gate, or a gate object.
        settings: any other settings, nested as in the config file.
        cwd: the directory of new sessions, whose project may have settings too; by default the current one.
        trust: whether to trust that project, this once; None for what is stored.
        safe_mode: use first-party plugins only.
        report: told what a person should know, one line at a time; by default a warning is logged.

    Raises:
        ConfigError: a setting is wrong.
        TypeError: an argument is of another type, such as a text where a list is expected.
    """

    def __init__(
        self,
        *,
        config: str | bool | None = None,
        provider: str | Provider | None = None,
        model: str | None = None,
        api_key: str | None = None,
        api_base: str | None = None,
        timeout_secs: float | None = None,
        max_tokens: int | None = None,
        context_window: int | None = None,
        max_iterations: int | None = None,
        work_dir: Path | str | None = None,
        data_dir: Path | str | None = None,
        allow_shell: bool | None = None,
        skills: Sequence[str] = (),
        tools: Iterable[Tool] = (),
        gate: str | Gate | None = None,
        settings: Mapping[str, Any] | None = None,
        cwd: Path | str | None = None,
        trust: bool | None = None,
        safe_mode: bool = False,
        report: Callable[[str], None] | None = None,
    ) -> None:
        entry = {
            "api_key": api_key,
            "api_base": api_base,
            "timeout_secs": timeout_secs,
            "max_tokens": max_tokens,
            "context_window": context_window,
        }
        top = {
            "max_iterations": max_iterations,
            "work_dir": str(work_dir) if work_dir is not None else None,
            "data_dir": str(data_dir) if data_dir is not None else None,
            "allow_shell": allow_shell,
        }
        chosen = _given(top) | dict(settings or {})
        entry = _given(entry)
        if entry:
            if not isinstance(provider, str):
                raise TypeError(f"{', '.join(entry)} belong to a provider that is named: pass provider='openai' or so")
            providers = dict(chosen.get("providers", {}))
            providers[provider] = {**providers.get(provider, {}), **entry}
            chosen["providers"] = providers
        self.provider = provider
        self.model = model
        self.gate = gate
        self.skills = texts("skills", skills)
        self.cwd = cwd
        self.runtime = Runtime.from_config(
            config, settings=chosen, cwd=cwd, trust=trust, safe_mode=safe_mode, tools=tools, report=report
        )

    async def __aenter__(self) -> Self:
        await self.runtime.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.runtime.__aexit__(kind, error, trace)

    def new_session(self, **options: Any) -> Session:
        """Starts a session; options as of :meth:`openheim.Runtime.new_session`, with the client's own as defaults."""
        defaults: dict[str, Any] = {"provider": self.provider, "model": self.model, "gate": self.gate}
        defaults |= {"skills": self.skills, "cwd": self.cwd}
        return self.runtime.new_session(**(_given(defaults) | options))

    def resume(self, session_id: str, **options: Any) -> Session:
        """Goes on with a stored session; options as of :meth:`openheim.Runtime.load_session`.

        The session keeps its own provider and model, unless the client was given a provider object. One that is live
        in this client is returned as it is, but for what is asked for here.
        """
        defaults: dict[str, Any] = {}
        if self.runtime.live.get(session_id) is None:
            defaults["gate"] = self.gate
            if not isinstance(self.provider, str):
                defaults |= {"provider": self.provider, "model": self.model}
        return self.runtime.load_session(session_id, **(_given(defaults) | options))

    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools that sessions offer."""
        return self.runtime.toolbox.specs

    # --- stored sessions ---

    async def list_sessions(
        self,
        *,
        cwd: Path | str | None = None,
        archived: bool | None = False,
        limit: int | None = 50,
        cursor: str | None = None,
    ) -> SessionPage:
        """Stored sessions, the one used last first. See :func:`openheim.store.operations.listing.list_sessions`."""
        from openheim.store.operations.listing import list_sessions

        directory = str(await anyio.Path(cwd).resolve()) if cwd is not None else None
        return await self._blocking(list_sessions, cwd=directory, archived=archived, limit=limit, cursor=cursor)

    async def search(self, words: str, *, limit: int = 20) -> list[SearchHit]:
        """Stored sessions that hold the words."""
        from openheim.store.operations.listing import search_sessions

        return await self._blocking(search_sessions, words, limit=limit)

    async def totals(self, session_id: str) -> Totals:
        """Messages, turns and tokens of a stored session, by provider and model; summaries count as well."""
        from openheim.store.operations.listing import session_totals

        return await self._blocking(session_totals, session_id)

    async def fork(self, session_id: str, *, title: str | None = None) -> str:
        """Copies a session up to its last completed turn, and returns the id of the copy."""
        from openheim.store.operations.fork import fork_session

        return (await self._blocking(fork_session, session_id, title=title)).id

    async def rename(self, session_id: str, title: str) -> None:
        """Gives a session a title."""
        from openheim.store.operations.marks import rename_session

        meta = await self._blocking(rename_session, session_id, title)
        live = self.runtime.live.get(session_id)
        if live is not None:
            live.meta.title = meta.title

    async def archive(self, session_id: str) -> None:
        """Takes a session out of listings, for good; it can still be resumed by its id."""
        from openheim.store.operations.marks import archive_session

        await self._blocking(archive_session, session_id)
        live = self.runtime.live.get(session_id)
        if live is not None:
            live.meta.archived = True

    async def delete(self, session_id: str) -> None:
        """Deletes a session and its files.

        Raises:
            SessionBusyError, SessionLockedError: its turn is running, here or in another process.
            SessionNotFoundError: there is none.
        """
        from openheim.store.operations.removal import delete_session

        live = self.runtime.live.get(session_id)
        if live is not None:
            if live.running:
                raise SessionBusyError(
                    "a turn of this session is running", session_id=session_id, hint="cancel it first"
                )
            self.runtime.close_session(live)
        await self._blocking(delete_session, session_id)

    async def prune(
        self, *, older_than_secs: float | None = None, keep: int | None = None, dry_run: bool = False
    ) -> Pruned:
        """Deletes sessions that were not used for long. Those in use are kept; ``removed`` and ``kept`` say which."""
        from openheim.store.operations.removal import prune_sessions

        limits = {"older_than_secs": older_than_secs, "keep": keep}
        planned = await self._blocking(prune_sessions, **limits, dry_run=True)
        if dry_run:
            return planned
        for meta in planned.removed:
            live = self.runtime.live.get(meta.id)
            if live is not None and not live.running:
                self.runtime.close_session(live)
        return await self._blocking(prune_sessions, **limits)

    async def export_markdown(self, session_id: str, *, secrets: Sequence[str] = ()) -> str:
        """A session to read, without the secrets named."""
        from openheim.store.operations.export import export_markdown

        return await self._blocking(export_markdown, session_id, secrets=secrets)

    async def export_json(self, session_id: str, *, secrets: Sequence[str] = ()) -> dict[str, Any]:
        """A session as a JSON object that :meth:`import_session` takes, without the secrets named."""
        from openheim.store.operations.export import export_json

        return await self._blocking(export_json, session_id, secrets=secrets)

    async def import_session(self, document: Any, *, cwd: Path | str | None = None) -> str:
        """Adds a session from a JSON object, and returns its id, which is a new one if it is taken here.

        Args:
            cwd: the directory that it is to work in, whatever the document says; the current one if None.
        """
        from openheim.store.operations.importing import import_session

        directory = str(await anyio.Path(cwd if cwd is not None else current_directory()).resolve())
        return (await self._blocking(import_session, document, cwd=directory)).id

    async def _blocking(self, operation: Callable[..., T], *arguments: Any, **named: Any) -> T:
        return await anyio.to_thread.run_sync(partial(operation, self.runtime.store, *arguments, **named))


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
