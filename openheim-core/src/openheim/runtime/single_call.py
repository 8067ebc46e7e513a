"""One tool, called by a person or a program and not by a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openheim.agent.calls import CallContext, prepare_calls, run_calls
from openheim.agent.loop import nobody
from openheim.agent.turn import ToolEnvironment
from openheim.gates import GateSession
from openheim.messages import ToolUseBlock
from openheim.permissions import PermissionPolicy, parse_rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from openheim.agent.toolbox import Toolbox
    from openheim.events import Event
    from openheim.gates import Gate
    from openheim.messages import ToolResultBlock
    from openheim.runtime.places import Place
    from openheim.runtime.runtime import Runtime

__all__ = ("call_tool",)


async def call_tool(
    runtime: Runtime,
    name: str,
    arguments: str,
    *,
    mode: str,
    place: Place,
    toolbox: Toolbox,
    gate: Gate,
    publish: Callable[[Event], None],
) -> ToolResultBlock:
    """Runs one tool; see :meth:`openheim.Runtime.call_tool`.

    Args:
        arguments: JSON text of an object.
        place: where the tool works.
        gate: decides whether it may run.
        publish: told of the call's events.
    """
    permissions = runtime.loaded.config.permissions
    policy = PermissionPolicy(
        gate,
        allow=tuple(map(parse_rule, permissions.allow)),
        deny=(*map(parse_rule, permissions.deny), *place.denied),
    )
    session = GateSession("", mode, place.files.cwd)
    context = CallContext(
        toolbox=toolbox,
        environment=ToolEnvironment("", place.files, make_env=runtime.tool_env),
        steps=runtime.steps,
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
