"""The providers that are installed, with what a service on each one's wire answers when all goes well.

Another wire is added with a line in :data:`ALL`. Failures need none: they are tried with every one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec

from openheim.plugins.first_party import FIRST_PARTY_DISTRIBUTIONS
from tests.support import anthropic_wire, gemini_wire, openai_wire, responses_wire
from tests.support.replies import Reply

__all__ = ("INSTALLED", "WIRES", "SpokenWire")


@dataclass(frozen=True)
class SpokenWire:
    """A kind of provider, and the wire that it is told to speak, if it speaks several.

    Args:
        good: the reply with this text.
    """

    kind: str
    good: Callable[[str], Reply]
    wire: str | None = None

    def __str__(self) -> str:
        return f"{self.kind}-{self.wire}" if self.wire else self.kind

    @property
    def options(self) -> dict[str, str]:
        """The entry's keys that say so."""
        return {"kind": self.kind} | ({"wire": self.wire} if self.wire else {})


ALL = (
    SpokenWire("anthropic", anthropic_wire.text),
    SpokenWire("gemini", gemini_wire.text),
    SpokenWire("openai", openai_wire.text, "chat"),
    SpokenWire("openai", responses_wire.text, "responses"),
    SpokenWire("openai_compatible", openai_wire.text),
)


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


#: Kinds of the installed first-party providers that take a key.
INSTALLED = sorted(
    point.name
    for point in entry_points(group="openheim.providers")
    if point.dist is not None
    and point.dist.name in FIRST_PARTY_DISTRIBUTIONS
    and point.name != "demo"
    and _is_there(point.value.partition(":")[0])
)

WIRES = tuple(wire for wire in ALL if wire.kind in INSTALLED)
