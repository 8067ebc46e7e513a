"""What ``openheim doctor`` says of commands on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openheim import Finding, ToolError
from openheim_tools_shell.confining import check_hidden, layout_of, not_hidden
from openheim_tools_shell.sandbox import abilities, choose

if TYPE_CHECKING:
    from openheim import ToolsContext
    from openheim_tools_shell.sandbox import Layout
    from openheim_tools_shell.settings import Settings

__all__ = ("examine",)


def examine(settings: Settings, context: ToolsContext) -> list[Finding]:
    """Which sandboxes work here, and what commands get with these settings."""
    layout = layout_of(settings, context.work_dir, context.data_dir)
    writable = layout.writable_places()
    findings = [
        Finding(f"sandbox {kind}", "ok" if ability.works else "note", ability.detail)
        for kind, ability in abilities(network=True, writable=writable).items()
    ]
    return [*findings, *_outcome(settings, layout, context)]


def _outcome(settings: Settings, layout: Layout, context: ToolsContext) -> list[Finding]:
    subject, allowed = "shell commands", context.allow_shell
    off = "" if allowed else "off (allow_shell = false); once allowed: "
    asked = f'sandbox = "{settings.sandbox}"{"" if settings.network else ", network = false"}'
    try:
        kind, notice = choose(settings.sandbox, network=settings.network, writable=layout.writable_places())
        if kind == "landlock" and (reason := not_hidden(settings, layout)):
            raise ToolError(reason)
        if kind != "none":
            layout.check_writable()
            check_hidden(settings, layout)
    except ToolError as err:
        return [Finding(subject, "problem" if allowed else "note", f"{off}refused, with {asked}: {err}")]
    if notice:
        return [Finding(subject, "note", f"{off}{notice}")]
    if kind == "none":
        return [Finding(subject, "note", f"{off}they run without a sandbox, with {asked}")]
    outcome = Finding(subject, "ok" if allowed else "note", f"{off}they run in {kind}, with {asked}")
    return [*(_gaps_of_landlock(layout, context) if kind == "landlock" else []), outcome]


def _gaps_of_landlock(layout: Layout, context: ToolsContext) -> list[Finding]:
    """What lies in the work directory and had better not, since Landlock cannot protect it there."""
    findings = []
    if private := layout.in_writable(context.private_paths):
        findings.append(Finding("private files", "note", f"commands can read and change {', '.join(private)}"))
    places = layout.protected_places()
    if programs := [path for path in places if not any(path.startswith(f"{other}/") for other in places)]:
        findings.append(
            Finding(
                "openheim itself",
                "note",
                f"commands can change {', '.join(programs)}, which openheim is run from, and so leave the sandbox",
            )
        )
    return findings
