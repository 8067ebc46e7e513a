"""Cancelling: at once, at any moment, and with a history that stays valid."""

from __future__ import annotations

import anyio
import pytest

from openheim import tool
from openheim.agent.repair import with_every_call_answered
from openheim.testing import Pause, reply_text, reply_tool_calls
from tests.agent.sessions import Recorded, scripted_session

pytestmark = pytest.mark.anyio


def is_valid(run: Recorded) -> bool:
    """Whether every call of the stored history is answered."""
    stored = run.stored()
    return with_every_call_answered(stored) == stored


async def test_cancel_while_the_model_answers() -> None:
    pause = Pause()
    async with scripted_session([reply_text("so far", pause, "never")]) as run, anyio.create_task_group() as group:

        async def prompt() -> None:
            outcome = await run.session.run("go")
            assert outcome.stop_reason == "cancelled"
            assert outcome.error is None

        group.start_soon(prompt)
        with anyio.fail_after(10):
            await pause.reached()
            run.session.cancel()
    assert run.provider.cancelled == 1
    assert run.provider.active == 0
    assert [message.text for message in run.stored()] == ["go", "so far"]
    assert run.stored()[1].stop_reason == "cancelled"
    assert run.events[-1].type == "turn_finished"


async def test_cancel_while_tools_run_keeps_the_finished_results() -> None:
    started, finished = anyio.Event(), anyio.Event()

    @tool
    async def hangs() -> str:
        started.set()
        await anyio.sleep_forever()
        return "never"

    @tool
    async def quick() -> str:
        await started.wait()
        finished.set()
        return "done"

    script = [reply_tool_calls(("hangs", {}), ("quick", {}), ("hangs", {})), "after"]
    async with scripted_session(script, tools=[hangs, quick]) as run, anyio.create_task_group() as group:
        ended = anyio.Event()

        async def prompt() -> None:
            assert (await run.session.run("go")).stop_reason == "cancelled"
            ended.set()

        group.start_soon(prompt)
        with anyio.fail_after(10):
            await finished.wait()
            await anyio.wait_all_tasks_blocked()
            run.session.cancel()
            await ended.wait()
        results = run.results()
        assert [result.is_error for result in results] == [True, False, True]
        assert results[0].content == "Error: cancelled by the user"
        assert len(run.of_type("tool_result")) == 3
        assert is_valid(run)
        assert (await run.session.run("on")).text == "after"


async def test_cancel_in_the_last_iteration_is_cancelled() -> None:
    @tool
    async def cancels() -> str:
        run.session.cancel()
        return "finished all the same"

    script = [reply_tool_calls(("cancels", {}))]
    async with scripted_session(script, tools=[cancels], max_iterations=1) as run:
        with anyio.fail_after(10):
            outcome = await run.session.run("go")
        assert outcome.stop_reason == "cancelled"
        assert is_valid(run)


async def test_cancel_while_a_person_is_asked() -> None:
    @tool
    async def write() -> str:
        return "ran"

    script = [reply_tool_calls(("write", {}))]
    async with (
        scripted_session(script, tools=[write], gate="ask", attended=True) as run,
        anyio.create_task_group() as group,
    ):

        async def prompt() -> None:
            assert (await run.session.run("go")).stop_reason == "cancelled"

        group.start_soon(prompt)
        with anyio.fail_after(10):
            await anyio.wait_all_tasks_blocked()
            assert len(run.of_type("permission_asked")) == 1
            run.session.cancel()
    assert [(event.decision, event.by) for event in run.of_type("permission_resolved")] == [("deny", "cancel")]
    assert run.results()[0].is_error


async def test_the_caller_being_cancelled_is_a_cancel_too() -> None:
    pause = Pause()
    async with scripted_session([reply_text("so far", pause), "next"]) as run:
        async with anyio.create_task_group() as group:
            group.start_soon(run.session.run, "go")
            with anyio.fail_after(10):
                await pause.reached()
            group.cancel_scope.cancel()
        assert not run.session.running
        assert [message.text for message in run.stored()] == ["go", "so far"]
        assert (await run.session.run("again")).text == "next"


async def test_cancel_before_anything_has_happened() -> None:
    async with scripted_session(["never", "fine"]) as run:
        run.session.cancel()
        assert (await run.session.run("go")).stop_reason == "end_turn"
