"""Jobs: commands in the background of a session."""

from __future__ import annotations

import os
import re
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from openheim import ToolError
from openheim.testing import FakeTurn
from openheim_tools_shell import jobs
from tests.tools_shell.calls import HARD_TO_END, Ready, Shell, attacked, wait_until_gone

pytestmark = pytest.mark.anyio


async def start(shell: Shell, command: str, **arguments: object) -> str:
    """The id of a new job."""
    text = await shell(command, background=True, **arguments)
    found = re.match(r"(job-\d+) is running in the background", text)
    assert found is not None, text
    return found[1]


async def end_all(shell: Shell) -> None:
    await shell.tools["execute_command"].close_session(shell.turn.session_id)  # type: ignore[attr-defined] # found by name


async def test_a_job_is_looked_after_until_it_ends(work: Path, shell: Shell) -> None:
    os.mkfifo(work / "go")
    job = await start(shell, "echo one; read line < go; echo $line >&2; exit 3")
    text = await shell.call("job_output", job_id=job)
    assert re.fullmatch(rf"\[{job} is running, for \d+ s now\]\none", text)
    assert (await shell.call("job_output", job_id=job)).endswith("]\n(no new output)")
    await anyio.to_thread.run_sync((work / "go").write_text, "two\n")
    text = await shell.call("job_output", job_id=job, wait_secs=20)
    assert text == f"[{job} ended with exit status 3]\n[stderr]\ntwo"
    assert await shell.call("job_output", job_id=job) == f"[{job} ended with exit status 3]\n(no new output)"


async def test_a_job_that_ends_at_once_is_told_at_once(shell: Shell) -> None:
    text = await shell("echo ready; exit 0", background=True)
    assert re.fullmatch(r"\[job-\d+ ended with exit status 0\]\nready", text)


async def test_a_job_that_fails_at_once_is_an_error_result(shell: Shell) -> None:
    with pytest.raises(ToolError) as caught:
        await shell("echo no such port >&2; exit 1", background=True)
    assert re.fullmatch(r"\[job-\d+ ended with exit status 1\]\n\[stderr\]\nno such port", caught.value.message)
    with pytest.raises(ToolError, match=r"ended with exit status 127"):
        await shell("no-such-program", background=True)


async def test_a_job_that_cannot_be_started_says_so(work: Path, shell: Shell) -> None:
    turn = FakeTurn(work, cwd=work / "gone")
    with pytest.raises(ToolError, match="cannot be entered: No such file"):
        await shell.call("execute_command", command="true", background=True, turn=turn)


@pytest.mark.parametrize("shape", list(HARD_TO_END))
async def test_job_kill_ends_all_of_it(work: Path, shell: Shell, shape: str) -> None:
    ready = Ready(work, shell.mark)
    job = await start(shell, f"{HARD_TO_END[shape]} sleep 0.3; {ready.say}; echo said; sleep 320; sleep 320")
    await ready.wait()
    text = await shell.call("job_kill", job_id=job)
    assert f"[{job} " in text
    assert shell.alive() == []
    # Killing what has ended is no error, and says how it ended.
    assert f"[{job} " in await shell.call("job_kill", job_id=job)


async def test_jobs_outlive_the_call_and_its_cancelling(work: Path, shell: Shell) -> None:
    job = await start(shell, "sleep 321")
    with anyio.move_on_after(0.2) as scope:
        await shell.call("job_output", job_id=job, wait_secs=300)
    assert scope.cancelled_caught
    assert shell.alive()
    await end_all(shell)


async def test_jobs_end_with_their_session_and_others_go_on(work: Path) -> None:
    shell = Shell(work)
    other = FakeTurn(work, session_id="other", env=shell.turn.env)
    await start(shell, "setsid sleep 322 & sleep 322")
    await start(shell, "sleep 322")
    text = await shell.call("execute_command", command="exec sleep 323", background=True, turn=other)
    tool = shell.tools["execute_command"]
    assert tool.keeps_session(shell.turn.session_id)  # type: ignore[attr-defined] # found by name
    await end_all(shell)
    assert not tool.keeps_session(shell.turn.session_id)  # type: ignore[attr-defined] # found by name
    assert len(shell.alive()) == 1
    job = text.split()[0]
    with pytest.raises(ToolError, match="there is no job"):
        await shell.call("job_output", job_id=job)
    assert "is running" in await shell.call("job_output", job_id=job, turn=other)
    await tool.close_session("other")  # type: ignore[attr-defined] # found by name
    assert shell.alive() == []


async def test_an_unknown_job_names_those_that_there_are(shell: Shell) -> None:
    for name in ("job_output", "job_kill"):
        with pytest.raises(ToolError, match=r"there is no job 'job-999' in this session$"):
            await shell.call(name, job_id="job-999")
    job = await start(shell, "sleep 324")
    with pytest.raises(ToolError, match=rf"there are: {job}$"):
        await shell.call("job_output", job_id="nonsense")
    await end_all(shell)


async def test_a_job_has_no_limit_but_the_one_that_it_is_given(work: Path) -> None:
    shell = Shell(work, timeout_secs=0.4)
    job = await start(shell, "sleep 325")
    limited = await start(shell, "echo out; sleep 325", timeout_secs=0.5)
    text = await shell.call("job_output", job_id=limited, wait_secs=20)
    assert text == f"[{limited} was ended: its time was over]\nout"
    assert "is running" in await shell.call("job_output", job_id=job)
    await end_all(shell)
    assert shell.alive() == []


async def test_a_job_that_keeps_its_supervisor_stopped_is_ended_in_time(
    work: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openheim_tools_shell.process.END_SECS", 0.5)
    ready = Ready(work, shell.mark)
    async with anyio.create_task_group() as group:
        group.start_soon(ready.wait)
        job = await start(shell, attacked("keep both stopped", os.getpid(), ready), timeout_secs=1.5)
    text = await shell.call("job_output", job_id=job, wait_secs=20)
    assert text.startswith(f"[{job} was ended: its time was over]")
    assert wait_until_gone(shell.mark) == []


async def test_the_output_of_a_job_is_bounded_and_what_is_lost_is_told(work: Path, shell: Shell) -> None:
    job = await start(shell, "seq 1 100000; sleep 326")
    text = await shell.call("job_output", job_id=job)
    assert len(text.encode()) < 66_000
    assert "bytes left out here; ask more often" in text
    assert text.endswith("\n100000")
    await end_all(shell)


async def test_the_number_of_jobs_is_bounded(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "MAX_RUNNING", 2)
    monkeypatch.setattr(jobs, "MAX_ENDED", 2)
    monkeypatch.setattr(jobs, "FIRST_LOOK_SECS", 0.05)
    ids = [await start(shell, "sleep 327") for _ in range(2)]
    with pytest.raises(ToolError, match=rf"2 jobs are running already.*: {', '.join(ids)}") as caught:
        await shell("sleep 327", background=True)
    assert "job_kill" in caught.value.hint
    for job in ids:
        await shell.call("job_kill", job_id=job)
    for _ in range(4):
        job = await start(shell, "sleep 327")
        await shell.call("job_kill", job_id=job)
    with pytest.raises(ToolError, match="there is no job"):
        await shell.call("job_output", job_id=ids[0])
    assert job in await shell.call("job_output", job_id=job)


async def test_outside_of_a_session_there_are_no_jobs(work: Path) -> None:
    shell = Shell(work, session_id="")
    with pytest.raises(ToolError, match="belongs to none"):
        await shell("sleep 328", background=True)
    assert shell.alive() == []


async def test_a_call_that_is_cancelled_before_it_names_its_job_leaves_none(work: Path, shell: Shell) -> None:
    ready = Ready(work, shell.mark)
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:

            async def cancel_once_it_runs() -> None:
                await ready.wait()
                scope.cancel()

            group.start_soon(cancel_once_it_runs)
            # It names its job after a first look, unless the command ends before.
            await shell.call("execute_command", command=f"{ready.say}; exec sleep 324", background=True)
    if scope.cancelled_caught:
        assert shell.alive() == []
    await end_all(shell)
