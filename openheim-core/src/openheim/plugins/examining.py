"""What a plugin's ``openheim_examine`` returned: which of it are findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args, get_type_hints

from openheim.findings import Finding
from openheim.plugins.problems import describe

__all__ = ("checked_findings",)


def checked_findings(returned: Sequence[Any]) -> tuple[list[Finding], list[str]]:
    """Sorts out what a call of ``openheim_examine`` returned.

    Args:
        returned: one item per implementation: what it returned.

    Returns:
        The findings, and one line for each thing that is none.
    """
    findings: list[Finding] = []
    problems: list[str] = []
    for offered in returned:
        if not isinstance(offered, Iterable) or isinstance(offered, str | bytes | Mapping):
            problems.append(f"openheim_examine returned {type(offered).__name__} instead of a list of findings")
            continue
        try:
            for candidate in offered:
                if problem := _problem(candidate):
                    problems.append(problem)
                else:
                    findings.append(candidate)
        except (Exception, SystemExit) as err:  # a generator goes on running here
            problems.append(describe(err))
    return findings, problems


def _problem(candidate: Any) -> str:
    if not isinstance(candidate, Finding):
        return f"openheim_examine returned a {type(candidate).__name__} where a Finding belongs"
    statuses = get_args(get_type_hints(Finding)["status"])
    if candidate.status not in statuses:
        return f"a finding has the status {candidate.status!r:.80}, not one of {', '.join(statuses)}"
    if not (isinstance(candidate.subject, str) and candidate.subject and isinstance(candidate.detail, str)):
        return "a finding has a subject or a detail that is no text"
    return ""
