"""What ``openheim doctor`` says of commands on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openheim import Finding, ToolError
from openheim_tools_shell.sandbox import abilities, choose

if TYPE_CHECKING:
    from openheim_tools_shell.settings import Settings

__all__ = ("examine",)


def examine(settings: Settings, *, allowed: bool) -> list[Finding]:
    """Which sandboxes work here, and what commands get with these settings.

    Args:
        allowed: whether the settings allow commands at all.
    """
    findings = [
        Finding(f"sandbox {kind}", "ok" if ability.works else "note", ability.detail)
        for kind, ability in abilities(network=True).items()
    ]
    return [*findings, _outcome(settings, allowed=allowed)]


def _outcome(settings: Settings, *, allowed: bool) -> Finding:
    subject = "shell commands"
    off = "" if allowed else "off (allow_shell = false); once allowed: "
    asked = f'sandbox = "{settings.sandbox}"{"" if settings.network else ", network = false"}'
    try:
        kind, notice = choose(settings.sandbox, network=settings.network)
    except ToolError as err:
        return Finding(subject, "problem" if allowed else "note", f"{off}refused, with {asked}: {err}")
    if notice:
        return Finding(subject, "note", f"{off}{notice}")
    if kind == "none":
        return Finding(subject, "note", f"{off}they run without a sandbox, with {asked}")
    return Finding(subject, "ok" if allowed else "note", f"{off}they run in {kind}, with {asked}")
