"""The cases of ``cases/sse/anthropic``: streams as the service has sent them, and what has to come of each."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openheim.errors import ProviderError
from openheim.messages import Block, Message, ToolUseBlock, block_to_stored
from openheim.providers import ModelReply, ModelRequest, ProviderSettings
from openheim.testing import HttpAnswer, ScriptedHttp
from openheim_provider_anthropic.plugin import openheim_create_provider
from tests.providers.conftest import CASES, Call, user_says
from tests.support.anthropic_server import AnthropicServer
from tests.support.anthropic_validator import problems
from tests.support.anthropic_wire import text
from tests.support.replies import raw

pytestmark = pytest.mark.anyio

FOLDER = CASES / "sse" / "anthropic"
NAMES = sorted(path.name.removesuffix(".expected.json") for path in FOLDER.glob("*.expected.json"))


def test_there_are_cases() -> None:
    assert len(NAMES) >= 12


def read_case(name: str) -> tuple[dict[str, Any], bytes]:
    case = json.loads((FOLDER / f"{name}.expected.json").read_text(encoding="utf-8"))
    return case, (FOLDER / case["body"]).read_bytes()


@pytest.mark.parametrize("split", ["as the case says", "every-byte"])
@pytest.mark.parametrize("name", NAMES)
async def test_case(name: str, split: str, make_call: Callable[..., Call]) -> None:
    case, body = read_case(name)
    delivery, http = case["delivery"], case["http"]
    reply = raw(body, status=http["status"], headers=dict(http["headers"]))
    # Chunked, so that the client sees the pieces as they were written, however the network joins them.
    reply = reply.split("every-byte" if split == "every-byte" else delivery["split"]).ending(delivery["end"])
    async with AnthropicServer([reply.with_headers({"connection": "close"})]) as server:
        with anyio.fail_after(20):
            await check(case, make_call(server.base_url, "anthropic"))


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_case_in_random_pieces(name: str, data: st.DataObject) -> None:
    case, body = read_case(name)
    cuts = data.draw(st.sets(st.integers(1, len(body) - 1), max_size=40))
    edges = [0, *sorted(cuts), len(body)]
    answer = HttpAnswer(tuple(body[start:end] for start, end in itertools.pairwise(edges)), **of_http(case["http"]))
    settings = ProviderSettings("mine", "anthropic", "https://models.example/v1")
    provider = openheim_create_provider("anthropic", settings, ScriptedHttp([answer]))
    assert provider is not None
    anyio.run(check, case, Call(provider))


def of_http(http: dict[str, Any]) -> dict[str, Any]:
    return {"status": http["status"], "headers": http["headers"]}


async def check(case: dict[str, Any], call: Call) -> None:
    expect = case["expect"]
    if expect["outcome"] == "message":
        result = await call()
        assert result.finish == expect["finish"]
        check_content(kept_calls(result.content, result.finish), expect["content"])
        for counter, value in expect.get("usage", {}).items():
            assert result.usage is not None
            assert getattr(result.usage, counter) == value
        assert call.text == "".join(block["text"] for block in expect["content"] if block["type"] == "text")
        return
    with pytest.raises(ProviderError) as caught:
        await call()
    err = caught.value
    assert err.kind == expect["error_kind"]
    assert expect.get("message_contains", "") in str(err)
    check_content(err.partial, expect["partial_content"])
    # The core tries again what may be tried again, as long as nothing was shown.
    assert (err.retryable and not call.deltas) is expect["retry_whole_request"]


def kept_calls(content: Sequence[Block], finish: str) -> list[Block]:
    """Without calls that the output cap cut: the loop answers them instead of running them, and the cases omit them."""
    return [block for block in content if finish != "max_tokens" or not isinstance(block, ToolUseBlock)]


def check_content(content: Sequence[Block], expected: list[dict[str, Any]]) -> None:
    stored = [block_to_stored(block) for block in content]
    assert [block["type"] for block in stored] == [block["type"] for block in expected]
    ids = [block["id"] for block in stored if block["type"] == "tool_use"]
    assert len(set(ids)) == len(ids)
    for block, wanted in zip(stored, expected, strict=True):
        for key, value in wanted.items():
            if key == "arguments":
                assert json.loads(block["arguments"]) == value
            elif value != "$unique":
                assert block.get(key) == value


async def test_what_is_signed_or_opaque_goes_back_unchanged(make_call: Callable[..., Call]) -> None:
    for name in ("an06", "an10"):
        case, body = read_case(name)
        async with AnthropicServer([raw(body), text("And so on.")]) as server:
            call = make_call(server.base_url, "anthropic")
            reply = await call()
            messages = [*user_says("hi").messages, answered(reply)]
            if reply.finish != "paused":
                messages += user_says("go on").messages
            await call(ModelRequest(model="m-test", system="", messages=messages))
        sent = server.prompts[1].json
        assert problems(sent) == []
        assert sent["messages"][1]["content"] == case["expect"]["content"]


def answered(reply: ModelReply) -> Message:
    return Message("assistant", reply.content, wire="anthropic-messages", stop_reason=reply.finish, opaque=reply.opaque)
