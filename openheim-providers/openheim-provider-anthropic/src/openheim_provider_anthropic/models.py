"""What a model takes, by its name, or by what the service itself says in its list of models.

The wire is one, but which forms of thinking it carries differs from model to model, and a form that a model does not
take makes it refuse the request.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("ModelTraits", "traits_from_list", "traits_of")


@dataclass(frozen=True, slots=True)
class ModelTraits:
    """What a model takes. The defaults are for one that is not known.

    Args:
        known: whether the name, or the service, says that it takes ``adaptive`` if the rest says so. Others that speak
            this wire may refuse it, so it is not sent to them unless the user asks for thinking.
        adaptive: it decides by itself how much to think (``thinking`` of type ``adaptive``).
        budget: it thinks within a number of tokens (type ``enabled``).
        off: the type of ``thinking`` that turns it off, or None if there is none.
        effort: it takes an effort.
        schema: it takes a JSON Schema for its replies.
        hides_thinking: it leaves the text of its thinking out unless asked for it.
        max_output: the largest cap on replies in tokens, or None if not known.
    """

    known: bool = False
    adaptive: bool = True
    budget: bool = True
    off: str | None = "disabled"
    effort: bool = True
    schema: bool = True
    hides_thinking: bool = False
    max_output: int | None = None


# Such as claude-opus-4-6, claude-haiku-4-5-20251001, anthropic/claude-sonnet-4.5 and claude-3-5-haiku-latest.
_NAME = re.compile(r"claude-(?:([a-z]+)-)?([0-9]{1,2})(?:[-.]([0-9]{1,2}))?(?![0-9])(?:-(opus|sonnet|haiku))?")
_PREVIEW = "claude-mythos-preview"

#: Families that cannot be kept from thinking.
_ALWAYS_THINKING = frozenset(("fable", "mythos"))


def traits_of(model: str) -> ModelTraits:
    """What the model of this name takes, as far as the name tells."""
    name = model.lower()
    if _PREVIEW in name:
        return replace(_traits("mythos", (4, 7)), budget=True)
    found = _NAME.search(name)
    if found is None:
        return ModelTraits(known="claude" in name)
    family = found[1] or found[4] or ""
    return _traits(family, (int(found[2]), int(found[3] or 0)))


def _traits(family: str, version: tuple[int, int]) -> ModelTraits:
    off: str | None = "disabled"
    if family in _ALWAYS_THINKING or (family == "opus" and version >= (5, 5)) or version < (3, 7):
        off = None
    elif family == "sonnet" and version >= (5, 5):
        off = "between_tools"
    return ModelTraits(
        known=True,
        adaptive=version >= (4, 6),
        budget=(3, 7) <= version < (4, 7),
        off=off,
        effort=version >= (4, 6) or (family == "opus" and version >= (4, 5)),
        schema=version >= (4, 5) or (family == "opus" and version >= (4, 1)),
        hides_thinking=version >= (4, 7),
        max_output=_max_output(family, version),
    )


def _max_output(family: str, version: tuple[int, int]) -> int:
    if version < (3, 7):
        return 8192 if version == (3, 5) else 4096
    if family == "opus" and version < (4, 5):
        return 32_000
    return 128_000 if version >= (4, 7) or (family == "opus" and version >= (4, 6)) else 64_000


def traits_from_list(entry: Mapping[str, Any]) -> ModelTraits:
    """What a model takes by its entry in the service's list, where that says it, else by its name."""
    traits = traits_of(str(entry.get("id")))
    most = entry.get("max_tokens")
    if type(most) is int and most > 0:
        traits = replace(traits, max_output=most)
    capabilities = entry.get("capabilities")
    if not isinstance(capabilities, dict):
        return traits

    def says(*path: str, otherwise: bool) -> bool:
        value: Any = capabilities
        for key in (*path, "supported"):
            value = value.get(key) if isinstance(value, dict) else None
        return value if isinstance(value, bool) else otherwise

    adaptive = says("thinking", "types", "adaptive", otherwise=False)
    off = traits.off
    if not says("thinking", "types", "disabled", otherwise=off == "disabled"):
        off = "between_tools" if says("thinking", "types", "between_tools", otherwise=off == "between_tools") else None
    elif off is None and says("thinking", "supported", otherwise=True):
        off = "disabled"
    return replace(
        traits,
        known=traits.known or adaptive,
        adaptive=says("thinking", "types", "adaptive", otherwise=traits.adaptive),
        budget=says("thinking", "types", "enabled", otherwise=traits.budget),
        off=off,
        effort=says("effort", otherwise=traits.effort),
        schema=says("structured_outputs", otherwise=traits.schema),
    )
