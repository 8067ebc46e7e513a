"""Shell commands under ``openheim run``: a real process, with a scripted model behind a real socket."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Command, finish
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import text, tool_calls
from tests.tools_shell.calls import HARD_TO_END, Ready, alive, wait_until_gone

SETTINGS = 'allow_shell = true\n[permissions]\nmode = "bypassPermissions"\n'

MARK = "MARK=command-line"


@pytest.fixture
def openheim(work: Path, own_environment: Path) -> Iterator[Command]:
    command = Command(work, own_environment)
    name, value = MARK.split("=")
    value += str(work)
    command.environment[name] = value
    yield command
    assert wait_until_gone(f"{name}={value}") == []


def results(openheim: Command) -> list[str]:
    """The texts of all tool results in the history."""
    return [
        block["content"]
        for messages in openheim.history()
        for message in messages
        for block in message["content"]
        if block["type"] == "tool_result"
    ]


def call(command: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "execute_command", {"command": command, **arguments}


def test_a_command_of_the_model_is_run(openheim: Command) -> None:
    with OpenAIServer([tool_calls(call("echo out; echo err >&2"), call("exit 3")), text("done")]) as server:
        openheim.use(server, top=SETTINGS)
        ended = openheim("run", "go")
    assert (ended.code, ended.out) == (0, "done\n")
    assert results(openheim) == [
        "out\n[stderr]\nerr\n",
        "Error: the command ended with exit status 3, without output",
    ]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_a_signal_ends_the_command_with_all_that_it_started(
    openheim: Command, work: Path, number: signal.Signals, code: int
) -> None:
    ready = Ready(work, MARK + str(work))
    command = f"{HARD_TO_END['all']} {HARD_TO_END['chain']} {ready.say}; sleep 330"
    with OpenAIServer([tool_calls(call(command)), text("never")]) as server:
        openheim.use(server, top=SETTINGS)
        process = openheim.start("run", "go")
        ready.wait_blocking()
        process.send_signal(number)
        ended = finish(process)
    assert ended.code == code
    assert "Traceback" not in ended.err
    mark = MARK + str(work)
    assert alive(mark) == []
    assert [message["role"] for message in openheim.history()[0]] == ["user", "assistant", "tool"]


def test_a_killed_openheim_leaves_no_command(openheim: Command, work: Path) -> None:
    ready = Ready(work, MARK + str(work))
    command = f"{HARD_TO_END['all']} {HARD_TO_END['chain']} {ready.say}; sleep 331"
    with OpenAIServer([tool_calls(call(command)), text("never")]) as server:
        openheim.use(server, top=SETTINGS)
        process = openheim.start("run", "go")
        ready.wait_blocking()
        process.kill()
        process.communicate(timeout=20)
    assert wait_until_gone(MARK + str(work)) == []


def test_the_time_limit_of_a_run_ends_the_command(openheim: Command) -> None:
    with OpenAIServer([tool_calls(call("sleep 332 & sleep 332")), text("never")]) as server:
        openheim.use(server, top=SETTINGS)
        ended = openheim("run", "--timeout", "1", "go")
    assert ended.code != 0
    assert "Traceback" not in ended.err


def test_a_job_ends_with_the_run(openheim: Command, work: Path) -> None:
    script = [
        tool_calls(call("echo begun; setsid sleep 333 & sleep 333", background=True)),
        tool_calls(("job_output", {"job_id": "job-1"})),
        text("done"),
    ]
    with OpenAIServer(script) as server:
        openheim.use(server, top=SETTINGS)
        ended = openheim("run", "go")
    assert (ended.code, ended.out) == (0, "done\n")
    begun, output = results(openheim)
    assert begun.startswith("job-1 is running in the background")
    assert output.endswith("]\nbegun")
    assert alive(MARK + str(work)) == []


def test_secrets_are_not_in_the_environment_of_commands(openheim: Command) -> None:
    openheim.environment |= {"OPENAI_API_KEY": "sk-" + "0" * 20, "SOME_PASSWORD": "hunter22", "DEPLOY_TOKEN": "given"}
    settings = SETTINGS + '[tools.shell]\nenv_allow = ["DEPLOY_TOKEN"]\n'
    with OpenAIServer([tool_calls(call("env")), text("done")]) as server:
        openheim.use(server, top=settings)
        assert openheim("run", "go").code == 0
    (env,) = results(openheim)
    assert "DEPLOY_TOKEN=given" in env
    assert "sk-0000" not in env
    assert "hunter22" not in env


def test_without_allow_shell_there_is_no_such_tool(openheim: Command) -> None:
    with OpenAIServer([text("done")]) as server:
        openheim.use(server)
        assert openheim("run", "go").code == 0
        names = [tool["function"]["name"] for tool in json.loads(server.requests[-1].body)["tools"]]
    assert "execute_command" not in names
    assert "read_file" in names


def test_a_wrong_setting_is_named(openheim: Command) -> None:
    with OpenAIServer([text("done")]) as server:
        openheim.use(server, top=SETTINGS + "[tools.shell]\ntimeout_secs = 0\n")
        ended = openheim("run", "go")
    assert ended.code != 0
    assert "[tools.shell] timeout_secs" in ended.error
