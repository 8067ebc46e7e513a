"""Streams that stall, break, flood or never end: a clear error on every wire, nothing lost, and bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from openheim import Client, Session, TextDelta
from openheim.retry import RetryPolicy
from tests.support.replies import Reply, raw
from tests.wires.services import WIRES, Server, repeated

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("wire", WIRES)]

MIB = 2**20


@contextmanager
def served(wire: str, reply: Reply, tmp_path: Path, timeout_secs: float = 20) -> Iterator[tuple[Server, Path]]:
    """A service that answers so, and a config file that names it."""
    with WIRES[wire].server() as server:
        server.add(reply)
        config = tmp_path / "config.toml"
        config.write_text(
            f'[providers.test]\n{WIRES[wire].entry}\napi_base = "{server.base_url}"\n'
            f'default_model = "gemini-3-test"\ntimeout_secs = {timeout_secs}\n'
        )
        yield server, config


async def one_turn(wire: str, reply: Reply, tmp_path: Path, timeout_secs: float = 20) -> tuple[Any, Session]:
    with served(wire, reply, tmp_path, timeout_secs) as (_server, config):
        async with Client(config=str(config), cwd=tmp_path) as client:
            client.runtime.retry = RetryPolicy(attempts=1)
            session = client.new_session()
            with anyio.fail_after(30):
                return await session.run("hi"), session


def half(wire: str) -> Reply:
    """A reply that breaks off behind its first words, and names no end."""
    whole = WIRES[wire].text("so ", "far", "and no further")
    pieces = list(whole.pieces)
    end = next(at for at, piece in enumerate(pieces) if isinstance(piece, bytes) and b"and no further" in piece)
    return raw([piece for piece in pieces[:end] if isinstance(piece, bytes)])


@pytest.mark.parametrize(
    ("end", "kind"), [("stall", "timeout"), ("reset", "connection"), ("clean", "stream_incomplete")]
)
async def test_a_stream_that_breaks_off(wire: str, end: Any, kind: str, tmp_path: Path) -> None:
    outcome, session = await one_turn(wire, half(wire).ending(end), tmp_path, timeout_secs=0.3)
    assert outcome.error is not None and outcome.error.kind == kind
    assert [message.text for message in session.messages] == ["hi", "so far"]


async def test_a_byte_at_a_time(wire: str, tmp_path: Path) -> None:
    outcome, _session = await one_turn(wire, WIRES[wire].text("wörds ", "🙂").split("every-byte"), tmp_path)
    assert (outcome.error, outcome.text) == (None, "wörds 🙂")


async def test_ten_thousand_deltas_that_say_nothing(wire: str, tmp_path: Path) -> None:
    words = ["x", *[""] * 10_000, "y"]
    outcome, session = await one_turn(wire, WIRES[wire].text(*words), tmp_path)
    assert (outcome.error, outcome.text) == (None, "xy")
    assert len(session.messages) == 2


async def test_one_delta_of_five_megabytes(wire: str, tmp_path: Path) -> None:
    outcome, _session = await one_turn(wire, WIRES[wire].text("x" * 5_000_000), tmp_path)
    assert (outcome.error, len(outcome.text)) == (None, 5_000_000)


async def test_cancelling_closes_the_connection_of_a_stream_that_stalls(wire: str, tmp_path: Path) -> None:
    with served(wire, half(wire).ending("stall"), tmp_path) as (server, config):
        async with Client(config=str(config), cwd=tmp_path) as client:
            session = client.new_session()
            came = anyio.Event()
            session.stream.attach(lambda event: came.set() if isinstance(event, TextDelta) else None)
            with anyio.fail_after(20):
                async with anyio.create_task_group() as group:
                    group.start_soon(session.run, "hi")
                    await came.wait()
                    session.cancel()
            await anyio.to_thread.run_sync(server.requests[0].wait_left)
            asked, answered = session.messages
            assert asked.text == "hi"
            assert (answered.text[:3], answered.stop_reason) == ("so ", "cancelled")


#: Prints how a turn ended, and by how many MiB the process grew at most.
CHILD = """
import asyncio, json, resource, sys
from openheim import Client
from openheim.retry import RetryPolicy

async def main():
    async with Client(config=sys.argv[1]) as client:
        client.runtime.retry = RetryPolicy(attempts=1)
        session = client.new_session()
        await client.list_sessions()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        outcome = await session.run("hi")
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        kind, told = outcome.error and outcome.error.kind, outcome.error and str(outcome.error)
        print(json.dumps({"kind": kind, "told": told, "grown_mib": grown / 1024}))

asyncio.run(main())
"""


def in_a_process(wire: str, reply: Reply, tmp_path: Path) -> dict[str, Any]:
    with served(wire, reply, tmp_path) as (_server, config):
        done = subprocess.run(
            [sys.executable, "-c", CHILD, str(config)], cwd=tmp_path, capture_output=True, text=True, timeout=55
        )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_stream_of_a_hundred_megabytes(wire: str, tmp_path: Path) -> None:
    flood = repeated(WIRES[wire].text("x" * MIB), b"x" * MIB, 100)
    found = in_a_process(wire, flood, tmp_path)
    assert found["kind"] == "server_error" and "64 MiB" in found["told"]
    assert found["grown_mib"] < 600


def test_a_hundred_megabytes_that_mean_nothing(wire: str, tmp_path: Path) -> None:
    nothing = (b": " + b"x" * MIB + b"\n\n",) * 100
    found = in_a_process(wire, raw(nothing), tmp_path)
    assert found["kind"] in ("empty_response", "stream_incomplete", "server_error")
    assert found["grown_mib"] < 100


def test_an_error_of_a_gigabyte(wire: str, tmp_path: Path) -> None:
    endless = raw((b"<p>" + b"no" * (MIB // 2),) * 1024, status=500, content_type="text/plain")
    found = in_a_process(wire, endless, tmp_path)
    assert found["kind"] == "server_error"
    assert len(found["told"]) < 2000
    assert found["grown_mib"] < 100
