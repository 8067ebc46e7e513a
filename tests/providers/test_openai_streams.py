"""The cases of ``cases/sse/openai``: streams as services have sent them, and what has to come of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest

from openheim.errors import ProviderError
from openheim.messages import Block, ToolUseBlock, block_to_stored
from tests.providers.conftest import CASES, Call
from tests.support.openai_server import OpenAIServer
from tests.support.replies import raw

pytestmark = pytest.mark.anyio

FOLDER = CASES / "sse" / "openai"
NAMES = sorted(path.name.removesuffix(".expected.json") for path in FOLDER.glob("*.expected.json"))


def test_there_are_cases() -> None:
    assert len(NAMES) >= 25


@pytest.mark.parametrize("split", ["as the case says", "every-byte"])
@pytest.mark.parametrize("name", NAMES)
async def test_case(name: str, split: str, make_call: Callable[..., Call]) -> None:
    case = json.loads((FOLDER / f"{name}.expected.json").read_text(encoding="utf-8"))
    delivery, http, expect = case["delivery"], case["http"], case["expect"]
    headers = dict(http["headers"])
    reply = raw((FOLDER / case["body"]).read_bytes(), status=http["status"], headers=headers)
    # Chunked, so that the client sees the pieces as they were written, however the network joins them.
    reply = reply.split("every-byte" if split == "every-byte" else delivery["split"]).ending(delivery["end"])
    reply = reply.with_headers({"connection": "close"})

    with anyio.fail_after(20):
        async with OpenAIServer([reply]) as server:
            call = make_call(server.base_url)
            if expect["outcome"] == "message":
                result = await call()
            else:
                with pytest.raises(ProviderError) as caught:
                    await call()

    if expect["outcome"] == "message":
        assert result.finish == expect["finish"]
        check_content(kept_calls(result.content, result.finish), expect["content"])
        for counter, value in expect.get("usage", {}).items():
            assert result.usage is not None
            assert getattr(result.usage, counter) == value
        assert call.text == "".join(block["text"] for block in expect["content"] if block["type"] == "text")
    else:
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
    assert all(ids)
    for block, wanted in zip(stored, expected, strict=True):
        for key, value in wanted.items():
            if key == "arguments":
                assert json.loads(block["arguments"]) == value
            elif value != "$unique":
                assert block.get(key) == value
