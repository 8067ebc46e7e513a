"""What ``openheim doctor`` reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ("Finding",)


@dataclass(frozen=True, slots=True)
class Finding:
    """``status`` is ``ok``, ``note`` (fine, but worth knowing) or ``problem``."""

    subject: str
    status: Literal["ok", "note", "problem"]
    detail: str
