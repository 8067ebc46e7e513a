"""What ``openheim doctor`` reports, also on behalf of plugins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ("Finding",)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report.

    Args:
        subject: what was looked at, in a few words; a line's only name, so that it is best unlike those of others.
        status: ``ok``, ``note`` (fine, but worth knowing) or ``problem``, which makes the command fail.
        detail: what was found, and what to do about it. Never a secret.
    """

    subject: str
    status: Literal["ok", "note", "problem"]
    detail: str
