"""Where the body of an answer ends and what it is: judged by its bytes, the same however they were cut."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from openheim import Client, receiving
from openheim.retry import RetryPolicy
from tests.support.replies import Pause, Reply, raw
from tests.wires.services import WIRES
from tests.wires.test_hostile_streams import served

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("wire", WIRES)]

#: A reply in one piece, by wire.
DOCUMENTS: dict[str, Any] = {
    "chat": {"choices": [{"index": 0, "message": {"content": "whole"}, "finish_reason": "stop"}]},
    "responses": {
        "status": "completed",
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "whole"}]}],
    },
    "anthropic": {"content": [{"type": "text", "text": "whole"}], "stop_reason": "end_turn"},
    "gemini": {"candidates": [{"content": {"parts": [{"text": "whole"}]}, "finishReason": "STOP"}]},
}


async def outcome_of(wire: str, reply: Reply, tmp_path: Path, timeout_secs: float = 20) -> Any:
    with served(wire, reply, tmp_path, timeout_secs) as (_server, config):
        async with Client(config=str(config), cwd=tmp_path) as client:
            client.runtime.retry = RetryPolicy(attempts=1)
            with anyio.fail_after(20):
                return await client.new_session().run("hi")


@pytest.mark.parametrize("content_type", ["application/json", "text/html"])
async def test_a_stream_that_calls_itself_a_document(wire: str, content_type: str, tmp_path: Path) -> None:
    reply = WIRES[wire].text("so ", "far").ending("stall").with_headers({"content-type": content_type})
    for cut in (reply, reply.split("every-byte")):
        outcome = await outcome_of(wire, cut, tmp_path)
        assert (outcome.error, outcome.text) == (None, "so far")


@pytest.mark.parametrize("together", [True, False])
async def test_what_follows_the_end_does_not_count(wire: str, together: bool, tmp_path: Path) -> None:
    reply = WIRES[wire].text("so far")
    late = b'data: {"error": {"message": "too late", "type": "server_error"}}\n\n'
    body = (reply.body + late,) if together else (reply.body, late)
    outcome = await outcome_of(wire, replace(reply, pieces=body), tmp_path)
    # Gemini's wire has no end marker: a reply ends with its body.
    failed = wire == "gemini"
    assert (outcome.error is not None, outcome.text) == (failed, "so far")


@pytest.mark.parametrize(("status", "kind"), [(500, "server_error"), (429, "rate_limit"), (400, "invalid_request")])
async def test_the_body_of_an_error_that_drips(wire: str, status: int, kind: str, tmp_path: Path) -> None:
    drip = raw([b"x"] * 1000, status=status, content_type="text/plain").slow(0.1)
    outcome = await outcome_of(wire, drip, tmp_path, timeout_secs=0.4)
    assert outcome.error.kind == kind


async def test_a_document_that_drips(wire: str, tmp_path: Path) -> None:
    drip = raw([b" "] * 1000, content_type="application/json").slow(0.1)
    outcome = await outcome_of(wire, drip, tmp_path, timeout_secs=0.2)
    assert outcome.error.kind == "timeout" and "timeout_secs" in outcome.error.hint


async def test_the_error_page_of_a_server_that_keeps_its_connection(wire: str, tmp_path: Path) -> None:
    """A page is a page, wherever it is cut, and however long nothing follows its last word."""
    page = raw([b"<!doctype html>", b"<title>Sign in</title>"], content_type="text/html").ending("clean")
    outcome = await outcome_of(wire, page.paused(Pause(0.05), 1), tmp_path)
    assert "Sign in" in str(outcome.error)


@pytest.mark.parametrize("alive", [b": still here\n\n", b'event: ping\ndata: {"type": "ping"}\n\n', b":"])
async def test_a_stream_of_nothing_but_signs_of_life(
    wire: str, alive: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They keep an answer alive for long, and not forever."""
    monkeypatch.setattr(receiving, "_QUIET_SECS", 0)
    outcome = await outcome_of(wire, raw([alive] * 1000).slow(0.05), tmp_path, timeout_secs=0.5)
    assert outcome.error.kind == "timeout" and "kept the connection alive" in outcome.error.message


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", "text/event-stream"])
async def test_a_document_whatever_it_calls_itself(wire: str, content_type: str, tmp_path: Path) -> None:
    document = json.dumps(DOCUMENTS[wire], indent=2)
    outcome = await outcome_of(wire, raw(document, content_type=content_type), tmp_path)
    assert (outcome.error, outcome.text) == (None, "whole")
