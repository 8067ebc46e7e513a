"""Openheim itself as a subject, through the names that an embedding program uses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from openheim import Runtime, Session, TextDelta, tool
from tests.benchmarks.wires import TOOL, WIRES


@tool(name=TOOL, read_only=True, parameters={"type": "object", "properties": {}})
async def note() -> str:
    """Does nothing."""
    return "noted"


class OpenheimSubject:
    """One runtime with one provider entry for each kind of answer of the mock server."""

    def __init__(self, port: int, modes: tuple[str, ...], wire: str = "chat") -> None:
        entry = WIRES[wire].kind | {"default_model": "mock"}
        entries = {mode: entry | {"api_base": f"http://127.0.0.1:{port}/{mode}/v1"} for mode in modes}
        settings = {"providers": entries, "max_iterations": 2000, "permissions": {"gate": "allow"}}
        self.runtime = Runtime.from_config(settings=settings, tools=[note])
        self.shown: list[str] = []

    async def __aenter__(self) -> OpenheimSubject:
        await self.runtime.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.runtime.__aexit__(*error)

    def session(self, mode: str) -> Session:
        session = self.runtime.new_session(provider=mode)

        def watch(event: object) -> None:
            if type(event) is TextDelta:
                self.shown.append(event.text)

        session.stream.attach(watch)
        return session

    async def conversation(self, mode: str) -> Callable[[], Awaitable[object]]:
        session = self.session(mode)

        async def turn() -> None:
            outcome = await session.run("hi")
            assert outcome.stop_reason == "end_turn", outcome

        return turn

    async def many(self, mode: str, count: int) -> None:
        async def one() -> None:
            outcome = await self.session(mode).run("hi")
            assert outcome.stop_reason == "end_turn", outcome

        async with anyio.create_task_group() as group:
            for _ in range(count):
                group.start_soon(one)
