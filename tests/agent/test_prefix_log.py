"""With debug messages on, the log says which byte of a prompt changed, and nothing of what it holds."""

from __future__ import annotations

import itertools
import json
import logging
from typing import Any

import pytest

from openheim.messages import TextBlock
from openheim.providers import ModelReply
from openheim.testing import HttpAnswer, ScriptedHttp
from tests.agent.turns import Conversation, texts

pytestmark = pytest.mark.anyio


class Posting:
    """Posts its requests, as a provider of a service does; the second one with another system text."""

    wire = "posting"
    default_model = "m"

    def __init__(self, *systems: str) -> None:
        self.http = ScriptedHttp(itertools.repeat(HttpAnswer.of("ok")))
        self.systems = iter(systems)

    async def generate(self, request: Any, emit: Any) -> ModelReply:
        body = json.dumps({"system": next(self.systems), "messages": texts(request)}).encode()
        async with self.http.stream("POST", "http://127.0.0.1/", content=body) as response:
            text = (await response.read(100)).decode()
        return ModelReply((TextBlock(text),), "end_turn")


async def test_a_changed_prefix_is_told_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "openheim")
    cache: dict[str, Any] = {}
    conversation = Conversation(provider=Posting("secret one", "secret one", "secret two"), cache=cache)
    for word in ("a", "b", "c"):
        await conversation.prompt(word)
    told = [line for line in caplog.messages if "prefix" in line]
    assert len(told) == 1
    assert "byte 19 of" in told[0] and "(system)" in told[0] and "scripted" in told[0]
    assert "secret" not in told[0]
    (event,) = conversation.of_type("prefix_changed")
    assert (event.provider, event.offset, event.path) == ("scripted", 19, "system")
    assert event.size == len(b'{"system": "secret one", "messages": ') + len(json.dumps(["a", "ok", "b"])) + 1


async def test_a_summary_is_a_request_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "openheim")
    conversation = Conversation(provider=Posting("one", "one", "another", "one"))
    for word in ("a", "b"):
        await conversation.prompt(word)
    assert await conversation.compact()
    await conversation.prompt("c")
    assert [line for line in caplog.messages if "prefix" in line and "(system)" in line] == []


async def test_nothing_is_kept_while_nobody_listens(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "openheim")
    cache: dict[str, Any] = {}
    conversation = Conversation(provider=Posting("one", "two"), cache=cache)
    for word in ("a", "b"):
        await conversation.prompt(word)
    assert not conversation.of_type("prefix_changed")
    assert not cache and not [line for line in caplog.messages if "prefix" in line]
