"""What a toolset's hook returned: which of it are tools, and who wins where two offer a tool of one name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from openheim.plugins.catalogue import normalise
from openheim.plugins.first_party import FIRST_PARTY_DISTRIBUTIONS
from openheim.plugins.problems import describe

if TYPE_CHECKING:
    from openheim.tools import Tool

__all__ = ("OfferedTool", "checked_tools", "settle", "tool_problem")

#: What every provider accepts as the name of a tool.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool and where it comes from."""

    tool: Tool
    name: str
    toolset: str
    distribution: str


def checked_tools(returned: Sequence[Any]) -> tuple[list[Tool], list[str]]:
    """Sorts out what a call of ``openheim_tools`` returned.

    Args:
        returned: one item per implementation: what it returned.

    Returns:
        The tools, and one line for each thing that is none.
    """
    tools: dict[str, Tool] = {}
    problems: list[str] = []
    for offered in returned:
        if not isinstance(offered, Iterable) or isinstance(offered, str | bytes | Mapping):
            problems.append(f"openheim_tools returned {type(offered).__name__} instead of a list of tools")
            continue
        try:
            candidates = list(offered)
        except (Exception, SystemExit) as err:  # a generator goes on running here
            problems.append(describe(err))
            continue
        for candidate in candidates:
            problem = tool_problem(candidate)
            if problem:
                problems.append(problem)
            elif candidate.name in tools:
                problems.append(f"it offers two tools named {candidate.name!r}; the first is used")
            else:
                tools[candidate.name] = candidate
    return list(tools.values()), problems


def tool_problem(candidate: Any) -> str:
    """Why an object cannot be offered as a tool, for whoever made it; ``""`` if it can."""
    from openheim.tools import Replay, ToolKind

    what = f"{type(candidate).__name__} object" if not isinstance(candidate, type) else f"class {candidate.__name__}"
    try:
        name = candidate.name
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            return f"{what} is no tool: its name is {name!r:.80}, not 1 to 64 letters, digits, _ and -"
        what = f"tool {name!r}"
        if not isinstance(candidate.description, str):
            return f"{what} has no text as its description"
        if problem := _schema_problem(candidate.parameters):
            return f"the parameters of {what} {problem}"
        if isinstance(candidate, type) or not callable(candidate.run):
            return f"{what} has no method run"
        for member, allowed in (
            ("read_only", (True, False)),
            ("kind", get_args(ToolKind)),
            ("replay", get_args(Replay)),
            ("approval_scope", ("tool", "arguments")),
        ):
            value = getattr(candidate, member, allowed[0])
            # A truthy "no" for read_only would open what should be asked about.
            if value not in allowed or type(value) is not type(allowed[0]):
                return f"{what}: {member} is {value!r:.80}, not one of {', '.join(map(str, allowed))}"
    except AttributeError as err:
        return f"{what} is no tool: {err}"
    except (Exception, SystemExit) as err:  # a property of a stranger's object may raise anything
        return f"{what} is no tool: {describe(err)}"
    return ""


def _schema_problem(parameters: Any) -> str:
    """Why a schema cannot be sent to models, as the end of a sentence, or ``""``. One bad schema fails all requests."""
    from openheim.jsontext import wire_bytes

    if not isinstance(parameters, Mapping) or parameters.get("type") != "object":
        return 'are no JSON Schema of an object: they need "type": "object"'
    try:
        wire_bytes(dict(parameters))
    except (Exception, SystemExit) as err:  # a stranger's mapping may raise anything
        return f"cannot be sent as JSON: {describe(err)}"
    properties = parameters.get("properties", {})
    if not isinstance(properties, dict) or not all(isinstance(name, str) for name in properties):
        return "name their properties by something else than an object with texts as keys"
    for name, schema in properties.items():
        if not isinstance(schema, dict | bool):
            return f"describe {name!r:.80} by {type(schema).__name__}, which is no JSON Schema"
    required = parameters.get("required", [])
    if not isinstance(required, list | tuple) or not all(isinstance(name, str) for name in required):
        return "have something else than a list of names as required"
    return ""


def settle(offers: Sequence[OfferedTool]) -> tuple[list[OfferedTool], list[str]]:
    """Picks one tool per name: the first-party one, else that of the alphabetically first distribution.

    Returns:
        The winners sorted by name, and one line per clash.
    """
    winners: dict[str, OfferedTool] = {}
    lines: list[str] = []
    for offer in sorted(offers, key=_precedence):
        winner = winners.setdefault(offer.name, offer)
        if winner is not offer:
            lines.append(
                f"tool {offer.name!r} is offered by {winner.distribution} (toolset {winner.toolset}) and"
                f" {offer.distribution} (toolset {offer.toolset}); that of {winner.distribution} is used"
            )
    return [winners[name] for name in sorted(winners)], lines


def _precedence(offer: OfferedTool) -> tuple[bool, str, str]:
    distribution = normalise(offer.distribution)
    return distribution not in FIRST_PARTY_DISTRIBUTIONS, distribution, offer.toolset
