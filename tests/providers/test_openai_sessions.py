"""Whole sessions over OpenAI's wires: what is stored comes back as the service demands, also from the disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from openheim import Client, ImageBlock, TextBlock, ToolResult, tool
from openheim.testing import PrefixGuard
from tests.support import openai_validator, openai_wire, responses_validator, responses_wire
from tests.support.openai_server import OpenAIServer
from tests.support.replies import Reply
from tests.support.responses_wire import call, message, reasoning
from tests.support.server import Request

pytestmark = pytest.mark.anyio

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


@tool(read_only=True)
async def look(at: str) -> ToolResult:
    """Looks at something."""
    return ToolResult((TextBlock(f"seen {at}"), ImageBlock(PIXEL, "image/png")))


class Service:
    """Answers on both wires: a call to every prompt, and a text to its result. Keeps what it finds wrong."""

    def __init__(self, **strict: Any) -> None:
        self.issued: dict[str, dict[str, Any]] = {}
        self.problems: list[str] = []
        self._strict = strict
        self._count = 0

    def __call__(self, request: Request) -> Reply:
        self._count += 1
        body = request.json
        if request.path.endswith("/responses"):
            self.problems += responses_validator.problems(body, issued=self.issued)
            return self._response(body)
        self.problems += openai_validator.problems(body, **self._strict)
        if "image_url" in str(body["messages"][-1]):
            return openai_wire.text("It is ", "blue.", thinking="hm")
        return openai_wire.tool_calls(("look", {"at": "é"}, f"call_{self._count}"), thinking="hm")

    def _response(self, body: dict[str, Any]) -> Reply:
        number = self._count
        thought = reasoning("hm", id=f"rs_{number}", encrypted=f"secret {number} é")
        if body["input"][-1].get("type") == "function_call_output":
            items = [thought, message("It is ", "blue.", id=f"msg_{number}", phase="final_answer")]
        else:
            said = message("I look.", id=f"msg_{number}", phase="commentary")
            items = [thought, said, call("look", {"at": "é"}, f"call_{number}", id=f"fc_{number}")]
        self.issued |= {item["id"]: item for item in items}
        return responses_wire.reply(*items)


def client(server: OpenAIServer, folder: Path, kind: str = "openai", **options: Any) -> Client:
    entry = {"kind": kind, "api_base": server.base_url, "default_model": "gpt-4o", **options}
    settings = {"providers": {"mine": entry}, "default_provider": "mine", "data_dir": str(folder / "data")}
    return Client(config=False, settings=settings, tools=[look], gate="allow", cwd=folder)


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        ("openai", {"wire": "chat"}, {}),
        ("openai_compatible", {"strict_roles": True}, {"strict_roles": True}),
        (
            "openai_compatible",
            {"echo_reasoning": "reasoning_content", "tool_id_pattern": "[a-z0-9]{9}"},
            {"message_fields": frozenset(["reasoning_content"]), "id_pattern": "[a-z0-9]{9}"},
        ),
        ("openai", {"default_model": "gpt-5"}, {}),
    ],
)
async def test_nothing_that_was_sent_ever_changes(
    tmp_path: Path, kind: str, options: dict[str, Any], expected: dict[str, Any]
) -> None:
    service = Service(**expected)
    async with OpenAIServer(service) as server, client(server, tmp_path, kind, **options) as opened:
        session = opened.new_session()
        with anyio.fail_after(30):
            for number in range(8):
                await session.run(f"look again, {number}")
        bodies = [request.body for request in server.requests]
    assert service.problems == []
    assert len(bodies) == 16
    guard = PrefixGuard(bodies)
    guard.check(at_least=16)


async def test_a_session_that_changes_its_model_and_comes_from_the_disk(tmp_path: Path) -> None:
    service = Service()
    async with OpenAIServer(service) as server:
        async with client(server, tmp_path, default_model="gpt-5") as opened:
            session = opened.new_session()
            await session.run("one")
            session.set_model(model="gpt-4o")
            await session.run("two")
            session.set_model(model="o3")
            await session.run("three")
            session_id = session.id
        async with client(server, tmp_path, default_model="gpt-5") as opened:
            session = opened.resume(session_id)
            await session.run("four")
            wires = [found.wire for found in session.messages if found.role == "assistant"]
        paths = [request.path.removeprefix("/v1/") for request in server.requests]
        last = server.requests[-1].json["input"]
    assert service.problems == []
    assert paths == [*["responses"] * 2, *["chat/completions"] * 2, *["responses"] * 4]
    assert wires == [*["openai-responses"] * 2, *["openai-chat"] * 2, *["openai-responses"] * 4]
    thoughts = [item["encrypted_content"] for item in last if item.get("type") == "reasoning"]
    assert thoughts == [f"secret {number} é" for number in (1, 2, 5, 6, 7)]
    assert [item["phase"] for item in last if "phase" in item] == ["commentary", "final_answer"] * 2 + ["commentary"]


async def test_another_entry_does_not_get_what_it_cannot_read(tmp_path: Path) -> None:
    service, other = Service(), Service()
    async with OpenAIServer(service) as server, OpenAIServer(other) as elsewhere:
        entries = {
            name: {"kind": "openai", "api_base": found.base_url, "default_model": "gpt-5"}
            for name, found in (("mine", server), ("theirs", elsewhere))
        }
        settings = {"providers": entries, "default_provider": "mine", "data_dir": str(tmp_path / "data")}
        async with Client(config=False, settings=settings, tools=[look], gate="allow", cwd=tmp_path) as opened:
            session = opened.new_session()
            await session.run("one")
            session.set_model("theirs")
            await session.run("two")
            session.set_model("mine")
            await session.run("three")
        last = server.requests[-1].json["input"]
    assert (service.problems, other.problems) == ([], [])
    assert sum(item.get("type") == "reasoning" for item in last) == 3


async def test_an_answer_in_the_form_of_a_schema(tmp_path: Path) -> None:
    answer = '{"n": 1}'
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    replies: dict[str, Callable[[str], Reply]] = {"chat": openai_wire.text, "responses": responses_wire.text}
    for wire, reply in replies.items():
        async with OpenAIServer([reply(answer)]) as server, client(server, tmp_path, wire=wire) as opened:
            outcome = await opened.new_session().run("count", response_schema=schema)
            body = server.requests[0].json
        assert outcome.text == answer
        asked = body["response_format"]["json_schema"] if wire == "chat" else body["text"]["format"]
        assert asked["schema"] == schema
        assert "JSON" not in str(body.get("instructions") or body["messages"][0]["content"])
