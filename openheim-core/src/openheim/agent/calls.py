"""Runs the tool calls of one reply.

Every call is announced before any permission question. Then each goes its own way concurrently: it is decided about,
waits for an earlier call that writes to the same target, and runs. Results are announced as they come and stored in
call order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio

from openheim.agent.answers import answer_of, failure_of
from openheim.agent.arguments import checked_arguments, parse_arguments
from openheim.agent.cancellation import slipped
from openheim.agent.results import cut_text
from openheim.agent.toolbox import is_read_only, kind_of, replay_of
from openheim.agent.turn import CallTurn
from openheim.events import ToolCallRequested, ToolResultReady, ToolUpdate
from openheim.gates import ToolCall
from openheim.messages import ToolResultBlock
from openheim.tools import PATH_KINDS, tool_target

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from openheim.agent.steps import Steps
    from openheim.agent.toolbox import Toolbox
    from openheim.agent.turn import ToolEnvironment
    from openheim.events import Event
    from openheim.gates import Decision
    from openheim.messages import ImageBlock, ToolUseBlock
    from openheim.tools import Tool, ToolKind

__all__ = ("CallContext", "CallRun", "announce_calls", "prepare_calls", "run_calls", "settle")

_NO_OBJECT = "the arguments are not a valid JSON object, so the call was not run"
_CUT = "; the reply was cut at the output limit: try again with smaller arguments, for instance in several calls"


@dataclass(slots=True)
class CallContext:
    """What running calls takes.

    Args:
        decide: settles whether a call may run; its decision is ``allow`` or ``deny``.
        ask: puts a tool's own question (the call, its number from 1, the text) to a person; False where nobody can be
            asked.
        on_settled: told that one more call has its result; called in any order.
    """

    toolbox: Toolbox
    environment: ToolEnvironment
    steps: Steps
    publish: Callable[[Event], None]
    decide: Callable[[ToolCall], Awaitable[Decision]]
    ask: Callable[[ToolUseBlock, int, str], Awaitable[bool]]
    is_cancelled: Callable[[], bool]
    on_settled: Callable[[], None] = field(default=lambda: None)


@dataclass(slots=True, eq=False)
class CallRun:
    """One call on its way. ``result`` is None until it is settled; ``denied`` is the reason if it was denied."""

    block: ToolUseBlock
    tool: Tool | None
    arguments: dict[str, Any] | None
    kind: ToolKind = "other"
    read_only: bool = False
    problem: str | None = None
    target: str | None = None
    predecessor: CallRun | None = None
    settled: anyio.Event | None = None
    result: ToolResultBlock | None = None
    denied: str | None = None
    questions: int = 0


def prepare_calls(blocks: Sequence[ToolUseBlock], toolbox: Toolbox, *, cut: bool) -> list[CallRun]:
    """Reads the calls of a reply and finds those that must not run.

    Args:
        cut: whether the reply ended at the output limit, so that its last call may be incomplete.
    """
    runs = []
    for number, block in enumerate(blocks, 1):
        arguments = parse_arguments(block.arguments)
        if cut and number == len(blocks) and not block.arguments.strip():
            arguments = None
        run = CallRun(block, toolbox.get(block.name), arguments)
        if arguments is None:
            run.problem = _NO_OBJECT + (_CUT if cut else "")
        elif run.tool is None:
            run.problem = toolbox.unknown(block.name)
        else:
            try:
                run.kind, run.read_only = kind_of(run.tool), is_read_only(run.tool)
                run.arguments = checked_arguments(arguments, run.tool.parameters)
            except (Exception, SystemExit) as err:  # the members of a stranger's tool may raise anything
                run.problem = failure_of(block.name, err)
        runs.append(run)
    return runs


def announce_calls(runs: Sequence[CallRun], publish: Callable[[Event], None]) -> None:
    for run in runs:
        shown = run.block.arguments if run.arguments is None else run.arguments
        publish(ToolCallRequested(run.block.id, run.block.name, shown))


async def run_calls(runs: Sequence[CallRun], context: CallContext) -> None:
    """Settles every call. When cancelled, the calls that are still running are left without a result."""
    await _find_targets(runs, context)
    if len(runs) == 1:
        await _run(runs[0], context)
        return
    async with anyio.create_task_group() as group:
        for run in runs:
            group.start_soon(_run, run, context)


def settle(
    run: CallRun,
    context: CallContext,
    text: str,
    *,
    is_error: bool,
    images: tuple[ImageBlock, ...] = (),
    display: dict[str, Any] | None = None,
) -> None:
    """Gives a call its result and announces it."""
    content = cut_text(text, context.environment.result_limit_bytes)
    run.result = ToolResultBlock(run.block.id, run.block.name, content, is_error, images)
    context.publish(ToolResultReady(run.block.id, run.block.name, content, is_error, display))
    if run.settled is not None:
        run.settled.set()
    context.on_settled()


async def _find_targets(runs: Sequence[CallRun], context: CallContext) -> None:
    latest: dict[str, CallRun] = {}
    for run in runs:
        if run.tool is None or run.arguments is None or run.problem is not None:
            continue
        turn = _turn(run, context)
        try:
            if run.kind in PATH_KINDS:
                # Finding where a path leads asks the file system, which may be slow.
                run.target = await anyio.to_thread.run_sync(tool_target, run.tool, run.arguments, turn)
            else:
                run.target = tool_target(run.tool, run.arguments, turn)
        except BaseException as err:
            if not slipped(err):
                raise
            run.problem = failure_of(run.block.name, err)
            continue
        if run.target is not None and not run.read_only:
            run.predecessor = latest.get(run.target)
            if run.predecessor is not None and run.predecessor.settled is None:
                run.predecessor.settled = anyio.Event()
            latest[run.target] = run


def _turn(run: CallRun, context: CallContext) -> CallTurn:
    def ask(question: str) -> Awaitable[bool]:
        run.questions += 1
        return context.ask(run.block, run.questions, question)

    return CallTurn(
        context.environment,
        run.block.id,
        publish=context.publish,
        is_cancelled=context.is_cancelled,
        ask=ask,
        settings=context.toolbox.settings_of(run.block.name),
    )


async def _run(run: CallRun, context: CallContext) -> None:
    tool, arguments = run.tool, run.arguments
    if run.problem is not None or tool is None or arguments is None:
        settle(run, context, f"Error: {run.problem}", is_error=True)
        return
    call = ToolCall(run.block.id, run.block.name, arguments, run.kind, run.read_only, run.target)
    decision = await context.decide(call)
    if decision.outcome != "allow":
        run.denied = decision.reason or "denied by the user"
        settle(run, context, f"Error: permission denied: {run.denied}", is_error=True)
        return
    if run.predecessor is not None and run.predecessor.settled is not None:
        await run.predecessor.settled.wait()
    context.publish(ToolUpdate(run.block.id, status="in_progress"))
    turn = _turn(run, context)
    context.environment.used(tool)
    try:
        result = await context.steps.run("tool", run.block.id, lambda: tool.run(arguments, turn), replay_of(tool))
        answer = answer_of(run.block.name, result)
    except BaseException as err:
        if not slipped(err):
            raise
        settle(run, context, f"Error: {failure_of(run.block.name, err)}", is_error=True)
    else:
        settle(run, context, answer.text, is_error=False, images=answer.images, display=answer.display)
