"""One long turn of tools in a process that may die at any moment, and what must be true of its session afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio

from openheim import Client
from openheim.store import HistoryStore
from tests.cli.command import Command
from tests.crash.strict_chat import problems_of, strictly
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import text, tool_calls
from tests.support.replies import Reply
from tests.support.server import Request

#: Calls of tools in the turn, so many in each reply.
CALLS, AT_ONCE = 20, 4


def answer(request: Request) -> Reply:
    """Asks for tools until the turn has had its calls, then ends it. What was said before does not matter."""
    messages = request.json["messages"]
    start = max(place for place, message in enumerate(messages) if message["role"] == "user")
    results = sum(message["role"] == "tool" for message in messages[start:])
    if messages[start]["content"] != "go" or results >= CALLS:
        return text("All ", "done.")
    return tool_calls(
        *[
            ("write_file", {"path": f"{number}.txt", "content": "ä" * 500}, f"call_{len(messages)}_{number}")
            if number % 2
            else ("list_dir", {"path": "."}, f"call_{len(messages)}_{number}")
            for number in range(results, results + AT_ONCE)
        ],
        text="Working on it.",
        thinking="What next?",
    )


def strict_server() -> OpenAIServer:
    return OpenAIServer(strictly(answer))


def acknowledged(output: bytes) -> list[dict[str, Any]]:
    """The messages that standard output told of, in whole lines."""
    lines = [json.loads(line) for line in output.split(b"\n")[:-1]]
    return [line["message"] for line in lines if line["type"] == "message"]


def check_session(openheim: Command, told: list[dict[str, Any]]) -> None:
    """Everything that was told of is on disk, the history loads, and the session goes on."""
    store = HistoryStore(openheim.home / "history")
    found = list(store.folder.glob("*.jsonl"))
    if not found:
        assert not told
        return
    (path,) = found
    on_disk = {}
    for line in path.read_bytes().split(b"\n"):
        try:
            raw = json.loads(line)
        except ValueError:
            # Half a line, which only the next writer may cut off.
            continue
        if "record" not in raw:
            on_disk[raw["id"]] = raw
    for message in told:
        assert on_disk[message["id"]] == message
    loaded = store.load(path.stem)
    assert [message.id for message in loaded.messages] == list(on_disk)
    assert {message["id"] for message in told} <= {message.id for message in loaded.messages}
    go_on(openheim, path.stem)
    # Nothing that was there has been changed.
    again = [message.id for message in store.load(path.stem).messages]
    assert again[: len(on_disk)] == list(on_disk)
    assert len(again) == len(on_disk) + 2


def go_on(openheim: Command, session_id: str) -> None:
    """Another prompt, to a server that takes no malformed conversation."""

    async def prompt(server: OpenAIServer) -> None:
        entry = {"kind": "openai_compatible", "api_base": server.base_url, "default_model": "m"}
        settings = {"providers": {"test": entry}}
        with anyio.fail_after(30):
            async with Client(config=False, settings=settings, provider="test", data_dir=openheim.home) as client:
                outcome = await client.resume(session_id, cwd=openheim.folder).run("What now?")
        assert outcome.error is None
        assert outcome.text == "All done."

    with strict_server() as server:
        anyio.run(prompt, server)
        (request,) = server.prompts
    assert problems_of(request.json) == []
    assert request.json["messages"][-1]["content"] == "What now?"


def clean(openheim: Command) -> None:
    """Takes away what the last round left."""
    for folder in (openheim.home / "history", openheim.folder):
        for path in folder.iterdir() if folder.exists() else ():
            _remove(path)


def _remove(path: Path) -> None:
    assert path.is_file()
    path.unlink()
