"""The rows of ``openheim plugins list``: what is installed and whether it may be used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from openheim.plugins.catalogue import Candidate, Catalogue
    from openheim.plugins.policy import PluginPolicy, Ruling

__all__ = ("row_to_dict", "rows")


def rows(
    catalogue: Catalogue, policy: PluginPolicy, live: Mapping[Candidate, Ruling] | None = None
) -> Iterator[Ruling]:
    """One row per entry point of each distribution, in the catalogue's order.

    Args:
        live: what has become of the candidates that this process has tried to load; it goes before the policy's word.
    """
    for rivals in catalogue.groups():
        for ruling in policy.judge(rivals):
            yield (live or {}).get(ruling.candidate, ruling)


def row_to_dict(row: Ruling) -> dict[str, Any]:
    """An element of ``plugins list --json``."""
    candidate = row.candidate
    return {
        "kind": candidate.kind,
        "name": candidate.name,
        "distribution": candidate.distribution,
        "version": candidate.version,
        "status": row.status,
        "note": row.note,
        "value": candidate.value,
        "editable": candidate.editable,
        "requires": list(candidate.requires),
        "summary": candidate.summary,
    }
