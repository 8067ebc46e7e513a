"""Starting a program of this package in an interpreter of its own."""

from __future__ import annotations

import os
import subprocess
import sys

__all__ = ("start_child",)

#: What an interpreter may need to start; the rest of the environment, keys among it, is not the child's business.
ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")


def start_child(
    program: str, *arguments: str, stdin: int = subprocess.PIPE, stdout: int = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    """Starts a script that needs the standard library only. What it says about errors is lost.

    Args:
        program: its path.
        stdin: as for :class:`subprocess.Popen`.
        stdout: the same.
    """
    return subprocess.Popen(
        # Isolated and without site: it starts sooner.
        [sys.executable, "-I", "-S", program, *arguments],
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.DEVNULL,
        env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
    )
