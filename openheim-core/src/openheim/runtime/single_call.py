"""One tool, called by a person or a program and not by a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openheim.agent.calls import CallContext, prepare_calls, run_calls
from openheim.agent.loop import nobody
from openheim.agent.turn import ToolEnvironment
from openheim.gates import GateSession
from openheim.messages import ToolUseBlock

if TYPE_CHECKING:
    from collections.abc import Callable

    from openheim.agent.steps import Steps
    from openheim.agent.toolbox import Toolbox
    from openheim.events import Event
    from openheim.files import Files
    from openheim.messages import ToolResultBlock
    from openheim.permissions import PermissionPolicy

__all__ = ("call_tool",)


async def call_tool(
    name: str,
    arguments: str,
    *,
    mode: str,
    toolbox: Toolbox,
    files: Files,
    policy: PermissionPolicy,
    steps: Steps,
    make_env: Callable[[], dict[str, str]],
    publish: Callable[[Event], None],
) -> ToolResultBlock:
    """Runs one tool; see :meth:`openheim.Runtime.call_tool`.

    Args:
        arguments: JSON text of an object.
        make_env: the environment that the tool may give to child processes.
        publish: told of the call's events.
    """
    session = GateSession("", mode, files.cwd)
    context = CallContext(
        toolbox=toolbox,
        environment=ToolEnvironment("", files, make_env=make_env),
        steps=steps,
        publish=publish,
        decide=lambda call: policy.decide(call, session),
        ask=nobody,
        is_cancelled=lambda: False,
    )
    runs = prepare_calls([ToolUseBlock("call", name, arguments)], toolbox, cut=False)
    await run_calls(runs, context)
    result = runs[0].result
    assert result is not None
    return result
