"""The ``openheim`` command.

What a command imports is its start-up time, so this module imports nothing but the interpreter's own, ``--version`` is
answered before anything else is loaded, and each subcommand's module is imported only when that subcommand runs.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn

__all__ = ("main",)


_THREAD_GRACE_SECS = 1.0


def main() -> NoReturn:
    """Runs the command line and exits with its code (``docs/reference/exit-codes.md``)."""
    # Importing makes many objects and hardly any garbage: looking for it as often as usual costs a tenth of a start.
    gc.set_threshold(50_000, 20, 20)
    from openheim.cli.streams import flushed, prepare_streams

    prepare_streams()
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        from openheim import __version__

        print(f"openheim {__version__}")
        code = 0
    else:
        code = _run(arguments)
    code = flushed(code)
    _wait_for_threads(code)
    # The interpreter would look for garbage in everything that was imported, for some 9 ms, only to end.
    gc.freeze()
    sys.exit(code)


def _wait_for_threads(code: int) -> None:
    """Gives threads that are still at work a moment, and ends the process if they do not take it.

    A cancelled tool may have left one behind, blocked in something that cannot be interrupted. The interpreter would
    wait for that without end.
    """
    if "threading" not in sys.modules:
        return
    import threading
    import time

    deadline = time.monotonic() + _THREAD_GRACE_SECS
    for thread in threading.enumerate():
        if thread is threading.main_thread() or thread.daemon:
            continue
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            import atexit

            print("note: something that was cancelled has not ended, and is left behind", file=sys.stderr)
            atexit._run_exitfuncs()
            sys.stderr.flush()
            os._exit(code)


def _run(arguments: list[str]) -> int:
    from openheim.cli.failures import report_failure
    from openheim.cli.interrupts import Terminated, raise_on_termination
    from openheim.errors import interrupt_behind

    # Until a command installs its own handling, SIGTERM ends the process with the code that scripts expect.
    came = raise_on_termination()
    try:
        from openheim.cli.app import run_command

        code = run_command(arguments)
        # typer answers an interrupt of any kind with 130.
        return 143 if came and code == 130 else code
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    except BaseException as err:
        interrupt = interrupt_behind(err)
        return 143 if isinstance(interrupt, Terminated) else report_failure(interrupt or err)
