"""The field ``thinkingConfig``, which differs between generations of models.

Models of generation 2.5 take a budget of tokens, later ones a level; earlier ones refuse the field.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ("NEWEST", "generation", "thinking_config")

_VERSION = re.compile(r"gemini-(\d{1,3})(?:\.(\d{1,3}))?(?![\d.])")

#: What has no number in its name and always is one of the newest, such as ``gemini-flash-latest``.
_LATEST = re.compile(r"gemini-[a-z-]+-latest")

#: The generation from which on models are all alike in what they take.
NEWEST = (3, 0)

#: Models of generation 2.5 that do not think.
_THOUGHTLESS = re.compile(r"-(?:image|tts|audio)\b")

_BUDGETS = {"minimal": 512, "low": 2048, "medium": 8192, "high": 24_576, "xhigh": 32_768, "max": 32_768}
_LEVELS = {"minimal": "MINIMAL", "low": "LOW", "medium": "MEDIUM", "high": "HIGH", "xhigh": "HIGH", "max": "HIGH"}

_DYNAMIC = -1

#: No model takes a larger budget.
_MOST = 32_768


def generation(model: str) -> tuple[int, int] | None:
    """The generation of a model by its name, such as ``(2, 5)``, or None if that does not tell."""
    found = _VERSION.search(model)
    if found:
        return int(found[1]), int(found[2] or 0)
    return NEWEST if _LATEST.search(model) else None


def thinking_config(model: str, thinking: str | int | None) -> dict[str, Any] | None:
    """What to send, or None to leave the field out.

    Thoughts are asked for wherever the model thinks, so that they can be shown.

    Args:
        thinking: ``off``, ``adaptive``, a budget in tokens, an effort, or None for the model's own default.
    """
    number = _as_budget(thinking)
    if number is not None:
        thinking = "off" if number == 0 else "adaptive" if number < 0 else number
    version = generation(model)
    if version is None:
        return _by_budget(thinking, 1, _MOST, may_be_off=True) if thinking is not None else None
    if version >= NEWEST:
        return _by_level(thinking, is_pro="pro" in model)
    if version < (2, 5) or _THOUGHTLESS.search(model):
        return None
    if "pro" in model:
        return _by_budget(thinking, 128, _MOST, may_be_off=False)
    return _by_budget(thinking, 512 if "lite" in model else 1, 24_576, may_be_off=True)


def _as_budget(thinking: str | int | None) -> int | None:
    if isinstance(thinking, str):
        return int(thinking) if re.fullmatch(r"-?\d{1,9}", thinking) else None
    return thinking


def _by_level(thinking: str | int | None, *, is_pro: bool) -> dict[str, Any]:
    if thinking in ("off", "none"):
        # These models cannot be kept from thinking; this is as little as they can do.
        return {"thinkingLevel": "LOW" if is_pro else "MINIMAL"}
    if isinstance(thinking, int):
        return {"thinkingBudget": min(thinking, _MOST), "includeThoughts": True}
    level = _LEVELS.get(thinking or "")
    if level == "MINIMAL" and is_pro:
        level = "LOW"
    return {"includeThoughts": True} | ({"thinkingLevel": level} if level else {})


def _by_budget(thinking: str | int | None, least: int, most: int, *, may_be_off: bool) -> dict[str, Any]:
    if thinking in ("off", "none"):
        return {"thinkingBudget": 0 if may_be_off else least}
    if thinking == "adaptive":
        budget: int | None = _DYNAMIC
    else:
        wanted = thinking if isinstance(thinking, int) else _BUDGETS.get(thinking or "")
        budget = None if wanted is None else min(max(wanted, least), most)
    return {"includeThoughts": True} | ({"thinkingBudget": budget} if budget is not None else {})
