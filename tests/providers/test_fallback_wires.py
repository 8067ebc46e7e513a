"""A turn that moves to another wire and back: each service gets what it takes, and its own thinking only."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from openheim import Client
from openheim.retry import RetryPolicy
from tests.support import anthropic_wire, openai_wire
from tests.support.anthropic_server import AnthropicServer
from tests.support.anthropic_validator import problems as anthropic_problems
from tests.support.openai_server import OpenAIServer
from tests.support.openai_validator import problems as openai_problems

pytestmark = pytest.mark.anyio


async def test_another_wire_takes_over_for_one_turn(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha")
    first_replies = [
        anthropic_wire.tool_calls(("read_file", {"path": "a.txt"}), text="I look.", thinking="a secret thought"),
        anthropic_wire.text("alpha", thinking="another secret"),
        anthropic_wire.error(529, "busy"),
        anthropic_wire.text("back", thinking="a third"),
    ]
    second_replies = [openai_wire.tool_calls(("list_dir", {})), openai_wire.text("from the second")]
    with AnthropicServer(first_replies) as first, OpenAIServer(second_replies) as second:
        entries = {
            "first": {"kind": "anthropic", "api_base": first.base_url, "fallback": ["second/m2"]},
            "second": {"kind": "openai_compatible", "api_base": second.base_url, "default_model": "m2"},
        }
        settings = {"default_provider": "first", "providers": entries}
        async with Client(config=False, settings=settings, data_dir=tmp_path / "data", gate="allow") as client:
            client.runtime.retry = RetryPolicy(attempts=1)
            session = client.new_session(cwd=tmp_path)
            with anyio.fail_after(20):
                texts = [(await session.run(prompt)).text for prompt in ("what is in a.txt?", "list it", "and again?")]
    assert texts == ["alpha", "from the second", "back"]
    wires = [message.wire for message in session.messages if message.role == "assistant"]
    assert len(set(wires[:2])) == len(set(wires[2:4])) == 1 and wires[0] == wires[4] != wires[2]
    for request in first.prompts:
        assert not anthropic_problems(request.json)
    for request in second.prompts:
        assert not openai_problems(request.json)
        assert b"secret" not in request.body and b"alpha" in request.body
    last = first.prompts[-1].body
    assert b"another secret" in last and b"from the second" in last
