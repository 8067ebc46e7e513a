"""The rows of ``openheim plugins list``: what is installed and whether it may be used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from openheim.plugins.catalogue import Candidate, Catalogue
    from openheim.plugins.policy import PluginPolicy, Status

__all__ = ("Row", "rows")


@dataclass(frozen=True, slots=True)
class Row:
    """One entry point of one distribution. ``note`` is the reason for its status, or ``""``."""

    candidate: Candidate
    status: Status
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """An element of ``plugins list --json``."""
        return {
            "kind": self.candidate.kind,
            "name": self.candidate.name,
            "distribution": self.candidate.distribution,
            "version": self.candidate.version,
            "status": self.status,
            "note": self.note,
            "value": self.candidate.value,
            "editable": self.candidate.editable,
            "requires": list(self.candidate.requires),
            "summary": self.candidate.summary,
        }


def rows(
    catalogue: Catalogue, policy: PluginPolicy, live: Mapping[Candidate, tuple[Status, str]] | None = None
) -> Iterator[Row]:
    """The rows in the catalogue's order.

    Args:
        live: status and note of the candidates that this process has tried to load; they go before the policy's word.
    """
    for rivals in catalogue.groups():
        for ruling in policy.judge(rivals):
            status, note = (live or {}).get(ruling.candidate, (ruling.status, ruling.note))
            yield Row(ruling.candidate, status, note)
