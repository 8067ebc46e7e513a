"""Tries whether a sandbox works here, by a command that does nothing in it."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from openheim_tools_shell.launch import interpreter_environment

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("TrialFailedError", "fault_of")

#: It takes a few hundredths.
_TRIAL_SECS = 10.0


class TrialFailedError(Exception):
    """For a reason that may be gone the next time, such as a machine that is busy: it must not be remembered."""


def fault_of(command: Sequence[str]) -> str:
    """What the command complained of, ``""`` if it ended well.

    Raises:
        TrialFailedError: it did not end, or could not be run.
    """
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TRIAL_SECS,
            start_new_session=True,
            env=interpreter_environment(),
        )
    except subprocess.TimeoutExpired as err:
        raise TrialFailedError(f"a trial did not end within {_TRIAL_SECS:g} s") from err
    except OSError as err:
        raise TrialFailedError(f"{command[0]} cannot be run: {err.strerror}") from err
    said = " ".join(done.stderr.decode("utf-8", "replace").split())[:300]
    return "" if done.returncode == 0 else f"a trial failed: {said or f'exit status {done.returncode}'}"
