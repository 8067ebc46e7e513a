"""The cases of ``cases/sse/openai``: streams as services have sent them, and what has to come of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openheim.errors import ProviderConnectionError, ProviderError
from openheim.messages import Block, ToolUseBlock, block_to_stored
from openheim.providers import ModelReply, ProviderSettings
from openheim.testing import HttpAnswer, ScriptedHttp
from openheim_provider_openai.plugin import openheim_create_provider
from tests.providers.conftest import CASES, Call
from tests.support.openai_server import OpenAIServer
from tests.support.replies import raw

pytestmark = pytest.mark.anyio

FOLDER = CASES / "sse" / "openai"
NAMES = sorted(path.name.removesuffix(".expected.json") for path in FOLDER.glob("*.expected.json"))


def test_there_are_cases() -> None:
    assert len(NAMES) >= 25


def case_of(name: str) -> tuple[dict[str, Any], bytes, dict[str, str]]:
    """A case, and the body and the headers of its response."""
    case = json.loads((FOLDER / f"{name}.expected.json").read_text(encoding="utf-8"))
    headers = {key.lower(): value for key, value in case["http"]["headers"].items()}
    return case, (FOLDER / case["body"]).read_bytes(), headers


@pytest.mark.parametrize("split", ["as the case says", "every-byte"])
@pytest.mark.parametrize("name", NAMES)
async def test_case(name: str, split: str, make_call: Callable[..., Call]) -> None:
    case, body, headers = case_of(name)
    delivery = case["delivery"]
    # Chunked, so that the client sees the pieces as they were written, however the network joins them.
    reply = raw(body, status=case["http"]["status"], headers=headers | {"connection": "close"})
    reply = reply.split("every-byte" if split == "every-byte" else delivery["split"]).ending(delivery["end"])
    async with OpenAIServer([reply]) as server:
        await check(make_call(server.base_url), case["expect"])


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
async def test_case_in_random_pieces(name: str, data: st.DataObject) -> None:
    case, body, headers = case_of(name)
    inner = data.draw(st.sets(st.integers(1, max(1, len(body) - 1)), max_size=60))
    pieces: list[bytes | Exception] = [body[start:end] for start, end in pairwise([0, *sorted(inner), len(body)])]
    if case["delivery"]["end"] == "reset":
        pieces.append(ProviderConnectionError("the connection was reset"))
    http = ScriptedHttp([HttpAnswer(tuple(pieces), case["http"]["status"], headers)])
    entry = ProviderSettings("mine", "openai_compatible", "http://localhost/v1")
    provider = openheim_create_provider("openai_compatible", entry, http)
    assert provider is not None
    await check(Call(provider), case["expect"])


async def check(call: Call, expect: dict[str, Any]) -> None:
    """Makes the call, and looks at what comes of it."""
    result: ModelReply | None = None
    err: ProviderError | None = None
    with anyio.fail_after(20):
        try:
            result = await call()
        except ProviderError as caught:
            err = caught
    if expect["outcome"] == "message":
        assert result is not None, err
        assert result.finish == expect["finish"]
        check_content(kept_calls(result.content, result.finish), expect["content"])
        for counter, value in expect.get("usage", {}).items():
            assert result.usage is not None
            assert getattr(result.usage, counter) == value
        assert call.text == "".join(block["text"] for block in expect["content"] if block["type"] == "text")
    else:
        assert err is not None, result
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
    assert all(ids)
    for block, wanted in zip(stored, expected, strict=True):
        for key, value in wanted.items():
            if key == "arguments":
                assert json.loads(block["arguments"]) == value
            elif value != "$unique":
                assert block.get(key) == value
