"""How a failed command ends: one line on stderr and an exit code."""

from __future__ import annotations

import sys

from openheim.cli import options
from openheim.cli.printing import one_line, print_text
from openheim.errors import (
    ConfigError,
    OpenheimError,
    PluginError,
    ProviderError,
    SessionBusyError,
    SessionLockedError,
    UsageError,
    described,
    unwrapped,
)

__all__ = ("exit_code_of", "print_traceback", "report_failure", "warn")


def exit_code_of(err: BaseException) -> int:
    """The exit code that an error ends a command with."""
    match err:
        case KeyboardInterrupt():
            return 130
        case BrokenPipeError():
            return 141
        case UsageError() | ConfigError() | PluginError():
            return 2
        case SessionBusyError() | SessionLockedError():
            return 75
        case ProviderError() if err.retryable:
            return 75
        case _:
            return 1


def report_failure(err: BaseException) -> int:
    """Prints what went wrong, once, and returns the exit code. Interrupts and broken pipes say nothing."""
    if isinstance(err, Exception):
        err = unwrapped(err)
    code = exit_code_of(err)
    if isinstance(err, KeyboardInterrupt | BrokenPipeError):
        return code
    if options.current().debug:
        print_traceback(err)
    if isinstance(err, OpenheimError):
        line = f"error: {err}"
    elif isinstance(err, OSError) and err.strerror:
        line = f"error: {err.strerror}" + (f": {err.filename}" if err.filename else "")
    else:
        line = f"error: {described(err)} (this is a fault in openheim or a plugin; --debug shows where)"
    print(one_line(line), file=sys.stderr)
    return code


def print_traceback(err: BaseException) -> None:
    """Where an error arose, on stderr."""
    import traceback

    print_text("".join(traceback.format_exception(err)), end="", file=sys.stderr)


def warn(text: str) -> None:
    """One line on stderr that starts with ``warning:``."""
    print(one_line(f"warning: {text}"), file=sys.stderr)
