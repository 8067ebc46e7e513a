"""The cases of ``cases/sse/gemini``: streams as the service sends them, and what has to come of each."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openheim.errors import ProviderError
from openheim.http import HttpClient
from openheim.messages import block_to_stored
from openheim.testing import HttpAnswer, ScriptedHttp
from tests.providers.conftest import CASES, Call
from tests.providers.gemini import asking, assistant, call_of, sent, user
from tests.providers.test_openai_streams import check_content, kept_calls
from tests.support.gemini_server import GeminiServer
from tests.support.replies import raw

pytestmark = pytest.mark.anyio

FOLDER = CASES / "sse" / "gemini"
NAMES = sorted(path.name.removesuffix(".expected.json") for path in FOLDER.glob("*.expected.json"))


def test_there_are_cases() -> None:
    assert len(NAMES) >= 10


def case_of(name: str) -> dict[str, Any]:
    case = json.loads((FOLDER / f"{name}.expected.json").read_text(encoding="utf-8"))
    assert isinstance(case, dict)
    return case


async def check(call: Call, expect: dict[str, Any]) -> None:
    """Makes the call and compares what comes of it."""
    if expect["outcome"] == "error":
        with pytest.raises(ProviderError) as caught:
            await call()
        err = caught.value
        assert err.kind == expect["error_kind"]
        assert expect.get("message_contains", "") in str(err)
        check_content(err.partial, expect["partial_content"])
        # The core tries again what may be tried again, as long as nothing was shown.
        assert (err.retryable and not call.deltas) is expect["retry_whole_request"]
        return
    reply = await call()
    assert reply.finish == expect["finish"]
    check_content(kept_calls(reply.content, reply.finish), expect["content"])
    for counter, value in expect.get("usage", {}).items():
        assert getattr(reply.usage, counter) == value
    assert call.text == "".join(block["text"] for block in expect["content"] if block["type"] == "text")
    if "keep_signature" in expect:
        stored = json.dumps([reply.opaque, *map(block_to_stored, reply.content)])
        assert expect["keep_signature"] in stored


@pytest.mark.parametrize("split", ["as the case says", "every-byte"])
@pytest.mark.parametrize("name", NAMES)
async def test_case(name: str, split: str, http: HttpClient) -> None:
    case = case_of(name)
    delivery, answer = case["delivery"], case["http"]
    reply = raw((FOLDER / case["body"]).read_bytes(), status=answer["status"], headers=dict(answer["headers"]))
    # Chunked, so that the client sees the pieces as they were written, however the network joins them.
    reply = reply.split("every-byte" if split == "every-byte" else delivery["split"]).ending(delivery["end"])
    with anyio.fail_after(20):
        async with GeminiServer([reply.with_headers({"connection": "close"})]) as server:
            await check(call_of(server.base_url, http), case["expect"])


@settings(max_examples=150, deadline=None)
@given(name=st.sampled_from(NAMES), seed=st.integers(0, 2**32), pieces=st.integers(1, 40))
def test_case_in_random_pieces(name: str, seed: int, pieces: int) -> None:
    case = case_of(name)
    body = (FOLDER / case["body"]).read_bytes()
    cuts = sorted(random.Random(seed).sample(range(1, len(body)), min(pieces, len(body) - 1)))
    edges = [0, *cuts, len(body)]
    chunks = tuple(body[start:end] for start, end in pairwise(edges))
    http = ScriptedHttp([HttpAnswer(chunks, case["http"]["status"], case["http"]["headers"])])
    anyio.run(check, call_of("https://models.example/v1beta", http), case["expect"])


async def test_what_was_signed_goes_back(http: HttpClient) -> None:
    case = case_of("ge05")
    async with GeminiServer([raw((FOLDER / case["body"]).read_bytes())]) as server:
        reply = await call_of(server.base_url, http)()
    again = asking(user("hi"), assistant(*reply.content, opaque=reply.opaque), user("go on"))
    body = await sent(http, again)
    assert body["contents"][1]["parts"] == [
        {"text": "Answer"},
        {"text": "", "thoughtSignature": case["expect"]["keep_signature"]},
    ]
