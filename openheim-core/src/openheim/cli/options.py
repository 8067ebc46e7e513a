"""Options that every command takes.

They are taken out of the argument list before typer sees it: typer builds pydantic validators for every option with a
value, which ``--help`` and ``plugins list`` should not pay for.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from openheim.errors import UsageError

__all__ = ("GLOBAL_HELP", "GlobalOptions", "current", "take_global_options")

_LEVELS = ("debug", "info", "warning", "error")

#: Rows for ``--help``.
GLOBAL_HELP = (
    ("--config FILE", "Read this config file instead of the one in OPENHEIM_HOME."),
    ("--log-level LEVEL", "What goes to stderr: debug, info, warning (default) or error."),
    ("--safe-mode", "Use first-party plugins only."),
    ("--debug", "Show tracebacks."),
)


@dataclass(frozen=True, slots=True)
class GlobalOptions:
    config: str | None = None
    log_level: str = "warning"
    safe_mode: bool = False
    debug: bool = False


_current = GlobalOptions()


def current() -> GlobalOptions:
    """The options of the running command."""
    return _current


def take_global_options(arguments: list[str]) -> list[str]:
    """Takes the global options out of ``arguments`` (up to a ``--``), makes them current, and returns the rest.

    Raises:
        UsageError: an option lacks its value, or the value is none that is known.
    """
    global _current
    found = GlobalOptions(log_level=os.environ.get("OPENHEIM_LOG") or "warning")
    rest: list[str] = []
    waiting = iter(arguments)
    for argument in waiting:
        name, equals, value = argument.partition("=")
        if argument == "--":
            rest.append(argument)
            break
        if argument == "--debug":
            found = replace(found, debug=True)
        elif argument == "--safe-mode":
            found = replace(found, safe_mode=True)
        elif name in ("--config", "--log-level"):
            if not equals:
                try:
                    value = next(waiting)
                except StopIteration:
                    raise UsageError(f"option {name} needs a value", hint="see openheim --help") from None
            found = replace(found, config=value) if name == "--config" else replace(found, log_level=value)
        else:
            rest.append(argument)
    rest.extend(waiting)
    if found.log_level not in _LEVELS:
        raise UsageError(f"unknown log level {found.log_level!r}", hint=f"choose one of {', '.join(_LEVELS)}")
    _current = found
    return rest
