"""How much a model is to think, as the effort that both wires take."""

from __future__ import annotations

import re

__all__ = ("reasoning_effort",)

#: What asks a model not to think.
_OFF = frozenset(("off", "none", "0", 0))

_EFFORTS = frozenset(("none", "minimal", "low", "medium", "high", "xhigh", "max"))

#: Up to so many tokens a budget is low, or medium; beyond that it is high.
_LOW_BUDGET = 4096
_MEDIUM_BUDGET = 16_384

#: OpenAI's models that cannot be kept from thinking, and the least that they take; ``""`` for those that take no
#: effort, or one only. Any other model is asked not to think.
_LEAST = tuple(
    (re.compile(rf"(?i)(?:.*[/:])?(?:{models})"), least)
    for models, least in (
        ("gpt-5-pro|o1-preview|o1-mini", ""),
        (r"o[1-9]\d*(?![^-])|codex-|gpt-5[^/]*-codex", "low"),
        (r"gpt-5\.\d+-pro", "medium"),
        (r"gpt-5(?![.\d])", "minimal"),
    )
)


def reasoning_effort(model: str, thinking: str | int | None, *, reasons: bool) -> str | None:
    """The effort to ask for, or None for the service's default.

    Args:
        thinking: ``off``, ``adaptive``, a budget in tokens, or an effort, which goes as it is; see
            :class:`openheim.providers.ModelRequest`.
        reasons: whether the model thinks at all. One that does not is told nothing, unless an effort was named.
    """
    if thinking in _EFFORTS:
        return str(thinking)
    if not reasons:
        return None
    if thinking in _OFF:
        return next((least for pattern, least in _LEAST if pattern.match(model)), "none") or None
    budget = int(thinking) if isinstance(thinking, str) and re.fullmatch(r"[0-9]{1,9}", thinking) else thinking
    if not isinstance(budget, int) or budget < 0:
        return None
    return "low" if budget <= _LOW_BUDGET else "medium" if budget <= _MEDIUM_BUDGET else "high"
