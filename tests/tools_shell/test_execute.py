"""What execute_command runs, with what, and what it answers."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import ValidationError

from openheim import ToolError, ToolResult
from openheim.testing import FakeTurn
from openheim_tools_shell.settings import Settings
from tests.tools_shell.calls import Ready, Shell

pytestmark = pytest.mark.anyio


async def refusal(shell: Shell, command: str, **arguments: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await shell(command, **arguments)
    return caught.value


# --- results ---


async def test_success_is_the_output_and_what_went_to_standard_error(shell: Shell) -> None:
    assert await shell("echo out") == "out\n"
    assert await shell("echo out; echo err >&2") == "out\n[stderr]\nerr\n"
    assert await shell("printf out; echo err >&2") == "out\n[stderr]\nerr\n"
    assert await shell("echo err >&2") == "[stderr]\nerr\n"
    assert await shell("true") == "(no output)"


async def test_failure_is_an_error_with_status_and_both_streams(shell: Shell) -> None:
    assert str(await refusal(shell, "echo out; echo err >&2; exit 3")) == (
        "the command ended with exit status 3, with this output:\nout\n[stderr]\nerr\n"
    )
    assert str(await refusal(shell, "exit 1")) == "the command ended with exit status 1, without output"
    assert "exit status 127" in str(await refusal(shell, "no-such-program"))


async def test_a_signal_is_named(shell: Shell) -> None:
    assert "killed by signal 9 (SIGKILL)" in str(await refusal(shell, "kill -9 $$"))
    assert "killed by signal 15 (SIGTERM)" in str(await refusal(shell, "kill $$"))
    inner = str(await refusal(shell, "sh -c 'kill -9 $$'; exit $?"))
    assert "exit status 137, as shells say of what was killed by signal 9 (SIGKILL)" in inner


async def test_the_time_limit_keeps_the_output_so_far(shell: Shell) -> None:
    said = str(await refusal(shell, "echo before; echo why >&2; sleep 60", timeout_secs=0.5))
    assert said.startswith("the command was killed after 0.5 s, the time limit, with this output:\nbefore\n")
    assert "[stderr]\nwhy\n" in said
    assert "[timeout_secs may be up to 600; with background=true there is no limit]" in said


async def test_the_limit_of_the_settings_holds_and_a_call_may_ask_for_more(work: Path) -> None:
    shell = Shell(work, timeout_secs=0.3, max_timeout_secs=20)
    assert "after 0.3 s" in str(await refusal(shell, "sleep 60"))
    assert await shell("sleep 0.5; echo late", timeout_secs=20) == "late\n"
    tool = shell.tools["execute_command"]
    assert tool.parameters["properties"]["timeout_secs"]["maximum"] == 20
    assert "after 0.3 seconds" in tool.description


async def test_head_and_tail_of_both_streams_are_kept(shell: Shell) -> None:
    text = await shell("seq 1 100000; seq 200000 300000 >&2")
    out, _, err = text.partition("\n[stderr]\n")
    for part, first, last in ((out, "1\n2\n", "\n100000"), (err, "200000\n", "\n300000\n")):
        assert part.startswith(first)
        assert part.endswith(last)
        assert len(part.encode()) < 64 * 1024
        assert "bytes left out here; send the output to a file (> out.log 2>&1)" in part
    total = sum(len(str(number)) + 1 for number in range(1, 100001))
    assert f" of {total:,} bytes left out here" in out


async def test_a_small_limit_of_the_turn_is_shared_by_both_streams(work: Path) -> None:
    shell = Shell(work, result_limit_bytes=8192)
    for command in ("seq 1 9999; seq 1 9999 >&2", "seq 1 9999; echo only >&2", "echo only; seq 1 9999 >&2"):
        text = await shell(command)
        assert 6000 < len(text.encode()) <= 8192
    assert len(str(await refusal(shell, "seq 1 9999; seq 1 9999 >&2; exit 1")).encode()) <= 8192


async def test_output_is_read_as_it_comes_whatever_its_order(shell: Shell) -> None:
    """A command that fills one pipe while nobody reads the other would wait for ever."""
    with anyio.fail_after(20):
        text = await shell("seq 1 200000 >&2; seq 1 200000; seq 1 200000 >&2")
    assert text.endswith("\n200000\n")


async def test_watchers_are_told_the_last_line_now_and_then(work: Path, shell: Shell) -> None:
    await shell("printf '\\033[1mstep 1\\033[0m\\n'; printf '10%%\\r20%%'; sleep 1.2; seq 1 1000; sleep 0.7")
    assert shell.turn.progress_texts == ["20%", "1000"]


async def test_the_display_names_the_command(shell: Shell) -> None:
    async def title(command: str) -> str:
        result = await shell.tools["execute_command"].run({"command": command}, shell.turn)
        assert isinstance(result, ToolResult) and result.display is not None
        return str(result.display["title"])

    assert await title("echo  a\necho b") == "echo a echo b"
    assert len(await title(": " + "x" * 999)) == 200


# --- what a command is given ---


async def test_it_runs_in_the_directory_of_the_turn(work: Path, shell: Shell) -> None:
    (work / "sub").mkdir()
    turn = FakeTurn(work, cwd=work / "sub")
    assert await shell.call("execute_command", command="pwd; echo $PWD", turn=turn) == f"{work}/sub\n{work}/sub\n"


async def test_a_directory_that_is_gone_is_named(work: Path, shell: Shell) -> None:
    (work / "sub").mkdir()
    turn = FakeTurn(work, cwd=work / "sub")
    shutil.rmtree(work / "sub")
    with pytest.raises(ToolError, match=r"was not run: its directory .*sub' cannot be entered: No such file"):
        await shell.call("execute_command", command="pwd", turn=turn)


async def test_it_has_a_session_and_a_group_of_its_own_no_terminal_and_no_input(shell: Shell) -> None:
    text = await shell("cat; ps -o pid=,pgid=,sid=,tty= -p $$")
    pid, group, session, terminal = text.split()
    assert pid == group == session
    assert terminal == "?"
    assert int(session) != os.getsid(0)


async def test_signals_are_as_a_terminal_would_have_them(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        text = await shell("grep -E 'Sig(Blk|Ign)' /proc/self/status")
    finally:
        signal.signal(signal.SIGINT, before)
    (_, blocked), (_, ignored) = (line.split() for line in text.splitlines())
    # 32 and 33 are the C library's own, which posix_spawn leaves ignored in whatever it starts.
    of_programs = ~(0b11 << 31)
    assert (int(blocked, 16) & of_programs, int(ignored, 16) & of_programs) == (0, 0)


async def test_no_file_of_openheim_is_open_in_a_command(shell: Shell) -> None:
    names = (await shell("ls -l /proc/$$/fd; echo $$")).splitlines()
    targets = [line.rpartition("-> ")[2] for line in names if "->" in line]
    assert targets[0] == "/dev/null"
    assert [target.partition(":")[0] for target in targets[1:]] == ["pipe", "pipe"]


async def test_the_environment_is_the_turns(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "hidden")
    lines = (await shell("env")).splitlines()
    names = {line.split("=")[0] for line in lines} - {"PWD", "_", "SHLVL", "OLDPWD"}
    assert names == {"PATH", "MARK", "OPENHEIM_COMMAND"}


async def test_variables_that_the_user_names_pass(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "shown")
    monkeypatch.setenv("OTHER_TOKEN", "hidden")
    shell = Shell(work, env_allow=["SOME_TOKEN", "NOT_SET"])
    assert await shell("echo $SOME_TOKEN $OTHER_TOKEN ${NOT_SET-unset}") == "shown unset\n"


# --- commands that cannot be run ---


@pytest.mark.parametrize("command", ["", "  ", "\n"])
async def test_a_blank_command_is_refused(shell: Shell, command: str) -> None:
    assert "empty" in str(await refusal(shell, command))


async def test_a_nul_and_half_a_character_are_refused(shell: Shell) -> None:
    assert "NUL" in str(await refusal(shell, "echo a\0b"))
    assert "cannot be encoded" in str(await refusal(shell, "echo \ud800"))


async def test_a_command_may_be_as_long_as_the_system_takes(shell: Shell) -> None:
    comment = "#" + "x" * (128 * 1024 - 1 - len("echo ok\n#"))
    assert await shell("echo ok\n" + comment) == "ok\n"
    err = await refusal(shell, "echo ok\n" + comment + "x")
    assert "131,072 bytes long" in str(err)
    assert "file" in err.hint


async def test_a_missing_interpreter_is_an_error_result(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert "could not be started: No such file" in str(await refusal(shell, "true"))


# --- what it leaves behind ---


async def test_what_is_left_running_is_ended_and_named(shell: Shell) -> None:
    text = await shell("sleep 300 & sleep 300 & echo done")
    assert text == (
        "done\n[the command left running, and it was ended: sleep, sleep; to keep something running, "
        "start it with background=true]"
    )
    assert shell.alive() == []


async def test_what_ends_by_itself_at_once_is_let(work: Path, shell: Shell) -> None:
    """A ``tee`` at the end of a process substitution, for instance, writes its last lines after the shell is gone."""
    assert await shell("(sleep 0.1; echo last > file) & echo done") == "done\n"
    assert (work / "file").read_text() == "last\n"


async def test_what_it_leaves_may_hold_its_output_open_or_write(shell: Shell) -> None:
    with anyio.fail_after(10):
        text = await shell("(trap '' TERM; while :; do echo tick; sleep 0.05; done) & echo started; sleep 0.2")
    assert text.startswith("started\n")
    assert "tick\n" in text


# --- several at once ---


async def test_commands_run_side_by_side_and_one_is_cancelled_alone(work: Path, shell: Shell) -> None:
    first, second = Ready(work, shell.mark, "first"), Ready(work, shell.mark, "second")
    go = work / "go"
    os.mkfifo(go)
    results = []

    async def stays() -> None:
        results.append(await shell(f"{second.say}; cat go"))

    async with anyio.create_task_group() as group:
        group.start_soon(stays)
        async with anyio.create_task_group() as cancelled:
            cancelled.start_soon(shell, f"{first.say}; sleep 300")
            await first.wait()
            await second.wait()
            cancelled.cancel_scope.cancel()
        assert len(shell.alive()) == 2  # The other shell and its cat.
        with anyio.fail_after(10):
            await anyio.to_thread.run_sync(go.write_text, "went\n")
    assert results == ["went\n"]


async def test_many_at_once(shell: Shell) -> None:
    results: dict[int, str] = {}

    async def one(number: int) -> None:
        results[number] = await shell(f"echo {number}")

    async with anyio.create_task_group() as group:
        for number in range(30):
            group.start_soon(one, number)
    assert results == {number: f"{number}\n" for number in range(30)}


# --- settings ---


@pytest.mark.parametrize(
    "wrong",
    [
        {"timeout_secs": 0},
        {"timeout_secs": -1},
        {"timeout_secs": float("inf")},
        {"timeout_secs": float("nan")},
        {"timeout_secs": 86401},
        {"max_timeout_secs": 0},
        {"env_allow": ["A=B"]},
        {"env_allow": [""]},
        {"env_allow": "HOME"},
        {"unknown": 1},
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(**wrong)


def test_the_most_that_a_call_may_ask_for_is_never_less_than_the_default() -> None:
    assert Settings().longest_secs == 600
    assert Settings(timeout_secs=1800).longest_secs == 1800
