"""kill -9 at any moment of a turn of twenty tools: nothing that was told of is lost, and the session goes on."""

from __future__ import annotations

import random
import signal
import threading
import time

import pytest

from tests.cli.command import LIMIT, Command
from tests.crash.strict_chat import problems_of
from tests.crash.turns import AT_ONCE, CALLS, acknowledged, check_session, clean, strict_server

ARGUMENTS = ("run", "--provider", "test", "--max-iterations", "50", "--output", "stream-json", "go")


@pytest.mark.slow
def test_killed_at_random_moments(openheim: Command, long_counts: bool) -> None:
    rounds = 200 if long_counts else 8
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    with strict_server() as server:
        openheim.use(server)
        lines = len(run_until(openheim, None, 0.0).splitlines())
        seen = set()
        for number in range(rounds):
            clean(openheim)
            # After any line, and a little later: in the middle of what comes before the next one.
            output = run_until(openheim, chance.randrange(lines), chance.random() * 0.004)
            told = acknowledged(output)
            seen.add(len(told))
            try:
                check_session(openheim, told)
            except Exception as err:
                err.add_note(f"in round {number} with seed {seed}, after {len(told)} messages")
                raise
    assert len(seen) > 1, "the process was always killed at the same point"


def run_until(openheim: Command, lines: int | None, secs: float) -> bytes:
    """Runs the turn and kills it after so many lines of output and a moment; None lets it end. Returns its output."""
    process = openheim.start(*ARGUMENTS)
    assert process.stdout is not None
    watchdog = threading.Timer(LIMIT, process.kill)
    watchdog.start()
    try:
        output = b"".join(process.stdout.readline() for _ in range(lines or 0))
        if lines is not None:
            time.sleep(secs)
            process.kill()
        # The watchdog bounds this: a process that is gone has closed its end.
        output += process.stdout.read()
        _none, complaint = process.communicate()
    finally:
        process.kill()
        process.wait()
        watchdog.cancel()
    if lines is None:
        assert process.returncode == 0, complaint
        assert len(acknowledged(output)) == CALLS + CALLS // AT_ONCE + 2
    assert process.returncode in (-signal.SIGKILL, 0), complaint
    return output


def test_the_strict_server_is_strict() -> None:
    user, call = {"role": "user", "content": "x"}, {"id": "1", "function": {"name": "f", "arguments": "{}"}}
    assistant = {"role": "assistant", "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "1", "content": "y"}
    assert problems_of({"messages": [user, assistant, result]}) == []
    for messages in (
        [],
        [user, assistant],
        [user, assistant, user],
        [user, assistant, result, result],
        [user, result],
        [user, assistant, result, assistant, result],
        [user, {"role": "assistant", "content": ""}, user],
        [user, {"role": "assistant", "tool_calls": [{**call, "function": {"name": "f", "arguments": "{"}}]}, result],
        [{"role": "user", "content": ""}],
        [user, {"role": "assistant", "content": "prefill"}],
        [{"role": "god", "content": "x"}, user],
    ):
        assert problems_of({"messages": messages}) != [], messages
