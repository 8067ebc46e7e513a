"""One session goes from wire to wire, and every service accepts what it is sent.

Each turn thinks, calls two tools of which one shows an image, and is asked with an image. The services refuse what the
real ones refuse (``tests/support/*_validator.py``); thoughts and signatures go back to the wire that made them and to
no other.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from openheim import Client, ImageBlock, Session, TextBlock, ToolResult, tool
from openheim.events import Notice
from tests.support import (
    anthropic_validator,
    anthropic_wire,
    gemini_validator,
    gemini_wire,
    openai_validator,
    openai_wire,
    responses_validator,
    responses_wire,
)
from tests.support.anthropic_server import AnthropicServer
from tests.support.gemini_server import GeminiServer
from tests.support.openai_server import OpenAIServer
from tests.support.replies import Reply

pytestmark = pytest.mark.anyio

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(32)).decode()

#: Two entries of one wire are two services: "kimi" speaks as "anthropic" does, and takes nothing that it signed.
ORDER = ("anthropic", "chat", "responses", "gemini", "compatible", "kimi", "anthropic") * 2

#: A call that says where it is to go, and one whose id some services do not take.
CALLS = (("look", {"path": "a.png"}, "toolu_01-A.b"), ("note", {"text": "x"}, "call|2/odd id"))


@tool(read_only=True)
async def look(path: str) -> ToolResult:
    """Shows an image."""
    return ToolResult((TextBlock(f"{path} shows"), ImageBlock(PNG, "image/png")))


@tool(read_only=True)
async def note(text: str) -> str:
    """Says nothing."""
    return ""


def signature(wire: str, number: int) -> str:
    return base64.b64encode(f"signed by {wire} in turn {number}".encode()).decode()


def anthropic_replies(entry: str) -> Callable[[int], list[Reply]]:
    def replies(number: int) -> list[Reply]:
        def thought(part: str) -> list[dict[str, Any]]:
            return anthropic_wire.block("thinking", f"{entry} {part} {number}", signature=signature(entry, number))

        calls = [
            anthropic_wire.block("tool_use", json.dumps(arguments), id=f"toolu_{number}_{index}", name=name)
            for index, (name, arguments, _id) in enumerate(CALLS)
        ]
        redacted = anthropic_wire.block("redacted_thinking", data=signature(f"{entry} redacted", number))
        asks = anthropic_wire.message(
            thought("wonders"), redacted, anthropic_wire.block("text", f"I look {number}."), *calls, finish="tool_use"
        )
        return [asks, anthropic_wire.message(thought("sees"), anthropic_wire.block("text", f"Seen {number}."))]

    return replies


def openai_replies(wire: str) -> Callable[[int], list[Reply]]:
    def replies(number: int) -> list[Reply]:
        calls = [(name, arguments, f"{wanted} {wire} {number}") for name, arguments, wanted in CALLS]
        return [
            openai_wire.tool_calls(*calls, text=f"I look {number}.", thinking=f"{wire} wonders {number}"),
            openai_wire.text(f"Seen {number}.", thinking=f"{wire} sees {number}"),
        ]

    return replies


def responses_replies(number: int) -> list[Reply]:
    def thought(part: str) -> dict[str, Any]:
        encrypted = signature(f"responses {part}", number)
        return responses_wire.reasoning(f"responses {part} {number}", id=f"rs_{part}_{number}", encrypted=encrypted)

    calls = [
        responses_wire.call(name, arguments, f"call_r_{number}_{index}", id=f"fc_{number}_{index}")
        for index, (name, arguments, _id) in enumerate(CALLS)
    ]
    return [
        responses_wire.reply(thought("wonders"), *calls),
        responses_wire.reply(thought("sees"), responses_wire.message(f"Seen {number}.", id=f"msg_{number}")),
    ]


def gemini_replies(number: int) -> list[Reply]:
    calls = [(name, arguments, f"g{number}{index}") for index, (name, arguments, _id) in enumerate(CALLS)]
    return [
        gemini_wire.tool_calls(
            *calls, text="", thinking=f"gemini wonders {number}", signature=signature("gemini", number)
        ),
        gemini_wire.text(f"Seen {number}.", thinking=f"gemini sees {number}"),
    ]


@dataclass
class Service:
    """A service, what it answers in a turn, and what it refuses."""

    server: AnthropicServer | GeminiServer | OpenAIServer
    replies: Callable[[int], list[Reply]]
    problems: Callable[[dict[str, Any]], list[str]]
    entry: str

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [request.json for request in self.server.requests if request.method == "POST"]


def services() -> dict[str, Service]:
    return {
        "anthropic": Service(
            AnthropicServer(),
            anthropic_replies("anthropic"),
            anthropic_validator.problems,
            'kind = "anthropic"\ndefault_model = "claude-sonnet-4-6"\nthinking = 2048',
        ),
        "kimi": Service(
            AnthropicServer(),
            anthropic_replies("kimi"),
            anthropic_validator.problems,
            'kind = "anthropic"\ndefault_model = "claude-sonnet-4-6"\nthinking = 2048',
        ),
        "chat": Service(
            OpenAIServer(), openai_replies("chat"), openai_validator.problems, 'kind = "openai"\nwire = "chat"'
        ),
        "responses": Service(
            OpenAIServer(),
            responses_replies,
            responses_validator.problems,
            'kind = "openai"\nwire = "responses"\ndefault_model = "gpt-5"',
        ),
        "gemini": Service(
            GeminiServer(),
            gemini_replies,
            lambda body: gemini_validator.problems(body, model="models/gemini-3-test"),
            'kind = "gemini"\ndefault_model = "gemini-3-test"',
        ),
        "compatible": Service(
            OpenAIServer(),
            openai_replies("compatible"),
            lambda body: openai_validator.problems(body, strict_roles=True, id_pattern="[a-zA-Z0-9]{9}"),
            'kind = "openai_compatible"\ndefault_model = "qwen3"\n'
            'strict_roles = true\ntool_id_pattern = "[a-zA-Z0-9]{9}"',
        ),
    }


async def test_a_turn_with_each_service_and_back(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    found = services()
    with ExitStack() as running:
        for service in found.values():
            running.enter_context(service.server)
        config.write_text(
            "max_iterations = 5\n"
            + "".join(
                f'[providers.{name}]\n{service.entry}\napi_base = "{service.server.base_url}"\n'
                for name, service in found.items()
            )
        )
        async with Client(config=str(config), tools=[look, note]) as client:
            session = client.new_session(provider=ORDER[0], cwd=tmp_path)
            notices: list[str] = []
            session.stream.attach(lambda event: notices.append(event.text) if isinstance(event, Notice) else None)
            for number, name in enumerate(ORDER, 1):
                await turn(session, name, found[name], number)
            assert notices == []
            stored = list(session.messages)
    for name, service in found.items():
        for body in service.bodies:
            assert service.problems(body) == [], name
        check_thoughts(name, json.dumps(service.bodies[-1]), found)
    # Nothing was lost on the way: each turn has its question, two replies and two results.
    assert [message.turn for message in stored] == [number for number in range(1, len(ORDER) + 1) for _ in range(5)]
    assert {message.wire for message in stored if message.role == "assistant"} == {
        "anthropic-messages",
        "openai-chat",
        "openai-responses",
        "gemini",
    }


async def turn(session: Session, name: str, service: Service, number: int) -> None:
    if number > 1:
        session.set_model(provider=name)
    for reply in service.replies(number):
        service.server.add(reply)
    outcome = await session.run([TextBlock(f"Turn {number}: what is this?"), ImageBlock(PNG, "image/png")])
    assert outcome.error is None, (name, number, outcome.error)
    assert (outcome.stop_reason, outcome.text) == ("end_turn", f"Seen {number}.")


def check_thoughts(name: str, body: str, found: dict[str, Service]) -> None:
    """What one entry's service has signed is in requests to it, and in no others."""
    own = [number for number, wire in enumerate(ORDER, 1) if wire == name]
    for number, wire in enumerate(ORDER, 1):
        if wire != name:
            for part in ("wonders", "sees"):
                assert f"{wire} {part} {number}" not in body
            for made in (wire, f"{wire} wonders", f"{wire} sees", f"{wire} redacted"):
                assert signature(made, number) not in body
        assert f"Seen {number}." in body or number >= max(own)
    for number in own[:-1]:
        if name in ("anthropic", "kimi"):
            assert signature(f"{name} redacted", number) in body
            assert f"{name} wonders {number}" in body and signature(name, number) in body
        if name == "responses":
            assert signature("responses wonders", number) in body and signature("responses sees", number) in body
        if name == "gemini":
            assert signature("gemini", number) in body
