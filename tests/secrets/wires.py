"""The providers that are installed, with what a service on each one's wire answers when all goes well.

Another provider is added with a line in :data:`GOOD`. Failures need none: they are tried with every provider.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from importlib.util import find_spec

from openheim.plugins.first_party import FIRST_PARTY_DISTRIBUTIONS
from tests.support import anthropic_wire, gemini_wire, openai_wire
from tests.support.replies import Reply

__all__ = ("GOOD", "KINDS")

#: The reply with this text, by kind of provider.
GOOD: dict[str, Callable[[str], Reply]] = {
    "anthropic": anthropic_wire.text,
    "gemini": gemini_wire.text,
    "openai": openai_wire.text,
    "openai_compatible": openai_wire.text,
}


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


#: Kinds of the installed first-party providers that take a key.
KINDS = sorted(
    point.name
    for point in entry_points(group="openheim.providers")
    if point.dist is not None
    and point.dist.name in FIRST_PARTY_DISTRIBUTIONS
    and point.name != "demo"
    and _is_there(point.value.partition(":")[0])
)
