"""One turn: order of events, tool calls, stop reasons, failures."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from openheim import ToolError, ToolResult, Turn, tool
from openheim.errors import InvalidRequestError, ServerError
from openheim.messages import ImageBlock, TextBlock, Usage
from openheim.testing import FlakyProvider, Pause, ScriptedProvider, reply_error, reply_text, reply_tool_calls
from tests.agent.sessions import scripted_session

pytestmark = pytest.mark.anyio


@tool(read_only=True)
async def echo(text: str) -> str:
    """Says it again."""
    return text


async def test_order_of_events_in_one_turn() -> None:
    script = [
        reply_tool_calls(("echo", {"text": "a"}), ("echo", {"text": "b"}), text="Looking.", usage=Usage(3, 2)),
        reply_text("Done.", usage=Usage(4, 1)),
    ]
    async with scripted_session(script, tools=[echo]) as run:
        outcome = await run.session.run("go")
    assert run.types == [
        "message",
        "iteration_start",
        "message",
        "usage",
        "tool_call",
        "tool_call",
        "tool_result",
        "tool_result",
        "message",
        "message",
        "iteration_start",
        "message",
        "usage",
        "turn_finished",
    ]
    sequence = [event.seq for event in run.events]
    assert sequence == list(range(sequence[0], sequence[0] + len(sequence)))
    assert (outcome.stop_reason, outcome.text, outcome.iterations) == ("end_turn", "Done.", 2)
    assert outcome.usage == Usage(7, 3)


async def test_messages_say_which_wire_made_them_where_it_depends_on_the_model() -> None:
    class TwoWires(ScriptedProvider):
        def wire_for(self, model: str) -> str:
            return f"wire of {model}"

    for provider in (TwoWires(["ok"]), FlakyProvider(TwoWires(["ok"]), {})):
        async with scripted_session((), provider=provider, model="m-2") as run:
            await run.session.run("go")
            assert [message.wire for message in run.stored()] == [None, "wire of m-2"]


async def test_deltas_come_before_their_message() -> None:
    async with scripted_session([reply_text("Hel", "lo", thinking="hm")]) as run:
        await run.session.run("go")
    kinds = [event.type for event in run.events]
    first_delta = kinds.index("thinking_delta")
    assert kinds[first_delta : first_delta + 4] == ["thinking_delta", "text_delta", "text_delta", "message"]


async def test_calls_run_concurrently_and_are_stored_in_call_order() -> None:
    second_ran = anyio.Event()

    @tool
    async def waits() -> str:
        await second_ran.wait()
        return "first"

    @tool
    async def quick() -> str:
        second_ran.set()
        return "second"

    script = [reply_tool_calls(("waits", {}), ("quick", {})), "ok"]
    async with scripted_session(script, tools=[waits, quick]) as run:
        with anyio.fail_after(10):
            await run.session.run("go")
    assert [event.content for event in run.of_type("tool_result")] == ["second", "first"]
    assert [result.content for result in run.results()] == ["first", "second"]
    assert [result.content for message in run.stored() if message.role == "tool" for result in message.content] == [
        "first",
        "second",
    ]


@pytest.mark.parametrize("arguments", ["[1]", '"text"', "{broken", "null", "3", '{"text": "a"'])
async def test_arguments_that_are_no_object_are_never_run_nor_asked_about(arguments: str) -> None:
    asked: list[str] = []

    class Gate:
        async def decide(self, call: Any, session: Any) -> Any:
            asked.append(call.name)
            raise AssertionError

    script = [reply_tool_calls(("echo", arguments)), "sorry"]
    async with scripted_session(script, tools=[echo], gate=Gate()) as run:
        await run.session.run("go")
    (result,) = run.results()
    assert result.is_error
    assert "not a valid JSON object" in result.content
    assert "smaller" not in result.content
    assert not asked


@pytest.mark.parametrize("arguments", ["", "  ", "{}"])
async def test_blank_arguments_are_an_empty_object(arguments: str) -> None:
    @tool
    async def nothing() -> str:
        return "ran"

    async with scripted_session([reply_tool_calls(("nothing", arguments)), "ok"], tools=[nothing]) as run:
        await run.session.run("go")
    assert [result.content for result in run.results()] == ["ran"]


@pytest.mark.parametrize("arguments", ['{"text": "half', ""])
async def test_a_call_cut_at_the_output_limit_is_answered_with_advice(arguments: str) -> None:
    script = [reply_tool_calls(("echo", arguments), finish="max_tokens"), "shorter now"]
    async with scripted_session(script, tools=[echo]) as run:
        outcome = await run.session.run("go")
    (result,) = run.results()
    assert result.is_error
    assert "smaller arguments" in result.content
    assert outcome.text == "shorter now"
    assert outcome.stop_reason == "end_turn"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "text is missing"),
        ({"text": 3}, "text must be string, not integer"),
        ({"text": None}, "text must be string, not null"),
        ({"text": "a", "tex": 1}, "tex is no argument of this tool (did you mean text?)"),
    ],
)
async def test_arguments_of_wrong_types_are_named(arguments: dict[str, Any], problem: str) -> None:
    async with scripted_session([reply_tool_calls(("echo", arguments)), "ok"], tools=[echo]) as run:
        await run.session.run("go")
    assert run.results()[0].content == f"Error: invalid arguments: {problem}"
    assert run.results()[0].is_error


async def test_null_for_an_optional_argument_is_unset() -> None:
    @tool
    async def count(start: int = 5) -> str:
        return str(start)

    async with scripted_session([reply_tool_calls(("count", {"start": None})), "ok"], tools=[count]) as run:
        await run.session.run("go")
    assert [result.content for result in run.results()] == ["5"]


async def test_an_unknown_tool_gets_the_closest_names() -> None:
    async with scripted_session([reply_tool_calls(("ehco", {})), "ok"], tools=[echo]) as run:
        await run.session.run("go")
    (result,) = run.results()
    assert result.is_error
    assert result.content == "Error: there is no tool 'ehco'; there are: echo"


async def test_results_over_the_limit_keep_head_and_tail() -> None:
    @tool
    async def long() -> str:
        return "é" * 60_000 + "middle" + "ü" * 60_000 + "the end"

    async with scripted_session([reply_tool_calls(("long", {})), "ok"], tools=[long]) as run:
        await run.session.run("go")
    content = run.results()[0].content
    assert len(content.encode()) <= 131_072
    assert content.startswith("é" * 1000)
    assert content.endswith("ü" * 1000 + "the end")
    assert "of 240013 bytes left out" in content


async def test_a_result_at_the_limit_is_whole() -> None:
    @tool
    async def exact() -> str:
        return "x" * 131_072

    async with scripted_session([reply_tool_calls(("exact", {})), "ok"], tools=[exact]) as run:
        await run.session.run("go")
    assert run.results()[0].content == "x" * 131_072


@pytest.mark.parametrize(
    ("fault", "content"),
    [
        (ToolError("no such file", hint="list the directory"), "Error: no such file (list the directory)"),
        (ValueError("odd"), "Error: ValueError: odd"),
        (ExceptionGroup("group", [KeyError("k")]), "Error: KeyError: 'k'"),
        (SystemExit(3), "Error: the tool 'fails' tried to end the program"),
    ],
)
async def test_a_tool_that_fails_gives_an_error_result(fault: BaseException, content: str) -> None:
    @tool
    async def fails() -> str:
        raise fault

    async with scripted_session([reply_tool_calls(("fails", {})), "went on"], tools=[fails]) as run:
        outcome = await run.session.run("go")
    (result,) = run.results()
    assert (result.content, result.is_error) == (content, True)
    assert outcome.text == "went on"


async def test_a_tool_that_returns_something_else_gives_an_error_result() -> None:
    @tool
    async def odd() -> str:
        return 3  # type: ignore[return-value]  # what the test is about

    async with scripted_session([reply_tool_calls(("odd", {})), "ok"], tools=[odd]) as run:
        await run.session.run("go")
    assert "the tool 'odd' returned int" in run.results()[0].content


async def test_images_and_display_of_a_result() -> None:
    @tool
    async def picture() -> ToolResult:
        return ToolResult((TextBlock("a cat"), ImageBlock("aGk=", "image/png")), {"title": "cat.png"})

    async with scripted_session([reply_tool_calls(("picture", {})), "ok"], tools=[picture]) as run:
        await run.session.run("go")
        stored = run.stored()
    (result,) = run.results()
    assert result.content == "a cat"
    assert result.images == (ImageBlock("aGk=", "image/png"),)
    assert run.of_type("tool_result")[0].display == {"title": "cat.png"}
    assert stored[2].content == (result,)


async def test_call_ids_are_unique_over_replies_and_never_blank() -> None:
    from openheim.messages import ToolUseBlock
    from openheim.testing import ScriptedReply

    def reply(*ids: str) -> ScriptedReply:
        return ScriptedReply(tuple(ToolUseBlock(id, "echo", '{"text": "x"}') for id in ids), "tool_use")

    async with scripted_session([reply("same", "same"), reply("same", " "), "ok"], tools=[echo]) as run:
        await run.session.run("go")
    ids = [call.id for message in run.session.messages for call in message.tool_uses]
    assert ids[0] == "same"
    assert len(set(ids)) == 4
    assert all(call_id.strip() for call_id in ids)
    assert [result.tool_call_id for result in run.results()] == ids


@pytest.mark.parametrize(
    ("reply", "stop_reason", "text"),
    [
        (reply_text("all"), "end_turn", "all"),
        (reply_text("cut", finish="max_tokens"), "max_tokens", "cut"),
        (reply_text("no", finish="refusal"), "refusal", "no"),
        (reply_text("odd", finish="other"), "end_turn", "odd"),
        (reply_text(), "end_turn", ""),
        (reply_text(thinking="only thought"), "end_turn", ""),
    ],
)
async def test_stop_reasons(reply: Any, stop_reason: str, text: str) -> None:
    async with scripted_session([reply]) as run:
        outcome = await run.session.run("go")
    assert (outcome.stop_reason, outcome.text) == (stop_reason, text)
    assert len(run.provider.requests) == 1
    warned = [event.text for event in run.of_type("notice")]
    assert warned == ([] if text else ["the model ended its reply without any text"])


async def test_paused_replies_are_gone_on_with() -> None:
    async with scripted_session([reply_text("first ", finish="paused"), "second"]) as run:
        outcome = await run.session.run("go")
    assert (outcome.stop_reason, outcome.iterations, outcome.text) == ("end_turn", 2, "second")
    assert [message.role for message in run.provider.requests[1].messages] == ["user", "assistant"]


async def test_a_refusal_that_holds_calls_runs_none_of_them() -> None:
    ran = []

    @tool
    async def act() -> str:
        ran.append(1)
        return ""

    async with scripted_session([reply_tool_calls(("act", {}), finish="refusal")], tools=[act]) as run:
        outcome = await run.session.run("go")
    assert outcome.stop_reason == "refusal"
    assert not ran
    assert run.results()[0].is_error


@pytest.mark.parametrize("limit", [1, 2, 5])
async def test_max_iterations_is_exact(limit: int) -> None:
    replies = (reply_tool_calls(("echo", {"text": "x"}), text=f"round {number}") for number in range(1, 100))
    async with scripted_session(replies, tools=[echo], max_iterations=limit) as run:
        outcome = await run.session.run("go")
    assert len(run.provider.requests) == limit
    assert (outcome.stop_reason, outcome.iterations) == ("max_turn_requests", limit)
    assert outcome.text == f"round {limit}"
    assert len(run.results()) == limit


async def test_a_provider_failure_keeps_the_prompt_and_what_had_arrived() -> None:
    error = InvalidRequestError("the service refuses")
    async with scripted_session([reply_error(error, after="half an"), "again"]) as run:
        outcome = await run.session.run("go")
        assert outcome.stop_reason is None
        assert isinstance(outcome.error, InvalidRequestError)
        assert [message.role for message in run.stored()] == ["user", "assistant"]
        assert run.stored()[1].text == "half an"
        assert run.stored()[1].stop_reason == "error"
        assert run.of_type("turn_finished")[0].error["kind"] == "invalid_request"
        assert (await run.session.run("more")).text == "again"


async def test_a_fault_in_a_provider_is_an_error_and_not_a_crash() -> None:
    async with scripted_session([reply_error(ZeroDivisionError("oops")), "fine"]) as run:
        outcome = await run.session.run("go")
        assert isinstance(outcome.error, ServerError)
        assert not outcome.error.retryable
        assert "ZeroDivisionError: oops" in outcome.error.message
        assert (await run.session.run("go")).text == "fine"


async def test_retries_happen_only_while_nothing_was_shown() -> None:
    script = [reply_error(ServerError("busy")), reply_error(ServerError("busy")), "there"]
    async with scripted_session(script) as run:
        outcome = await run.session.run("go")
    assert outcome.text == "there"
    assert [event.attempt for event in run.of_type("retry")] == [2, 3]

    async with scripted_session([reply_error(ServerError("broke"), after="shown")]) as run:
        outcome = await run.session.run("go")
    assert isinstance(outcome.error, ServerError)
    assert not run.of_type("retry")


async def test_a_tool_sees_its_turn() -> None:
    seen: dict[str, Any] = {}

    @tool
    async def look(turn: Turn) -> str:
        turn.progress("looking")
        seen.update(cwd=turn.cwd, roots=turn.roots, id=turn.session_id, cancelled=turn.cancelled, env=dict(turn.env))
        seen["asked"] = await turn.ask("may I?")
        return "ok"

    async with scripted_session([reply_tool_calls(("look", {})), "ok"], tools=[look]) as run:
        await run.session.run("go")
    assert "turn" not in json.dumps(dict(look.parameters))
    assert seen["cwd"] == run.session.files.cwd
    assert list(seen["roots"]) == [run.session.files.root]
    assert seen["id"] == run.session.id
    assert seen["cancelled"] is False
    assert seen["asked"] is False
    assert not [name for name in seen["env"] if "KEY" in name]
    assert [event.progress for event in run.of_type("tool_update") if event.progress] == ["looking"]


async def test_the_tools_are_sorted_and_the_same_object_in_every_request() -> None:
    @tool(read_only=True)
    async def alpha() -> str:
        return ""

    script = [reply_tool_calls(("echo", {"text": "a"})), "x", "y"]
    async with scripted_session(script, tools=[echo, alpha]) as run:
        await run.session.run("go")
        await run.session.run("go")
    first, *others = run.provider.requests
    assert [spec.name for spec in first.tools] == ["alpha", "echo"]
    assert all(request.tools is first.tools for request in others)
    assert all(request.system == first.system for request in others)


async def test_a_second_prompt_while_one_runs_is_refused_at_once() -> None:
    from openheim.errors import SessionBusyError

    pause = Pause()
    async with scripted_session([reply_text("a", pause, "b"), "c"]) as run, anyio.create_task_group() as group:
        group.start_soon(run.session.run, "first")
        with anyio.fail_after(10):
            await pause.reached()
        with pytest.raises(SessionBusyError):
            await run.session.run("second")
        pause.release()
    assert [message.text for message in run.session.messages] == ["first", "ab"]


async def test_requests_name_their_session() -> None:
    async with scripted_session(["one"]) as run:
        await run.session.run("hi")
        assert run.provider.requests[0].session_id == run.session.id
