"""openheim in a script: :class:`SyncClient`, for programs without an event loop.

::

    with SyncClient(tools=[my_tool]) as client:
        print(client.new_session().run("What is in this directory?").text)
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from openheim.client import Client

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from anyio.from_thread import BlockingPortal

    from openheim.agent.loop import TurnOutcome
    from openheim.events import Event
    from openheim.messages import Block
    from openheim.providers import ToolSpec
    from openheim.runtime import Session
    from openheim.store.digest import Totals
    from openheim.store.operations.removal import Pruned
    from openheim.store.rows import SearchHit, SessionPage

__all__ = ("SyncClient", "SyncSession")

T = TypeVar("T")


class SyncClient:
    """:class:`Client` for programs without an event loop: ``with SyncClient(...) as client``.

    An event loop runs in a thread of its own meanwhile. Tools and watchers run there.
    """

    def __init__(self, **options: Any) -> None:
        self._client = Client(**options)
        self._opened = ExitStack()
        self._portal: BlockingPortal | None = None

    def __enter__(self) -> Self:
        from anyio.from_thread import start_blocking_portal

        if self._portal is not None:
            raise RuntimeError("the client is open already: enter it once")
        with ExitStack() as opening:
            portal = opening.enter_context(start_blocking_portal())
            opening.enter_context(portal.wrap_async_context_manager(self._client))
            self._opened = opening.pop_all()
        self._portal = portal
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._opened.__exit__(kind, error, trace)
        finally:
            self._portal = None

    @property
    def is_open(self) -> bool:
        """Whether it was entered as a context manager, and not left."""
        return self._portal is not None

    @property
    def portal(self) -> BlockingPortal:
        """Where the client's event loop is called from this thread.

        Raises:
            RuntimeError: the client is not open.
        """
        if self._portal is None:
            raise RuntimeError("the client is not open: use it as a context manager")
        return self._portal

    def new_session(self, **options: Any) -> SyncSession:
        """See :meth:`Client.new_session`."""
        return SyncSession(self, self.portal.call(lambda: self._client.new_session(**options)))

    def resume(self, session_id: str, **options: Any) -> SyncSession:
        """See :meth:`Client.resume`."""
        return SyncSession(self, self.portal.call(lambda: self._client.resume(session_id, **options)))

    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools that sessions offer."""
        return self._client.tools()

    def list_sessions(self, **options: Any) -> SessionPage:
        """See :meth:`Client.list_sessions`."""
        return self.portal.call(partial(self._client.list_sessions, **options))

    def search(self, words: str, *, limit: int = 20) -> list[SearchHit]:
        """See :meth:`Client.search`."""
        return self.portal.call(partial(self._client.search, words, limit=limit))

    def totals(self, session_id: str) -> Totals:
        """See :meth:`Client.totals`."""
        return self.portal.call(self._client.totals, session_id)

    def fork(self, session_id: str, *, title: str | None = None) -> str:
        """See :meth:`Client.fork`."""
        return self.portal.call(partial(self._client.fork, session_id, title=title))

    def rename(self, session_id: str, title: str) -> None:
        """See :meth:`Client.rename`."""
        self.portal.call(self._client.rename, session_id, title)

    def archive(self, session_id: str) -> None:
        """See :meth:`Client.archive`."""
        self.portal.call(self._client.archive, session_id)

    def delete(self, session_id: str) -> None:
        """See :meth:`Client.delete`."""
        self.portal.call(self._client.delete, session_id)

    def prune(self, *, older_than_secs: float | None = None, keep: int | None = None, dry_run: bool = False) -> Pruned:
        """See :meth:`Client.prune`."""
        call = partial(self._client.prune, older_than_secs=older_than_secs, keep=keep, dry_run=dry_run)
        return self.portal.call(call)

    def export_markdown(self, session_id: str, *, secrets: Sequence[str] = ()) -> str:
        """See :meth:`Client.export_markdown`."""
        return self.portal.call(partial(self._client.export_markdown, session_id, secrets=secrets))

    def export_json(self, session_id: str, *, secrets: Sequence[str] = ()) -> dict[str, Any]:
        """See :meth:`Client.export_json`."""
        return self.portal.call(partial(self._client.export_json, session_id, secrets=secrets))

    def import_session(self, document: Any, *, cwd: Path | str | None = None) -> str:
        """See :meth:`Client.import_session`."""
        return self.portal.call(partial(self._client.import_session, document, cwd=cwd))


class SyncSession:
    """A session of a :class:`SyncClient`."""

    def __init__(self, client: SyncClient, session: Session) -> None:
        self._client = client
        self._session = session

    @property
    def id(self) -> str:
        """The session's id, a UUID."""
        return self._session.id

    @property
    def warnings(self) -> tuple[str, ...]:
        """See :attr:`openheim.Session.warnings`."""
        return self._session.warnings

    def run(self, content: str | Sequence[Block], *, response_schema: Mapping[str, Any] | None = None) -> TurnOutcome:
        """Runs one turn; see :meth:`openheim.Session.run`. Ctrl+C cancels it."""
        turn = partial(self._session.run, content, response_schema=response_schema)
        return self._call(turn)

    def prompt(
        self, content: str | Sequence[Block], *, response_schema: Mapping[str, Any] | None = None
    ) -> Iterator[Event]:
        """Runs one turn and yields its events as they come; leaving the loop early, or Ctrl+C, cancels it."""
        portal = self._client.portal
        events = portal.call(lambda: self._session.prompt(content, response_schema=response_schema))
        try:
            while (event := self._call(_next, events)) is not None:
                yield event
        except (GeneratorExit, KeyboardInterrupt):
            # After a client that was closed there is nothing left to cancel.
            if self._client.is_open:
                portal.call(_leave, events, self._session)
            raise

    def compact(self) -> bool:
        """See :meth:`openheim.Session.compact`."""
        return self._call(self._session.compact)

    def cancel(self) -> None:
        """Cancels the turn that is running; may be called from another thread."""
        self._client.portal.call(self._session.cancel)

    def _call(self, call: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        """What comes of a turn, or of waiting for its next event; Ctrl+C meanwhile cancels the turn."""
        try:
            # Inside, since Ctrl+C may come as soon as the turn runs.
            return self._client.portal.start_task_soon(call, *arguments).result()
        except KeyboardInterrupt:
            self._client.portal.call(_cancel, self._session)
            raise


async def _leave(events: AsyncGenerator[Event, None], session: Session) -> None:
    await events.aclose()
    await session.wait_until_idle()


async def _cancel(session: Session) -> None:
    """Cancels the turn of a session, and returns once it has settled."""
    session.cancel()
    await session.wait_until_idle()


async def _next(events: AsyncIterator[Event]) -> Event | None:
    # StopAsyncIteration does not pass through a future.
    return await anext(events, None)
